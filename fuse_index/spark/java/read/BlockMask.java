package fuse_index.spark.java.read;

import fuse_index.spark.java.rpc.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The blocks of a listing that a query must read: one bit each; and of some of them no more than ranges. Without bits it must read
 * all of them, for the reason given.
 */
public class BlockMask {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final int HEADER_BYTES = 5;
  /** A block, the first byte, and the number of bytes. */
  private static final int RANGE_BYTES = 24;

  private final byte[] bits;
  private final String refusal;
  private final Map<Integer, List<long[]>> ranges = new HashMap<Integer, List<long[]>>();
  /** How many zones are read, and how many there are; 0 where nobody was asked. */
  public final int zonesRead;
  public final int zonesTotal;
  /** On so many rows at least the conditions are true. */
  public final int certainRows;
  /** The conditions may be true on so many rows, which votes name one by one; the greatest number where they do not. */
  public final int namedRows;
  /** A fault spoiled some of these votes: who asks again may be luckier. */
  private final boolean isDoubtful;

  private BlockMask(byte[] bits, String refusal, int zonesRead, int zonesTotal, int certainRows, int namedRows, boolean isDoubtful) {
    this.bits = bits;
    this.refusal = refusal;
    this.zonesRead = zonesRead;
    this.zonesTotal = zonesTotal;
    this.certainRows = certainRows;
    this.namedRows = namedRows;
    this.isDoubtful = isDoubtful;
  }

  public static BlockMask readAll(String refusal) { return new BlockMask(null, refusal, 0, 0, 0, Integer.MAX_VALUE, false); }

  /** Asks which blocks to read, once for a query, and answers in any case: whatever goes wrong means all of them. */
  public static BlockMask ask(String key, String request, int blocks) {
    BlockMask mask;
    try {
      mask = told(key, request, blocks);
    } catch (TimeoutException late) {
      mask = readAll("no vote within " + PythonCallback.deadline() + " (" + PythonCallback.DEADLINE + ")");
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      mask = readAll("the query was cancelled");
    } catch (Throwable failure) {
      mask = readAll(failure.toString());
    }
    String asked = request.substring(0, Math.min(request.length(), 1000));
    if (mask.refusal != null) LOG.warn("every block is read, because indexes could not be asked: " + mask.refusal + "; asked was " + asked);
    return mask;
  }

  private static BlockMask told(String key, String request, int blocks) throws Exception {
    byte[] known = ReplyMemo.get(key, request);
    byte[] reply = known == null ? PythonCallback.send(key, request) : known;
    BlockMask mask = decode(reply, blocks);
    if (known == null && mask.refusal == null && !mask.isDoubtful) ReplyMemo.put(key, request, reply);
    return mask;
  }

  /**
   * Byte 1, the number of blocks as an int, and a bit for each, the lowest first; then, as ints, how many zones are read, how many
   * there are, how many rows match for certain, how many are named, whether a fault spoiled votes, and how many ranges; and the ranges.
   * Or byte 0 and the reason for no vote.
   */
  public static BlockMask decode(byte[] reply, int blocks) throws Exception {
    if (reply == null || reply.length == 0) return readAll("the planner answered nothing");
    if (reply[0] == 0) return readAll(PythonCallback.refusal(reply));
    int end = HEADER_BYTES + (blocks + 7) / 8;
    boolean whole = reply[0] == 1 && reply.length >= end + 24 && ByteBuffer.wrap(reply).getInt(1) == blocks;
    ByteBuffer rest = ByteBuffer.wrap(reply, whole ? end : 0, reply.length - (whole ? end : 0));
    int zonesRead = whole ? rest.getInt() : 0;
    int zonesTotal = whole ? rest.getInt() : 0;
    int certainRows = whole ? rest.getInt() : 0;
    int namedRows = whole ? rest.getInt() : 0;
    boolean isDoubtful = whole && rest.getInt() != 0;
    int count = whole ? rest.getInt() : 0;
    if (!whole || count < 0 || rest.remaining() != (long) count * RANGE_BYTES) {
      return readAll("the planner answered " + reply.length + " bytes, which are no votes on " + blocks + " files");
    }
    BlockMask mask = new BlockMask(reply, null, zonesRead, zonesTotal, certainRows, namedRows, isDoubtful);
    for (int i = 0; i < count; i++) mask.addRange(Integer.valueOf((int) rest.getLong()), rest.getLong(), rest.getLong());
    return mask;
  }

  private void addRange(Integer block, long start, long length) {
    if (!ranges.containsKey(block)) ranges.put(block, new ArrayList<long[]>());
    ((List<long[]>) ranges.get(block)).add(new long[] {start, length});
  }

  /** Why every block must be read; null if there is a vote. */
  public String refusal() { return refusal; }

  public boolean mustRead(int block) { return bits == null || ((bits[HEADER_BYTES + (block >> 3)] >> (block & 7)) & 1) == 1; }

  /** The first byte and the number of bytes of each range to read of a block; none where it is read whole. */
  public List<long[]> ranges(int block) {
    List<long[]> found = (List<long[]>) ranges.get(Integer.valueOf(block));
    return found == null ? Collections.<long[]>emptyList() : found;
  }
}
