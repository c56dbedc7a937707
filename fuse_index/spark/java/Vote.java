/** Which files of a listing to read: one bit each. Without bits, all of them, and why. */
public class Vote {
  private final byte[] bits;
  private final String refusal;

  private Vote(byte[] bits, String refusal) {
    this.bits = bits;
    this.refusal = refusal;
  }

  public static Vote everything(String refusal) { return new Vote(null, refusal); }

  /** Byte 1 and the bits, the lowest first; or byte 0 and the reason why there is no vote. */
  public static Vote read(byte[] reply, int files) throws Exception {
    if (reply == null || reply.length == 0) return everything("the voter answered nothing");
    if (reply[0] == 0) return everything(new String(reply, 1, reply.length - 1, "UTF-8"));
    if (reply[0] != 1 || reply.length != 1 + (files + 7) / 8) return everything("the voter answered " + reply.length + " bytes for " + files + " files");
    return new Vote(reply, null);
  }

  public String refusal() { return refusal; }

  public boolean keeps(int file) { return bits == null || ((bits[1 + (file >> 3)] >> (file & 7)) & 1) == 1; }

  public long bytes(Listing listing) {
    if (bits == null) return listing.total();
    long sum = 0L;
    for (int i = 0; i < listing.count(); i++) if (keeps(i)) sum += listing.size(i);
    return sum;
  }
}
