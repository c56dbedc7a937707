package fuse_index.spark.java.rpc;

import java.util.*;
import java.util.concurrent.TimeUnit;

/**
 * What Python said, by what it was asked, or what was made of that: a query scans a table several times, rules copy its scans, and adaptive
 * execution plans it again after each stage. What was used last is kept, as long as there is room.
 */
public class ReplyMemo {
  /** States of aggregates have up to 64 MiB, and the files of a table 200 bytes each. */
  private static final long MAX_BYTES = 96L << 20;
  /** An entry takes about so much besides its texts and bytes. */
  private static final int OVERHEAD = 256;
  private static final char SEPARATOR = 0;
  private static final LinkedHashMap<String, Entry> ENTRIES = new LinkedHashMap<String, Entry>(16, 0.75f, true);
  private static long bytes;

  public static class Entry {
    final Object value;
    final long size;
    /** By System.nanoTime(); null of what stays true. */
    final Long end;

    Entry(Object value, long size, Long end) {
      this.value = value;
      this.size = size;
      this.end = end;
    }
  }

  /** What was answered under this key to the same text; null if nothing was that is still known. */
  public static byte[] get(String key, String request) { return (byte[]) find(key, request); }

  /** What was made of an answer; null if it is not known any more. */
  public static synchronized Object find(String key, String request) {
    String name = key + SEPARATOR + request;
    Entry entry = (Entry) ENTRIES.get(name);
    if (entry == null || entry.end != null && System.nanoTime() - entry.end.longValue() >= 0L) return null;
    return entry.value;
  }

  public static void put(String key, String request, byte[] reply) { put(key, request, reply, reply.length, null); }

  /** Keeps what may be another answer after so many seconds. */
  public static void putFor(int seconds, String key, String request, byte[] reply) {
    put(key, request, reply, reply.length, Long.valueOf(System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds)));
  }

  /** Keeps what was made of an answer of so many bytes. */
  public static void put(String key, String request, Object value, int length) { put(key, request, value, length, null); }

  private static synchronized void put(String key, String request, Object value, int length, Long end) {
    String name = key + SEPARATOR + request;
    Entry entry = new Entry(value, (long) name.length() + length + OVERHEAD, end);
    if (entry.size > MAX_BYTES) return;
    Entry former = (Entry) ENTRIES.put(name, entry);
    bytes += entry.size - (former == null ? 0L : former.size);
    Iterator<Entry> eldest = ENTRIES.values().iterator();
    while (bytes > MAX_BYTES) {
      bytes -= ((Entry) eldest.next()).size;
      eldest.remove();
    }
  }

  /** Whoever answers under keys that begin so is another one from now on, or nobody. */
  public static synchronized void forget(String prefix) {
    List<String> names = new ArrayList<String>(ENTRIES.keySet());
    for (String name : names) if (name.startsWith(prefix)) bytes -= ((Entry) ENTRIES.remove(name)).size;
  }
}
