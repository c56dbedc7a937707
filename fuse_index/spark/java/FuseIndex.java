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
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * The blocks of one snapshot as a FileIndex, which is how Spark's file source lists what to read: asked with the filters of a
 * scan, it asks Python which blocks may hold an answer.
 */
public class FuseIndex implements FileIndex {
  /** What a refresh replaces: always read as a whole. */
  public static class Head {
    public final String snapshot;
    public final FileListing listing;

    public Head(String snapshot, FileListing listing) {
      this.snapshot = snapshot;
      this.listing = listing;
    }
  }

  private static final long HDFS_BLOCK_BYTES = 134217728L;

  private final SparkSession session;
  private final String callbackKey;
  private final String url;
  private final String branch;
  private final String mode;
  private final Set<String> columns;
  /** The filters, as JSON, by which `prunedBytes` was found; null before that. */
  private final String prunedFilters;
  private final long prunedBytes;
  /** A bit for each file that may be read; null: all. */
  private final byte[] fileMask;
  private volatile Head head;

  /** `branch` is empty where the snapshot was asked for, so that a refresh has nowhere to move to. */
  public FuseIndex(SparkSession session, String callbackKey, String url, String branch, String mode, String[] columns, String snapshot,
      FileListing listing) {
    this(session, callbackKey, url, branch, mode, new HashSet<String>(Arrays.asList(columns)), new Head(snapshot, listing), null, -1L, null);
  }

  private FuseIndex(SparkSession session, String callbackKey, String url, String branch, String mode, Set<String> columns, Head head,
      String prunedFilters, long prunedBytes, byte[] fileMask) {
    this.session = session;
    this.callbackKey = callbackKey;
    this.url = url;
    this.branch = branch;
    this.mode = mode;
    this.columns = columns;
    this.head = head;
    this.prunedFilters = prunedFilters;
    this.prunedBytes = prunedBytes;
    this.fileMask = fileMask;
  }

  /** The index of a scan of one of our tables; null of any other plan. */
  public static FuseIndex below(Object plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return location instanceof FuseIndex ? (FuseIndex) location : null;
  }

  /** The same blocks; but Spark is told the size of those that `filters` leave, and plans joins by it. */
  public FuseIndex withPrunedSize(scala.collection.Seq<Expression> filters) {
    String filterJson = ExpressionJson.of(filters, columns);
    if (filterJson.equals(prunedFilters)) return this;
    Head current = head;
    long bytes = selectedBytes(current, requestMask(current, filterJson), fileMask);
    return new FuseIndex(session, callbackKey, url, branch, mode, columns, current, filterJson, bytes, fileMask);
  }

  /** Some of the blocks of `snapshot`, for ever: those of which there is no stored state. */
  public FuseIndex restrictedTo(Head snapshot, byte[] mask) {
    long bytes = selectedBytes(snapshot, BlockMask.readAll(null), mask);
    return new FuseIndex(session, callbackKey, url, "", mode, columns, snapshot, null, bytes, mask);
  }

  public boolean isRestricted() { return fileMask != null; }

  private static long selectedBytes(Head head, BlockMask mask, byte[] fileMask) {
    long sum = 0L;
    for (int i = 0; i < head.listing.fileCount(); i++) if (mask.mustRead(i) && isSet(fileMask, i)) sum += head.listing.fileSize(i);
    return sum;
  }

  private static boolean isSet(byte[] fileMask, int file) { return fileMask == null || ((fileMask[file >> 3] >> (file & 7)) & 1) == 1; }

  /** The request to prune by these filters, as JSON. */
  public String request(scala.collection.Seq<Expression> filters) { return request(head, ExpressionJson.of(filters, columns)); }

  private String request(Head head, String filters) { return openRequest(head, filters).close('}').toString(); }

  /** A request whose object is still open, for more members. The order of keys is fixed: replies are remembered by this text. */
  public Json openRequest(Head head, String filters) {
    SQLConf session = SQLConf.get();
    return new Json().open('{').key("url").text(url).key("snapshot").text(head.snapshot).key("mode").text(mode)
        .key("context").open('{').key("time_zone").text(session.sessionLocalTimeZone()).key("ansi").bool(session.ansiEnabled())
        .key("case_sensitive").bool(session.caseSensitiveAnalysis()).close('}').key("filters").json(filters);
  }

  private BlockMask requestMask(Head head, String filters) {
    return PythonCallback.requestMask(callbackKey, request(head, filters), head.listing.fileCount());
  }

  public Seq<PartitionDirectory> listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Head current = head;
    BlockMask mask = dataFilters.isEmpty() ? BlockMask.readAll(null) : requestMask(current, ExpressionJson.of(dataFilters, columns));
    List<Integer> numbers = new ArrayList<Integer>();
    List<FileStatusWithMetadata> files = new ArrayList<FileStatusWithMetadata>();
    Map<String, Object> noMetadata = Map$.MODULE$.empty();
    for (int i = 0; i < current.listing.fileCount(); i++) {
      if (!mask.mustRead(i) || !isSet(fileMask, i)) continue;
      FileStatus file = new FileStatus(current.listing.fileSize(i), false, 1, HDFS_BLOCK_BYTES, 0L, new Path(current.listing.path(i)));
      files.add(new FileStatusWithMetadata(file, noMetadata));
      numbers.add(Integer.valueOf(i));
    }
    BlockSeals.verify(session.sessionState().newHadoopConf(), current.listing, numbers);
    PartitionDirectory directory = new PartitionDirectory(InternalRow.empty(), ScalaLists.toScala(files));
    return ScalaLists.toScala(Collections.singletonList(directory));
  }

  /** Moves to the head of the branch, for every DataFrame made from this one. Raises where that is not possible. */
  public void refresh() {
    if (branch.length() == 0) return;
    try {
      Json request = new Json().open('{').key("url").text(url).key("refresh").text(head.snapshot).key("branch").text(branch).close('}');
      byte[] reply = PythonCallback.send(callbackKey, request.toString());
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

  public String callbackKey() { return callbackKey; }

  public Head head() { return head; }

  public Set<String> columns() { return columns; }

  /** None: Spark writes to the first of them, and INSERT OVERWRITE would delete it, which is the table. */
  public Seq<Path> rootPaths() { return ScalaLists.toScala(new ArrayList<Path>()); }

  public String[] inputFiles() {
    FileListing listing = head.listing;
    String[] paths = new String[listing.fileCount()];
    for (int i = 0; i < paths.length; i++) paths[i] = listing.path(i);
    return paths;
  }

  public long sizeInBytes() { return prunedBytes < 0 ? head.listing.totalBytes() : prunedBytes; }

  public StructType partitionSchema() { return new StructType(); }

  public scala.Option<Object> metadataOpsTimeNs() { return scala.Option.empty(); }

  public boolean isTimeTravel() { return false; }

  /** By what is read, not by what was asked: two scans of one snapshot are one plan to caching and to exchange reuse. */
  public boolean equals(Object other) {
    if (!(other instanceof FuseIndex)) return false;
    FuseIndex that = (FuseIndex) other;
    return url.equals(that.url) && head.snapshot.equals(that.head.snapshot) && mode.equals(that.mode) && prunedBytes == that.prunedBytes
        && Arrays.equals(fileMask, that.fileMask);
  }

  public int hashCode() { return Objects.hash(new Object[] {url, head.snapshot, mode}); }

  public String toString() { return "FuseIndex[" + url + " at " + head.snapshot + "]"; }
}
