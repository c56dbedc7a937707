package fuse_index.spark.java.sources;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.io.IOException;
import java.util.*;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.StructField;

/**
 * A table of ours that is attached to a source, as far as it votes on files which the source's own connector reads: which files it
 * knows, by path, size and, of a plain folder, time.
 */
public class SourceIndex {
  /** A column on which votes may be asked for: what it is called here and in files, its id there, and what is in it. */
  public static class Column {
    public final String name;
    public final String stored;
    public final int id;
    final NestedField field;

    Column(StructField field, StructField stored, int id) {
      this.name = field.name();
      this.stored = stored.name();
      this.id = id;
      this.field = NestedField.ours(field, stored);
    }
  }

  public final TableSnapshot snapshot;
  /** Where the source is, as people write it. */
  public final String source;
  /** Whether files may be written anew under the same path, so that one is known by its time, too. */
  private final boolean byTime;
  private final List<Column> columns = new ArrayList<Column>();
  /** The most files that a scan met which are not known, since this was asked last. */
  private int unknown;
  private final Map<String, Integer> blocks = new HashMap<String, Integer>();

  /** `description` is the JSON that `describe_source_index` of Python writes, `listing` what FileListing reads. */
  public SourceIndex(String description, byte[] listing) throws IOException {
    JsonNode json = new ObjectMapper().readTree(description);
    snapshot = TableSnapshot.of(json.get("scan"), listing);
    source = json.get("source").asText();
    byTime = json.get("by_time").asBoolean();
    for (JsonNode column : json.get("columns")) {
      int position = snapshot.schema.fieldIndex(column.get("name").asText());
      columns.add(new Column(snapshot.schema.fields()[position], snapshot.storedSchema.fields()[position], column.get("id").asInt()));
    }
    Set<Integer> changed = new HashSet<Integer>();
    for (JsonNode block : json.get("changed")) changed.add(Integer.valueOf(block.asInt()));
    for (int i = 0; i < snapshot.listing.fileCount(); i++) {
      if (!changed.contains(Integer.valueOf(i))) blocks.put(plain(snapshot.listing.path(i)), Integer.valueOf(i));
    }
  }

  public List<Column> columns() { return columns; }

  public int fileCount() { return blocks.size(); }

  /** A path as both sides write it: a local one without an empty authority, and one of S3 by one scheme. */
  public static String plain(String path) {
    if (path.startsWith("file:")) return "file:" + new Path(path).toUri().getPath();
    if (path.startsWith("/")) return "file:" + path;
    return path.startsWith("s3a:") || path.startsWith("s3n:") ? "s3" + path.substring(3) : path;
  }

  /** The number of the block that a file is; -1 where it is not known, or is another file by now. */
  public int block(String path, long size, long modifiedMillis) {
    Integer found = (Integer) blocks.get(plain(path));
    if (found == null || snapshot.listing.fileSize(found.intValue()) != size) return -1;
    // Hadoop cuts times, and who attached rounded them to microseconds: what ended in 999.9 is a whole millisecond.
    long modified = snapshot.listing.modified(found.intValue());
    boolean sameTime = !byTime || modified / 1000L == modifiedMillis || (modified - 1L) / 1000L == modifiedMillis;
    return sameTime ? found.intValue() : -1;
  }

  public synchronized void meet(int unknownFiles) { unknown = Math.max(unknown, unknownFiles); }

  public synchronized int takeUnknown() {
    int met = unknown;
    unknown = 0;
    return met;
  }

  /** Whether a file may have been written anew since it was listed: not where a log names files, which never change. */
  public boolean mayChange() { return byTime; }

  /** A question about rows that all of these conditions, in our names, are true on; of the first of them where `top` is not null. */
  public VoteQuestion question(List<Expression> conditions, Json top) {
    return new VoteQuestion(this, ExpressionJson.of(ScalaLists.toScala(conditions), snapshot.columns()), top);
  }

  public BlockMask ask(String question) { return BlockMask.ask(snapshot.callbackKey, question, snapshot.listing.fileCount()); }

  /** How many bytes of the files that are known votes leave, and how many these have. */
  public long[] bytes(BlockMask mask) {
    long left = 0L;
    long all = 0L;
    for (Integer block : blocks.values()) {
      long size = snapshot.listing.fileSize(block.intValue());
      all += size;
      if (!mask.mustRead(block.intValue())) continue;
      List<long[]> ranges = mask.ranges(block.intValue());
      for (long[] range : ranges) left += range[1];
      if (ranges.isEmpty()) left += size;
    }
    return new long[] {left, all};
  }

  public String toString() { return snapshot.toString(); }
}
