package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import scala.collection.immutable.Seq;

/** A scan of some columns of one snapshot. Asked for its partitions, it asks Python which blocks may hold an answer. */
public class FuseScan implements SupportsReportStatistics, SupportsRuntimeV2Filtering, Batch {
  /** A scan waits for keys of joins only if reading costs at least as much as reading so many bytes: to wait costs some hundredths of a second. */
  private static final String LEAST_BYTES = "spark.fuse.index.join.minScanBytes";
  private static final String DEFAULT_LEAST_BYTES = "33554432";

  public final TableSnapshot snapshot;
  public final ScanRequest asked;
  private final SparkSession session;
  /** The filters, and what joins found out since: keys of their other side. */
  private volatile ScanFilters runtimeFilters;
  /** Whether joins have said by now what they found out. */
  private volatile boolean filtered;
  /** Terms of which joins found more keys than are told, and how many: of all copies of a scan, for whoever explains. */
  private final Map<String, Long> untold;
  private BlockMask votes;
  /** The conditions that they are votes on; null where the next who asks may be luckier. */
  private ScanFilters votedOn;
  /** What reading costs by these votes: rules ask again and again, and a table may have a million blocks. */
  private ScanCost cost;
  private BlockMask costedVotes;
  /** What Spark was told about this cost. */
  private Statistics estimate;
  private ScanCost estimatedCost;
  private boolean estimateHasColumns;
  private PartitionReaderFactory readerFactory;
  private Scan.ColumnarSupportMode columnar;

  public FuseScan(SparkSession session, ScanRequest asked) { this(session, asked, new ConcurrentHashMap<String, Long>()); }

  private FuseScan(SparkSession session, ScanRequest asked, Map<String, Long> untold) {
    this.session = session;
    this.untold = untold;
    this.snapshot = asked.snapshot;
    this.asked = asked;
    this.runtimeFilters = asked.filters();
  }

  /** The scan of a plan that scans one of our tables; null of any other. */
  public static FuseScan below(Object plan) {
    if (!(plan instanceof DataSourceV2ScanRelation)) return null;
    Scan scan = ((DataSourceV2ScanRelation) plan).scan();
    return scan instanceof FuseScan ? (FuseScan) scan : null;
  }

  /** The plan `relation`, with this in the place of its scan. */
  public LogicalPlan replaceIn(LogicalPlan relation) { return Versions.copy(relation, below(relation), this); }

  /** The plan `relation`, with this in the place of its scan, and with these for its columns. */
  public LogicalPlan replaceIn(LogicalPlan relation, Seq<?> output) { return Versions.copy(replaceIn(relation), relation.output(), output); }

  /** A scan that is asked something else; itself if it is not. */
  private FuseScan asking(ScanRequest other) { return other == asked ? this : new FuseScan(session, other, untold); }

  public FuseScan withFilters(List<Expression> conditions) { return asking(asked.withFilters(conditions)); }

  public FuseScan restrictedTo(byte[] mask) { return asking(asked.restrictedTo(mask)); }

  public FuseScan withTop(String first) { return asking(asked.withTop(first)); }

  public FuseScan withKeys(List<Expression> memberships) { return asking(asked.withKeys(memberships)); }

  public FuseScan at(TableSnapshot other) { return asking(asked.at(other)); }

  public FuseScan flat() { return asking(asked.flat()); }

  public FuseScan tellingDeletedRows() { return asking(asked.tellingDeletedRows()); }

  /** The plan `relation` over the same scan, whose tasks read one value of each of these columns of it. */
  public LogicalPlan keyedIn(LogicalPlan relation, List<Attribute> keys) { return Versions.keyed(relation, this, asking(asked.keyedBy(keys)), keys); }

  /** Whether each file that is of a partition has one value of this column. */
  public boolean isPartitionedBy(String column) {
    scala.Option<Object> position = snapshot.schema.getFieldIndex(column);
    return position.isDefined() && snapshot.listing.partitions.has(snapshot.storedSchema.fields()[((Integer) position.get()).intValue()].name());
  }

  /** How many different values of these columns are read; -1 where a file may have many. */
  public int partitionCount(List<Attribute> keys) {
    Set<InternalRow> found = asked.partitions(asked.blocks(votes()), keys);
    return found == null ? -1 : found.size();
  }

  public int tasksAtOnce() { return FileRange.tasksAtOnce(session); }

  public List<Expression> filters() { return runtimeFilters.expressions; }

  /** The request to prune by what is known by now, as JSON. */
  public String request() { return asked.open(Protocol.PRUNE, runtimeFilters).close('}').toString(); }

  /** Asked for once, unless there was no answer: Spark wants to know for each description, estimate and plan. */
  private synchronized BlockMask votes() {
    ScanFilters known = runtimeFilters;
    if (votes != null && votedOn == known) return votes;
    boolean all = known.json == null && asked.top() == null;
    votes = all ? BlockMask.readAll(null) : BlockMask.ask(snapshot.callbackKey, asked.open(Protocol.PRUNE, known).close('}').toString(), snapshot.listing.fileCount());
    votedOn = votes.refusal() == null ? known : null;
    return votes;
  }

  private synchronized ScanCost cost() {
    BlockMask votes = votes();
    if (votes != costedVotes) cost = new ScanCost(asked, votes);
    costedVotes = votes.refusal() == null ? votes : null;
    return cost;
  }

  /** Whether Python can be asked for its rows, by conditions that are known before the query runs. */
  public boolean mayGiveRows() { return runtimeFilters == asked.filters() && asked.mayGiveRows(); }

  /** Whether what votes left is so little that the driver reads it by itself. */
  public boolean fits(RowLimits limits) { return cost().fits(limits); }

  /** The rows that Python finds; unless `exact`, perhaps more than the filters are true on. Raises what goes wrong. */
  public List<InternalRow> rows(RowLimits limits, boolean exact) throws Exception {
    Json request = asked.open(Protocol.READ_ROWS, asked.filters()).key("columns").texts(readSchema().fieldNames());
    request.key("exact").bool(exact).key("max_bytes").json(String.valueOf(limits.maxBytes)).key("seconds").json(String.valueOf(limits.deadlineMilliseconds / 1000.0));
    return limits.rows(snapshot.callbackKey, request.close('}').toString(), readSchema());
  }

  public StructType readSchema() { return asked.readSchema(); }

  public String description() { return "fuse " + snapshot + ", " + reading(); }

  /** What votes left to read, of how much. */
  public String reading() {
    BlockMask votes = votes();
    ScanCost cost = cost();
    String zones = votes.zonesTotal == 0 ? "" : ", " + votes.zonesRead + " of " + votes.zonesTotal + " zones";
    String bytes = Utils.bytesToString(cost.zoneBytes) + " of " + Utils.bytesToString(snapshot.listing.totalBytes());
    return cost.blockCount + " of " + snapshot.listing.fileCount() + " blocks" + zones + ", " + bytes;
  }

  public CustomMetric[] supportedCustomMetrics() { return ScanMetrics.supported(); }

  public CustomTaskMetric[] reportDriverMetrics() { return ScanMetrics.measured(cost().zoneBytes, snapshot.listing.totalBytes()); }

  /** Or Spark would plan partitions to ask them, before joins have said which. Found once: to ask Spark's reader is to make one. */
  public synchronized Scan.ColumnarSupportMode columnarSupportMode() {
    if (columnar == null) {
      boolean batches = BlockReader.isColumnar(session, snapshot, asked.columnsInFiles(), asked.constants());
      columnar = batches ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
    }
    return columnar;
  }

  /** Estimates what votes left, which is more rows than the filters are true on. Asked for by each plan that Spark tries. */
  public synchronized Statistics estimateStatistics() {
    ScanCost cost = cost();
    if (cost == estimatedCost && (estimateHasColumns || !ScanStatistics.asksForColumns())) return estimate;
    estimate = ScanStatistics.of(cost.bytes(), cost.rows, snapshot.callbackKey, aboutColumns(), asked.columns);
    estimateHasColumns = ScanStatistics.asksForColumns();
    estimatedCost = cost;
    return estimate;
  }

  private String aboutColumns() {
    return asked.open(Protocol.ESTIMATE_COLUMNS, runtimeFilters).key("columns").texts(asked.columns.fieldNames()).close('}').toString();
  }

  /**
   * How many values a column has in the rows that are read and in which these columns, it among them, are not NULL: by their number and
   * the bounds of the values, between which all are taken to occur. -1 where that is not known, or no more than `most`.
   */
  public long valueCount(String column, Set<String> notNull, int most) {
    if (cost().rows <= most || asked.isRestricted() || asked.top() != null) return -1L;
    Map<NamedReference, ColumnStatistics> known = ScanStatistics.ask(snapshot.callbackKey, aboutColumns(), asked.columns);
    long rows = cost().rows;
    for (String name : notNull) {
      ColumnStatistics statistics = (ColumnStatistics) known.get(ScanStatistics.reference(name));
      if (statistics == null) return -1L;
      rows -= statistics.nullCount().getAsLong();
    }
    long count = Math.min(rows, ((ColumnStatistics) known.get(ScanStatistics.reference(column))).distinctCount().getAsLong());
    return count > most ? count : -1L;
  }

  /** Why it does not pay to wait for the keys that a join compares with `key`; null if it does. */
  public String refusalOfKeys(Expression key) {
    String least = SQLConf.get().getConfString(LEAST_BYTES, DEFAULT_LEAST_BYTES);
    if (cost().bytesWithOpening() < JavaUtils.byteStringAsBytes(least)) return "what is left is read sooner than keys are had (" + LEAST_BYTES + ")";
    return snapshot.mayPruneByKeys(key) ? null : "no index understands it, and by their bounds most zones may hold any key";
  }

  /** Joins found more keys of this term than are told; -1 of those that were not counted to the end. */
  public void addUntold(Expression term, long count) { untold.put(termName(term), Long.valueOf(count)); }

  /** Why keys of this term that a join found were not asked about; null if they were, or none were found. */
  public String refusalOfFoundKeys(Expression term) {
    Long count = (Long) untold.get(termName(term));
    if (count == null) return null;
    return KeySource.tooMany(count.longValue() < 0L ? "more keys than that," : KeySource.format(count.longValue()) + " keys,");
  }

  /** A term by its columns' names: plans have ids of their own for them. */
  private String termName(Expression term) { return ExpressionJson.ofOne(term, snapshot.columns()); }

  public NamedReference[] filterAttributes() {
    List<NamedReference> names = new ArrayList<NamedReference>();
    for (String name : asked.columns.fieldNames()) if (readSchema().getFieldIndex(name).isDefined()) names.add(ScanStatistics.reference(name));
    return (NamedReference[]) names.toArray(new NamedReference[0]);
  }

  /** Whether joins have yet to say what they find out. */
  public boolean awaitsKeys() { return !filtered && !asked.knowsKeys(); }

  /** Whether keys of this column's joins are asked about: not where they turned out to be too many. */
  public boolean mayAskKeysOf(String column) {
    if (!filtered) return true;
    List<Expression> found = runtimeFilters.expressions.subList(asked.filters().expressions.size(), runtimeFilters.expressions.size());
    for (Expression filter : found) if (((Attribute) filter.references().head()).name().equals(column)) return true;
    return false;
  }

  public void filter(Predicate[] predicates) {
    filtered = true;
    RuntimeFilters.addUntold(predicates, asked.columns, this);
    runtimeFilters = asked.filters().and(RuntimeFilters.of(predicates, asked.columns), snapshot);
  }

  public Batch toBatch() { return this; }

  public InputPartition[] planInputPartitions() {
    if (flat() != this) throw new IllegalStateException("PruneRule failed, or is excluded: " + this + " reads columns that it makes of their parts");
    BlockMask votes = votes();
    List<Integer> blocks = asked.blocks(votes);
    PartitionKeys partitions = snapshot.listing.partitions;
    snapshot.listing.checkDeletedRowsAreTold(blocks, asked.metadata());
    BlockSeals.verify(session, snapshot.listing, blocks);
    boolean keyed = asked.isKeyed() && partitions.distinct(blocks, asked.partitionColumns()) != null;
    if (!keyed) return FileRange.partitions(session, asked.ranges(votes, blocks), asked.metadata());
    Map<InternalRow, List<FileRange>> ranges = new LinkedHashMap<InternalRow, List<FileRange>>();
    for (Integer block : blocks) {
      InternalRow key = partitions.of(block.intValue(), asked.partitionColumns());
      if (!ranges.containsKey(key)) ranges.put(key, new ArrayList<FileRange>());
      ((List<FileRange>) ranges.get(key)).addAll(asked.ranges(votes, Collections.singletonList(block)));
    }
    return KeyedFilePartition.partitions(session, ranges, asked.metadata());
  }

  public synchronized PartitionReaderFactory createReaderFactory() {
    if (readerFactory == null) {
      Filter[] pushed = asked.filters().forParquet(snapshot, asked.columns, snapshot.stored(asked.columns));
      readerFactory = BlockReader.factory(session, snapshot, asked.columnsInFiles(), asked.constants(), pushed);
    }
    return readerFactory;
  }

  /** By what is read: two scans of one snapshot by the same conditions are one plan to caching and to exchange reuse. */
  public boolean equals(Object other) {
    if (!(other instanceof FuseScan)) return false;
    return asked.equals(((FuseScan) other).asked) && Objects.equals(runtimeFilters.json, ((FuseScan) other).runtimeFilters.json);
  }

  public int hashCode() { return asked.hashCode(); }

  public String toString() { return "FuseScan[" + snapshot + "]"; }
}
