package fuse_index.spark.java.server;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The sessions of clients that Python serves, by their ids, for as long as Spark keeps them.
 *
 * Servers, clones and streaming queries each begin and end sessions in ways of their own: what all have in common is that a
 * session that is over is garbage. So nobody of ours may hold one, and its end is its collection.
 */
public class ServedSessions {
  private static final ConcurrentHashMap<String, Served> SERVED = new ConcurrentHashMap<String, Served>();
  private static final ReferenceQueue<SparkSession> COLLECTED = new ReferenceQueue<SparkSession>();

  public static class Served extends WeakReference<SparkSession> {
    public final String id;

    public Served(SparkSession session) {
      super(session, COLLECTED);
      this.id = session.sessionUUID();
    }
  }

  /** The id of a session, by which Python finds it from now on. */
  public static String add(SparkSession session) {
    Served served = new Served(session);
    SERVED.put(served.id, served);
    return served.id;
  }

  /** Raises IllegalStateException for a session that is over. */
  public static SparkSession find(String id) {
    Served served = (Served) SERVED.get(id);
    SparkSession session = served == null ? null : (SparkSession) served.get();
    if (session == null) throw new IllegalStateException("session " + id + " is over");
    return session;
  }

  /** The ids of sessions that are over, each given once, with a space between them. */
  public static String takeEnded() {
    StringBuilder ended = new StringBuilder();
    for (Object each = COLLECTED.poll(); each != null; each = COLLECTED.poll()) {
      String id = ((Served) each).id;
      SERVED.remove(id);
      ended.append(ended.length() == 0 ? "" : " ").append(id);
    }
    return ended.toString();
  }
}
