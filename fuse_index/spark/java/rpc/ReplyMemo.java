package fuse_index.spark.java.rpc;

import java.util.*;

/**
 * What planners said, by what they were asked: a query scans a table several times, rules copy its scans, and adaptive execution plans
 * it again after each stage. What was used last is kept, as long as there is room.
 */
public class ReplyMemo {
  private static final long MAX_BYTES = 32L << 20;
  /** An entry takes about so much besides its texts and bytes. */
  private static final int OVERHEAD = 256;
  private static final char SEPARATOR = 0;
  private static final LinkedHashMap<String, byte[]> REPLIES = new LinkedHashMap<String, byte[]>(16, 0.75f, true);
  private static long bytes;

  /** What was answered under this key to the same text; null if nothing was that is still known. */
  public static synchronized byte[] get(String key, String request) { return (byte[]) REPLIES.get(key + SEPARATOR + request); }

  public static synchronized void put(String key, String request, byte[] reply) {
    String name = key + SEPARATOR + request;
    if (size(name, reply) > MAX_BYTES) return;
    byte[] former = (byte[]) REPLIES.put(name, reply);
    bytes += size(name, reply) - (former == null ? 0 : size(name, former));
    Iterator<Map.Entry<String, byte[]>> eldest = REPLIES.entrySet().iterator();
    while (bytes > MAX_BYTES) remove(eldest);
  }

  /** Whoever answers under keys that begin so is another one from now on, or nobody. */
  public static synchronized void forget(String prefix) {
    List<String> names = new ArrayList<String>(REPLIES.keySet());
    for (String name : names) if (name.startsWith(prefix)) bytes -= size(name, (byte[]) REPLIES.remove(name));
  }

  private static void remove(Iterator<Map.Entry<String, byte[]>> eldest) {
    Map.Entry<String, byte[]> entry = (Map.Entry<String, byte[]>) eldest.next();
    bytes -= size((String) entry.getKey(), (byte[]) entry.getValue());
    eldest.remove();
  }

  private static int size(String name, byte[] reply) { return name.length() + reply.length + OVERHEAD; }
}
