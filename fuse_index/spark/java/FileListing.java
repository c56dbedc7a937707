import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The files of one snapshot, in the order of a block mask: one array of bytes, read where needed. */
public class FileListing {
  private final ByteBuffer bytes;
  private final int fileCount;
  private final String prefix;
  private final int sealsOffset;
  private final int endsOffset;
  private final int namesOffset;
  private final long totalBytes;

  /** int count, int length of the prefix, prefix, count long sizes, count long seals, count int ends of names, names; big-endian, UTF-8. */
  public FileListing(byte[] packed) {
    bytes = ByteBuffer.wrap(packed);
    fileCount = bytes.getInt(0);
    int prefixLength = bytes.getInt(4);
    prefix = new String(packed, 8, prefixLength, StandardCharsets.UTF_8);
    int sizesOffset = 8 + prefixLength;
    sealsOffset = sizesOffset + 8 * fileCount;
    endsOffset = sealsOffset + 8 * fileCount;
    namesOffset = endsOffset + 4 * fileCount;
    long sum = 0L;
    for (int i = 0; i < fileCount; i++) sum += bytes.getLong(sizesOffset + 8 * i);
    totalBytes = sum;
  }

  public int fileCount() { return fileCount; }

  public long totalBytes() { return totalBytes; }

  public long fileSize(int file) { return bytes.getLong(sealsOffset - 8 * fileCount + 8 * file); }

  /** The checksum in the seal of the block; 0 if it is not known. */
  public long seal(int file) { return bytes.getLong(sealsOffset + 8 * file); }

  public String path(int file) {
    int start = file == 0 ? 0 : bytes.getInt(endsOffset + 4 * (file - 1));
    int length = bytes.getInt(endsOffset + 4 * file) - start;
    return prefix + new String(bytes.array(), namesOffset + start, length, StandardCharsets.UTF_8);
  }
}
