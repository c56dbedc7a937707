import java.nio.ByteBuffer;

/** The files of a listing that a query must read: one bit each. Without bits it must read all of them, for the reason given. */
public class BlockMask {
  private static final int HEADER_BYTES = 5;

  private final byte[] bits;
  private final String refusal;

  private BlockMask(byte[] bits, String refusal) {
    this.bits = bits;
    this.refusal = refusal;
  }

  public static BlockMask readAll(String refusal) { return new BlockMask(null, refusal); }

  /** Byte 1, the number of files as an int, and a bit for each, the lowest first; or byte 0 and the reason for no vote. */
  public static BlockMask decode(byte[] reply, int files) throws Exception {
    if (reply == null || reply.length == 0) return readAll("the voter answered nothing");
    if (reply[0] == 0) return readAll(new String(reply, 1, reply.length - 1, "UTF-8"));
    if (reply[0] != 1 || reply.length != HEADER_BYTES + (files + 7) / 8 || ByteBuffer.wrap(reply).getInt(1) != files) {
      return readAll("the voter answered " + reply.length + " bytes, which are no votes on " + files + " files");
    }
    return new BlockMask(reply, null);
  }

  /** Why every file must be read; null if there is a vote. */
  public String refusal() { return refusal; }

  public boolean mustRead(int file) { return bits == null || ((bits[HEADER_BYTES + (file >> 3)] >> (file & 7)) & 1) == 1; }
}
