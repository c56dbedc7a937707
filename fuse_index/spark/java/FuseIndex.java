import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The blocks of one snapshot, as Spark's file source sees them: asked with all filters on the table, it asks Python
 * which blocks may hold an answer.
 */
public class FuseIndex implements FileIndex {
  /** What a refresh moves; always seen whole. */
  public static class Head {
    public final String snapshot;
    public final FileListing listing;

    public Head(String snapshot, FileListing listing) {
      this.snapshot = snapshot;
      this.listing = listing;
    }
  }

  private static final long HDFS_BLOCK = 134217728L;

  private final String voter;
  private final String url;
  private final String branch;
  private final String mode;
  private final Set columns;
  private final String narrowedBy;
  private final long size;
  /** A bit for each file that may be read; null: all. */
  private final byte[] only;
  private volatile Head head;

  /** `branch` is empty where the snapshot was asked for, so that a refresh has nowhere to move to. */
  public FuseIndex(String voter, String url, String branch, String mode, String[] columns, String snapshot, FileListing listing) {
    this(voter, url, branch, mode, new HashSet(Arrays.asList(columns)), new Head(snapshot, listing), null, -1L, null);
  }

  private FuseIndex(
      String voter, String url, String branch, String mode, Set columns, Head head, String narrowedBy, long size, byte[] only) {
    this.voter = voter;
    this.url = url;
    this.branch = branch;
    this.mode = mode;
    this.columns = columns;
    this.head = head;
    this.narrowedBy = narrowedBy;
    this.size = size;
    this.only = only;
  }

  /** The same blocks; but Spark is told the size of those that `filters` leave, and plans joins by it. */
  public FuseIndex narrowed(scala.collection.Seq filters) {
    String asked = ExpressionJson.of(filters, columns);
    if (asked.equals(narrowedBy)) return this;
    Head now = head;
    return new FuseIndex(voter, url, branch, mode, columns, now, asked, bytes(now, vote(now, asked), only), only);
  }

  /** Some of the blocks of `now`, for ever: those that nobody has answered for. */
  public FuseIndex limited(Head now, byte[] left) {
    return new FuseIndex(voter, url, "", mode, columns, now, null, bytes(now, BlockMask.everything(null), left), left);
  }

  public boolean limited() { return only != null; }

  private static long bytes(Head now, BlockMask vote, byte[] only) {
    long sum = 0L;
    for (int i = 0; i < now.listing.count(); i++) if (vote.keeps(i) && keeps(only, i)) sum += now.listing.size(i);
    return sum;
  }

  private static boolean keeps(byte[] only, int file) { return only == null || ((only[file >> 3] >> (file & 7)) & 1) == 1; }

  /** What Python is asked about these filters. The order of keys is fixed: votes are remembered by this text. */
  public String request(scala.collection.Seq filters) { return request(head, ExpressionJson.of(filters, columns)); }

  private String request(Head now, String filters) { return request(now, filters, ""); }

  public String request(Head now, String filters, String more) {
    SQLConf session = SQLConf.get();
    return "{\"url\":" + ExpressionJson.quoted(url) + ",\"snapshot\":" + ExpressionJson.quoted(now.snapshot) + ",\"mode\":" + ExpressionJson.quoted(mode)
        + ",\"context\":{\"time_zone\":" + ExpressionJson.quoted(session.sessionLocalTimeZone()) + ",\"ansi\":" + session.ansiEnabled()
        + ",\"case_sensitive\":" + session.caseSensitiveAnalysis() + "},\"filters\":" + filters + more + "}";
  }

  private BlockMask vote(Head now, String filters) { return PythonCallback.vote(voter, request(now, filters), now.listing.count()); }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    Head now = head;
    BlockMask vote = dataFilters.isEmpty() ? BlockMask.everything(null) : vote(now, ExpressionJson.of(dataFilters, columns));
    List kept = new ArrayList();
    Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    for (int i = 0; i < now.listing.count(); i++) {
      if (!vote.keeps(i) || !keeps(only, i)) continue;
      FileStatus file = new FileStatus(now.listing.size(i), false, 1, HDFS_BLOCK, 0L, new Path(now.listing.path(i)));
      kept.add(new FileStatusWithMetadata(file, none));
    }
    return seq(Collections.singletonList(new PartitionDirectory(InternalRow.empty(), seq(kept))));
  }

  /** Moves to the head of the branch, for every DataFrame made from this one. Raises where that is not possible. */
  public void refresh() {
    if (branch.length() == 0) return;
    try {
      String request = "{\"url\":" + ExpressionJson.quoted(url) + ",\"refresh\":" + ExpressionJson.quoted(head.snapshot) + ",\"branch\":" + ExpressionJson.quoted(branch) + "}";
      byte[] reply = PythonCallback.ask(voter, request);
      if (reply[0] == 0) throw new IllegalStateException(new String(reply, 1, reply.length - 1, "UTF-8"));
      if (reply.length == 1) return;
      int length = reply[1];
      head = new Head(new String(reply, 2, length, "UTF-8"), new FileListing(Arrays.copyOfRange(reply, 2 + length, reply.length)));
    } catch (RuntimeException failure) {
      throw failure;
    } catch (Exception failure) {
      throw new IllegalStateException("could not refresh " + url + ": " + failure, failure);
    }
  }

  public String voter() { return voter; }

  public Head head() { return head; }

  public Set columns() { return columns; }

  /** None: Spark writes to the first of them, and INSERT OVERWRITE would delete it, which is the table. */
  public Seq rootPaths() { return seq(Collections.EMPTY_LIST); }

  public String[] inputFiles() {
    FileListing listing = head.listing;
    String[] paths = new String[listing.count()];
    for (int i = 0; i < paths.length; i++) paths[i] = listing.path(i);
    return paths;
  }

  public long sizeInBytes() { return size < 0 ? head.listing.total() : size; }

  public StructType partitionSchema() { return new StructType(); }

  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }

  public boolean isTimeTravel() { return false; }

  /** By what is read, not by what was asked: two scans of one snapshot are one plan to caching and to exchange reuse. */
  public boolean equals(Object other) {
    if (!(other instanceof FuseIndex)) return false;
    FuseIndex that = (FuseIndex) other;
    return url.equals(that.url) && head.snapshot.equals(that.head.snapshot) && mode.equals(that.mode) && size == that.size
        && Arrays.equals(only, that.only);
  }

  public int hashCode() { return Objects.hash(new Object[] {url, head.snapshot, mode}); }

  public String toString() { return "FuseIndex[" + url + " at " + head.snapshot + "]"; }

  private static Seq seq(List items) { return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(items.toArray()); }
}
