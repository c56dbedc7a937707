import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The files of one snapshot, in the order that votes number them: one array of bytes, read where needed. */
public class FileListing {
  private final ByteBuffer bytes;
  private final int count;
  private final String prefix;
  private final int ends;
  private final int names;
  private final long total;

  /** int count, int length of the prefix, prefix, count long sizes, count int ends of names, names; big-endian, UTF-8. */
  public FileListing(byte[] packed) {
    bytes = ByteBuffer.wrap(packed);
    count = bytes.getInt(0);
    int length = bytes.getInt(4);
    prefix = new String(packed, 8, length, StandardCharsets.UTF_8);
    int sizes = 8 + length;
    ends = sizes + 8 * count;
    names = ends + 4 * count;
    long sum = 0L;
    for (int i = 0; i < count; i++) sum += bytes.getLong(sizes + 8 * i);
    total = sum;
  }

  public int count() { return count; }

  public long total() { return total; }

  public long size(int file) { return bytes.getLong(ends - 8 * count + 8 * file); }

  public String path(int file) {
    int start = file == 0 ? 0 : bytes.getInt(ends + 4 * (file - 1));
    int length = bytes.getInt(ends + 4 * file) - start;
    return prefix + new String(bytes.array(), names + start, length, StandardCharsets.UTF_8);
  }
}
