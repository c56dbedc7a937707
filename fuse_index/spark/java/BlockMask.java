import java.nio.ByteBuffer;

/** Which files of a listing to read: one bit each. Without bits, all of them, and why. */
public class BlockMask {
  private static final int HEAD = 5;

  private final byte[] bits;
  private final String refusal;

  private BlockMask(byte[] bits, String refusal) {
    this.bits = bits;
    this.refusal = refusal;
  }

  public static BlockMask everything(String refusal) { return new BlockMask(null, refusal); }

  /** Byte 1, the number of files as an int, and a bit for each, the lowest first; or byte 0 and the reason for no vote. */
  public static BlockMask read(byte[] reply, int files) throws Exception {
    if (reply == null || reply.length == 0) return everything("the voter answered nothing");
    if (reply[0] == 0) return everything(new String(reply, 1, reply.length - 1, "UTF-8"));
    if (reply[0] != 1 || reply.length != HEAD + (files + 7) / 8 || ByteBuffer.wrap(reply).getInt(1) != files) {
      return everything("the voter answered " + reply.length + " bytes, which are no votes on " + files + " files");
    }
    return new BlockMask(reply, null);
  }

  public String refusal() { return refusal; }

  public boolean keeps(int file) { return bits == null || ((bits[HEAD + (file >> 3)] >> (file & 7)) & 1) == 1; }
}
