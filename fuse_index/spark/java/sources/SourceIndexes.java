package fuse_index.spark.java.sources;

import fuse_index.spark.java.rpc.*;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The tables of ours that vote on files of sources, as Python finds them by the place of a source. What was found is asked about again
 * after a while: an old one is harmless, as files that it does not know are read.
 */
public class SourceIndexes {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** So long nobody asks whether a source has an index, or a newer one, by now. */
  private static final String MAX_AGE = "spark.fuse.index.transparent.maxAge";
  private static final String DEFAULT_MAX_AGE = "10s";
  /** Known files of all sources together, beyond which those that were not asked about for longest are forgotten: some 370 bytes each. */
  private static final int MAX_FILES = 1000000;
  private static final int MAX_TOLD = 1000;

  public static class Entry {
    final SourceIndex index;
    final long asked;

    Entry(SourceIndex index) {
      this.index = index;
      this.asked = System.nanoTime();
    }
  }

  private final String callbackKey;
  /** By format and place; null of a source that has none. The one asked about last is last. */
  private final LinkedHashMap<String, Entry> entries = new LinkedHashMap<String, Entry>();
  private final Set<String> told = new HashSet<String>();

  public SourceIndexes(String callbackKey) { this.callbackKey = callbackKey; }

  /** Forgets what was found. */
  public synchronized void renew() { entries.clear(); }

  /** Whether queries of this session ask. */
  public boolean isOn() { return Boolean.parseBoolean(SQLConf.get().getConfString(Connector.SWITCH, "true")); }

  /** The index of a source; null where there is none, or nobody can say. */
  public SourceIndex find(Connector connector) {
    for (String location : connector.locations()) {
      SourceIndex found = find(connector.format(), SourceIndex.plain(location));
      if (found != null) return found;
    }
    return null;
  }

  /** Whether the index of the source that a leaf reads may leave out files by keys that a join compares with `key`. */
  public boolean mayPruneByKeys(LogicalPlan leaf, Expression key) {
    Connector connector = Connector.of(leaf);
    SourceIndex index = connector == null || connector.isSwitchedOff() ? null : find(connector);
    if (index == null) return false;
    try {
      Expression ours = connector.columns(index).translate(key);
      return ours != null && index.snapshot.mayPruneByKeys(ours);
    } catch (ReflectiveOperationException otherVersion) {
      return false;
    }
  }

  private synchronized SourceIndex find(String format, String location) {
    String key = format + " " + location;
    Entry entry = (Entry) entries.remove(key);
    long maxAge = JavaUtils.timeStringAsMs(SQLConf.get().getConfString(MAX_AGE, DEFAULT_MAX_AGE)) * 1000000L;
    if (entry == null || System.nanoTime() - entry.asked > maxAge) entry = new Entry(asked(format, location, entry == null ? null : entry.index));
    entries.put(key, entry);
    forgetBeyondBound();
    return entry.index;
  }

  /** What Python finds; what was known where nobody can say. */
  private SourceIndex asked(String format, String location, SourceIndex known) {
    byte[] body = null;
    try {
      Json question = new Json().open('{').key("question").text(Protocol.FIND_SOURCE_INDEX).key("format").text(format).key("location").text(location);
      question.key("url").text(known == null ? "" : known.snapshot.url).key("snapshot").text(known == null ? "" : known.snapshot.id);
      question.key("unknown_files").json(String.valueOf(known == null ? 0 : known.takeUnknown()));
      body = PythonCallback.body(PythonCallback.send(callbackKey, question.close('}').toString()));
      return body.length == 0 ? null : body.length == 1 ? known : decode(body);
    } catch (Exception failure) {
      if (failure instanceof InterruptedException) Thread.currentThread().interrupt();
      else tell(location, failure);
      return known;
    }
  }

  private static SourceIndex decode(byte[] body) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(body);
    byte[] description = new byte[bytes.getInt()];
    bytes.get(description);
    byte[] listing = new byte[bytes.remaining()];
    bytes.get(listing);
    return new SourceIndex(new String(description, StandardCharsets.UTF_8), listing);
  }

  /** Each problem once. */
  private void tell(String location, Exception failure) {
    if (told.size() < MAX_TOLD && told.add(location + failure)) LOG.warn("indexes of " + location + " are not asked, and its files are read as ever: " + failure);
  }

  private void forgetBeyondBound() {
    long files = 0L;
    for (Object entry : entries.values()) files += 1L + (((Entry) entry).index == null ? 0 : ((Entry) entry).index.fileCount());
    Iterator<?> eldest = entries.entrySet().iterator();
    while (files > MAX_FILES && entries.size() > 1) {
      Entry entry = (Entry) ((Map.Entry<?, ?>) eldest.next()).getValue();
      files -= 1L + (entry.index == null ? 0 : entry.index.fileCount());
      eldest.remove();
    }
  }
}
