package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
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
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import scala.collection.immutable.Seq;

/** A scan of some columns of one snapshot. Asked for its partitions, it asks Python which blocks may hold an answer. */
public class FuseScan implements SupportsReportStatistics, SupportsRuntimeV2Filtering, Batch {
  private static final double PAGES_OF_ZONE = 8.0;
  /** The place of `keyGroupedPartitioning` among what a DataSourceV2ScanRelation is made of. */
  private static final int KEY_GROUPED_PARTITIONING = 3;
  /** A scan waits for keys of joins only if reading costs at least as much as reading so many bytes: to wait costs some hundredths of a second. */
  private static final String LEAST_BYTES = "spark.fuse.index.join.minScanBytes";
  private static final String DEFAULT_LEAST_BYTES = "33554432";

  public final TableSnapshot snapshot;
  private final SparkSession session;
  /** Columns of the table. */
  private final StructType columns;
  public final FileMetadata metadata;
  /** What is read, in Spark's order: columns, or the parts that they are made of. */
  private final StructType readSchema;
  private final ScanFilters filters;
  /** How many rows are wanted, and by what order they are the first, as TopRule writes it; null: all. */
  private final String top;
  /** Columns whose join keys are among `filters`, as they were known when this scan was planned. */
  private final Set<String> keyColumns;
  /** A bit for each block that may be read; null: all. */
  private final byte[] blockMask;
  /** By these, under their stored names, each partition that a task reads has one value; empty: it has many. */
  private final StructType partitionColumns;
  /** The filters, and what joins found out since: keys of their other side. */
  private volatile ScanFilters runtimeFilters;
  /** Whether joins have said by now what they found out. */
  private volatile boolean filtered;
  private BlockMask votes;
  /** The conditions that they are votes on; null where the next who asks may be luckier. */
  private ScanFilters votedOn;
  /** What reading costs by these votes. */
  private BlockMask costedVotes;
  private long cost;
  /** What Spark was told about these votes. */
  private BlockMask estimatedVotes;
  private Statistics estimate;
  private boolean estimateHasColumns;
  private PartitionReaderFactory readerFactory;

  /** `readSchema`: some of the table's columns, of which nested fields may be left out, and perhaps `_metadata`. */
  public FuseScan(SparkSession session, TableSnapshot snapshot, StructType readSchema) {
    this(session, snapshot, snapshot.readOrder(snapshot.ownColumns(readSchema)), new FileMetadata(snapshot.metadataColumn(readSchema)),
        snapshot.readOrder(readSchema), new ScanFilters(Collections.<Expression>emptyList(), snapshot), null, Collections.<String>emptySet(), null, new StructType());
  }

  private FuseScan(SparkSession session, TableSnapshot snapshot, StructType columns, FileMetadata metadata, StructType readSchema,
      ScanFilters filters, String top, Set<String> keyColumns, byte[] blockMask, StructType partitionColumns) {
    this.session = session;
    this.snapshot = snapshot;
    this.columns = columns;
    this.metadata = metadata;
    this.readSchema = readSchema;
    this.filters = filters;
    this.runtimeFilters = filters;
    this.top = top;
    this.keyColumns = keyColumns;
    this.blockMask = blockMask;
    this.partitionColumns = partitionColumns;
  }

  /** The scan of a plan that scans one of our tables; null of any other. */
  public static FuseScan below(Object plan) {
    if (!(plan instanceof DataSourceV2ScanRelation)) return null;
    Scan scan = ((DataSourceV2ScanRelation) plan).scan();
    return scan instanceof FuseScan ? (FuseScan) scan : null;
  }

  /** The plan `relation`, with this in the place of its scan. By position, because it gained parameters between versions of Spark. */
  public LogicalPlan replaceIn(LogicalPlan relation) { return replaceIn(relation, relation.output()); }

  /** The plan `relation`, with this in the place of its scan, and with these for its columns. */
  public LogicalPlan replaceIn(LogicalPlan relation, Seq<?> output) {
    Object[] arguments = new Object[relation.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      Object old = relation.productElement(i);
      arguments[i] = old instanceof FuseScan ? this : old == relation.output() ? output : old;
    }
    return (LogicalPlan) relation.makeCopy(arguments);
  }

  /** Tells the scan that only rows are wanted on which these conditions are true; itself if it knows them. */
  public FuseScan withFilters(List<Expression> conditions) {
    ScanFilters others = new ScanFilters(conditions, snapshot);
    return Objects.equals(others.json, filters.json) ? this : with(readSchema, others, null, blockMask);
  }

  /** Restricts the scan to some blocks: those of which there is no stored state. */
  public FuseScan restrictedTo(byte[] mask) { return with(readSchema, filters, null, mask); }

  /** Tells the scan that no more than these first rows are wanted; itself if it knows. */
  public FuseScan withTop(String first) { return first.equals(top) ? this : with(readSchema, filters, first, blockMask); }

  /** Scans another version of the table, with the same columns. */
  public FuseScan at(TableSnapshot other) {
    return new FuseScan(session, other, columns, metadata, readSchema, new ScanFilters(filters.expressions, other), top, keyColumns, null, partitionColumns);
  }

  /** Tells the scan keys of joins, `column IN (...)`, which are known before it is planned. */
  public FuseScan withKeys(List<Expression> memberships) {
    Set<String> columnsOfKeys = new HashSet<String>(keyColumns);
    for (Expression membership : memberships) columnsOfKeys.add(((Attribute) membership.references().head()).name());
    return new FuseScan(session, snapshot, columns, metadata, readSchema, filters.and(memberships, snapshot), top, columnsOfKeys, blockMask, partitionColumns);
  }

  private FuseScan with(StructType schema, ScanFilters conditions, String first, byte[] mask) {
    return new FuseScan(session, snapshot, columns, metadata, schema, conditions, first, keyColumns, mask, partitionColumns);
  }

  /** Reads the parts of `_metadata` and of columns that are partly constant in their places; itself if there are none. */
  public FuseScan flat() {
    StructType shared = PartlyConstant.shared(snapshot.listing, snapshot.stored(columns));
    boolean hasParts = shared.length() == 0 || readSchema.getFieldIndex(shared.fields()[0].name()).isDefined();
    if (hasParts && (metadata.isEmpty() || snapshot.metadataColumn(readSchema) == null)) return this;
    return with(schemaWith(metadata), filters, top, blockMask);
  }

  /** The plan `relation` over the same scan, whose tasks read one value of each of these columns of it. */
  public LogicalPlan keyedIn(LogicalPlan relation, List<Attribute> keys) {
    FuseScan keyed = new FuseScan(session, snapshot, columns, metadata, readSchema, filters, top, keyColumns, blockMask, stored(keys));
    Object[] arguments = new Object[relation.productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = relation.productElement(i) == this ? keyed : relation.productElement(i);
    arguments[KEY_GROUPED_PARTITIONING] = scala.Option.apply(ScalaLists.toScala(keys));
    return (LogicalPlan) relation.makeCopy(arguments);
  }

  /** Columns of the table, by the names that files have for them. */
  private StructType stored(List<Attribute> keys) {
    StructType named = new StructType();
    for (Attribute key : keys) named = named.add(snapshot.schema.apply(key.name()));
    return snapshot.stored(named);
  }

  public boolean isKeyed() { return partitionColumns.length() > 0; }

  /** Whether each file that is of a partition has one value of this column. */
  public boolean isPartitionedBy(String column) {
    scala.Option<Object> position = snapshot.schema.getFieldIndex(column);
    return position.isDefined() && snapshot.listing.partitions.has(snapshot.storedSchema.fields()[((Integer) position.get()).intValue()].name());
  }

  /** How many different values of these columns are read; -1 where a file may have many. */
  public int partitionCount(List<Attribute> keys) {
    Set<InternalRow> found = snapshot.listing.partitions.distinct(blocks(votes()), stored(keys));
    return found == null ? -1 : found.size();
  }

  public int tasksAtOnce() { return FileRange.tasksAtOnce(session); }

  /** Reads flat columns, and which of the rows no longer count. */
  public FuseScan tellingDeletedRows() {
    FileMetadata telling = metadata.tellingDeletedRows();
    return new FuseScan(session, snapshot, columns, telling, schemaWith(telling), filters, top, keyColumns, blockMask, partitionColumns);
  }

  private StructType schemaWith(FileMetadata parts) {
    StructType stored = snapshot.stored(columns);
    StructType schema = new StructType();
    int inFiles = snapshot.storedIn(stored, true).length();
    for (int i = 0; i < inFiles; i++) schema = schema.add(PartlyConstant.held(snapshot.listing, columns.fields()[i], stored.fields()[i].name()));
    for (StructField part : parts.read().fields()) schema = schema.add(part);
    for (int i = inFiles; i < columns.length(); i++) schema = schema.add(columns.fields()[i]);
    for (StructField part : PartlyConstant.shared(snapshot.listing, stored).fields()) schema = schema.add(part);
    for (StructField part : parts.constants().fields()) schema = schema.add(part);
    return schema;
  }

  public boolean isRestricted() { return blockMask != null; }

  public List<Expression> filters() { return runtimeFilters.expressions; }

  /** The request to prune by what is known by now, as JSON. */
  public String request() { return request(runtimeFilters); }

  private String request(ScanFilters known) {
    Json request = snapshot.openRequest(known.json == null ? "[]" : known.json);
    if (top != null) request.key("top").json(top);
    return request.close('}').toString();
  }

  /** Asked for once, unless there was no answer: Spark wants to know for each description, estimate and plan. */
  private synchronized BlockMask votes() {
    ScanFilters known = runtimeFilters;
    if (votes != null && votedOn == known) return votes;
    votes = known.json == null && top == null ? BlockMask.readAll(null) : PythonCallback.requestMask(snapshot.callbackKey, request(known), snapshot.listing.fileCount());
    votedOn = votes.refusal() == null ? known : null;
    return votes;
  }

  /** The numbers of the blocks to read. */
  private List<Integer> blocks(BlockMask votes) {
    List<Integer> blocks = new ArrayList<Integer>();
    for (int i = 0; i < snapshot.listing.fileCount(); i++) {
      boolean mayRead = blockMask == null || ((blockMask[i >> 3] >> (i & 7)) & 1) == 1;
      if (mayRead && votes.mustRead(i)) blocks.add(Integer.valueOf(i));
    }
    return blocks;
  }

  /** Whether Python can be asked for its rows: whole columns of ours, by conditions that are known before the query runs. */
  public boolean mayGiveRows() {
    if (filters.json == null || runtimeFilters != filters || blockMask != null) return false;
    if (columns.length() == 0 || readSchema.length() != columns.length()) return false;
    for (StructField field : columns.fields()) if (!field.dataType().sameType(snapshot.schema.apply(field.name()).dataType())) return false;
    return snapshot.asksIndexes();
  }

  /** Whether what votes left is so little that the driver reads it by itself. */
  public boolean fits(RowLimits limits) {
    BlockMask votes = votes();
    long least = votes.certainRows * 8L * (1 + columns.length());
    // Files without a seal are others', of which only Spark's reader is known to read what Spark does.
    for (Integer block : blocks(votes)) if (snapshot.listing.seal(block.intValue()) == 0L) return false;
    return votes.refusal() == null && least <= limits.maxBytes && limits.allow(votes, driverBytes(votes));
  }

  /** The rows that Python finds; unless `exact`, perhaps more than the filters are true on. Raises what goes wrong. */
  public List<InternalRow> rows(RowLimits limits, boolean exact) throws Exception {
    String pruning = request(filters);
    Json request = new Json().json(pruning.substring(0, pruning.length() - 1)).key("columns").open('[');
    for (String name : readSchema.fieldNames()) request.text(name);
    request.close(']').key("exact").bool(exact).key("max_bytes").json(String.valueOf(limits.maxBytes)).key("seconds").json(String.valueOf(limits.deadlineMilliseconds / 1000.0));
    return PythonCallback.requestRows(snapshot.callbackKey, request.close('}').toString(), limits, readSchema);
  }

  private List<FileRange> ranges(BlockMask votes, List<Integer> blocks) {
    List<FileRange> ranges = new ArrayList<FileRange>();
    StructType constants = snapshot.shared(snapshot.stored(columns));
    for (Integer block : blocks) {
      int file = block.intValue();
      ranges.addAll(FileRange.of(snapshot.listing, file, votes.ranges(file), Constants.of(snapshot.listing, file, constants, metadata)));
    }
    return ranges;
  }

  public StructType readSchema() { return readSchema; }

  public String description() {
    BlockMask votes = votes();
    String zones = votes.zonesTotal == 0 ? "" : ", " + votes.zonesRead + " of " + votes.zonesTotal + " zones";
    String bytes = Utils.bytesToString(rangeBytes(votes)) + " of " + Utils.bytesToString(snapshot.listing.totalBytes());
    return "fuse " + snapshot + ", " + blocks(votes).size() + " of " + snapshot.listing.fileCount() + " blocks" + zones + ", " + bytes;
  }

  public CustomMetric[] supportedCustomMetrics() { return ScanMetrics.supported(); }

  public CustomTaskMetric[] reportDriverMetrics() { return ScanMetrics.measured(rangeBytes(votes()), snapshot.listing.totalBytes()); }

  /** Or Spark would plan partitions to ask them, before joins have said which. */
  public Scan.ColumnarSupportMode columnarSupportMode() {
    boolean columnar = BlockReader.isColumnar(session, snapshot, columnsInFiles(), constants());
    return columnar ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  /** Estimates what votes left, which is more rows than the filters are true on. Asked for by each plan that Spark tries. */
  public synchronized Statistics estimateStatistics() {
    BlockMask votes = votes();
    if (votes == estimatedVotes && (estimateHasColumns || !ScanStatistics.asksForColumns())) return estimate;
    String pruning = request();
    Json request = new Json().json(pruning.substring(0, pruning.length() - 1)).key("statistics").open('[');
    for (String name : columns.fieldNames()) request.text(name);
    estimate = ScanStatistics.of(readBytes(votes), readRows(votes), snapshot.callbackKey, request.close(']').close('}').toString(), columns);
    estimateHasColumns = ScanStatistics.asksForColumns();
    estimatedVotes = votes.refusal() == null ? votes : null;
    return estimate;
  }

  /** The rows of the blocks that are read; of one that is read in part as many as it has bytes of it. */
  private long readRows(BlockMask votes) {
    double rows = 0.0;
    for (Integer block : blocks(votes)) {
      long bytes = 0L;
      for (long[] range : votes.ranges(block.intValue())) bytes += range[1];
      double share = bytes == 0L ? 1.0 : Math.min(1.0, (double) bytes / snapshot.listing.fileSize(block.intValue()));
      rows += snapshot.listing.rows(block.intValue()) * share;
    }
    return Math.round(rows);
  }

  private long rangeBytes(BlockMask votes) {
    long bytes = 0L;
    for (Integer block : blocks(votes)) { // without their constants: deletion vectors would be inflated each time
      for (FileRange range : FileRange.of(snapshot.listing, block.intValue(), votes.ranges(block.intValue()), null)) bytes += range.length();
    }
    return bytes;
  }

  private long readBytes(BlockMask votes) { return bytesOf(votes, columns.defaultSize()); }

  /** What the driver reads: of a zone's eight pages one that has the row that is sought; all of columns of conditions, unless votes name rows. */
  private long driverBytes(BlockMask votes) {
    double pages = Math.min(1.0, Math.max(1.0, votes.namedRows / Math.max(1.0, votes.zonesRead)) / PAGES_OF_ZONE);
    if (pages < 1.0) return (long) (readBytes(votes) * pages);
    Set<String> known = new HashSet<String>();
    for (Expression filter : filters.expressions) for (Attribute column : ScalaLists.toJava(filter.references().toSeq())) known.add(column.name());
    double width = 0.0;
    for (StructField field : columns.fields()) width += field.dataType().defaultSize() / (known.contains(field.name()) ? 1.0 : PAGES_OF_ZONE);
    return bytesOf(votes, width);
  }

  /** Bytes of columns of this width, by Spark's guess, as for its own files; a row has 8 bytes besides. */
  private long bytesOf(BlockMask votes, double width) {
    return (long) (rangeBytes(votes) * (width + 8.0) / (snapshot.schema.defaultSize() + 8.0));
  }

  /** What reading costs, in bytes: rules ask again and again, and a table may have a million blocks. */
  private synchronized long cost() {
    BlockMask votes = votes();
    if (votes != costedVotes) {
      cost = readBytes(votes) + blocks(votes).size() * SQLConf.get().filesOpenCostInBytes();
      costedVotes = votes.refusal() == null ? votes : null;
    }
    return cost;
  }

  /** Why it does not pay to wait for the keys that a join compares with `key`; null if it does. */
  public String refusalOfKeys(Expression key) {
    String least = SQLConf.get().getConfString(LEAST_BYTES, DEFAULT_LEAST_BYTES);
    if (cost() < JavaUtils.byteStringAsBytes(least)) return "what is left is read sooner than keys are had (" + LEAST_BYTES + ")";
    return snapshot.mayPruneByKeys(key) ? null : "no index understands it, and by their bounds most zones may hold any key";
  }

  public NamedReference[] filterAttributes() {
    List<NamedReference> names = new ArrayList<NamedReference>();
    for (String name : columns.fieldNames()) if (readSchema.getFieldIndex(name).isDefined()) names.add(Expressions.column("`" + name.replace("`", "``") + "`"));
    return (NamedReference[]) names.toArray(new NamedReference[0]);
  }

  /** Whether keys of this column's joins were known when it was planned. */
  public boolean knewKeysOf(String column) { return keyColumns.contains(column); }

  /** Whether joins have yet to say what they find out. */
  public boolean awaitsKeys() { return !filtered && keyColumns.isEmpty(); }

  /** Whether keys of this column's joins are asked about: not where they turned out to be too many. */
  public boolean mayAskKeysOf(String column) {
    if (!filtered) return true;
    List<Expression> found = runtimeFilters.expressions.subList(filters.expressions.size(), runtimeFilters.expressions.size());
    for (Expression filter : found) if (((Attribute) filter.references().head()).name().equals(column)) return true;
    return false;
  }

  public void filter(Predicate[] predicates) {
    filtered = true;
    runtimeFilters = filters.and(RuntimeFilters.of(predicates, columns), snapshot);
  }

  public Batch toBatch() { return this; }

  public InputPartition[] planInputPartitions() {
    if (flat() != this) throw new IllegalStateException("PruneRule failed, or is excluded: " + this + " reads columns that it makes of their parts");
    BlockMask votes = votes();
    List<Integer> blocks = blocks(votes);
    snapshot.listing.checkDeletedRowsAreTold(blocks, metadata);
    BlockSeals.verify(session.sessionState().newHadoopConf(), snapshot.listing, blocks);
    if (!isKeyed() || snapshot.listing.partitions.distinct(blocks, partitionColumns) == null) return FileRange.partitions(session, ranges(votes, blocks), metadata);
    Map<InternalRow, List<FileRange>> ranges = new LinkedHashMap<InternalRow, List<FileRange>>();
    for (Integer block : blocks) {
      InternalRow key = snapshot.listing.partitions.of(block.intValue(), partitionColumns);
      if (!ranges.containsKey(key)) ranges.put(key, new ArrayList<FileRange>());
      ((List<FileRange>) ranges.get(key)).addAll(ranges(votes, Collections.singletonList(block)));
    }
    return KeyedFilePartition.partitions(session, ranges, metadata);
  }

  public synchronized PartitionReaderFactory createReaderFactory() {
    if (readerFactory == null) {
      Filter[] pushed = filters.forParquet(snapshot, columns, snapshot.stored(columns));
      readerFactory = BlockReader.factory(session, snapshot, columnsInFiles(), constants(), pushed);
    }
    return readerFactory;
  }

  private StructType columnsInFiles() {
    StructType read = snapshot.storedIn(snapshot.stored(columns), true);
    for (StructField part : metadata.read().fields()) read = read.add(part);
    return read;
  }

  /** Columns of which each range of a file has one value. */
  private StructType constants() {
    StructType constants = snapshot.shared(snapshot.stored(columns));
    for (StructField part : metadata.constants().fields()) constants = constants.add(part);
    return constants;
  }

  /** By what is read: two scans of one snapshot by the same conditions are one plan to caching and to exchange reuse. */
  public boolean equals(Object other) {
    if (!(other instanceof FuseScan)) return false;
    FuseScan that = (FuseScan) other;
    return snapshot.equals(that.snapshot) && readSchema.equals(that.readSchema) && Objects.equals(runtimeFilters.json, that.runtimeFilters.json)
        && Objects.equals(top, that.top) && Arrays.equals(blockMask, that.blockMask) && partitionColumns.equals(that.partitionColumns);
  }

  public int hashCode() { return Objects.hash(new Object[] {snapshot, columns}); }

  public String toString() { return "FuseScan[" + snapshot + "]"; }
}
