package fuse_index.spark.java.read;

import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What a scan is asked for: which columns of which snapshot, on what conditions, and which rows of these are enough. Never changed: copies are. */
public class ScanRequest implements Cloneable {
  public final TableSnapshot snapshot;
  /** Columns of the table. */
  public final StructType columns;
  private FileMetadata metadata;
  /** What is read, in Spark's order: columns, or the parts that they are made of. */
  private StructType readSchema;
  private ScanFilters filters;
  /** How many rows are wanted, and by what order they are the first, as OrderedLimit writes it; null: all. */
  private String top;
  /** Columns whose join keys are among `filters`. */
  private Set<String> keyColumns = Collections.<String>emptySet();
  /** A bit for each block that may be read; null: all. */
  private byte[] blockMask;
  /** By these, under their stored names, each partition that a task reads has one value; empty: it has many. */
  private StructType partitionColumns = new StructType();

  /** `readSchema`: some of the table's columns, of which nested fields may be left out, and perhaps `_metadata`. */
  public ScanRequest(TableSnapshot snapshot, StructType readSchema) {
    this.snapshot = snapshot;
    this.columns = snapshot.readOrder(snapshot.ownColumns(readSchema));
    this.metadata = new FileMetadata(snapshot.metadataColumn(readSchema));
    this.readSchema = snapshot.readOrder(readSchema);
    this.filters = new ScanFilters(Collections.<Expression>emptyList(), snapshot);
  }

  private ScanRequest(TableSnapshot snapshot, ScanRequest other) {
    this.snapshot = snapshot;
    this.columns = other.columns;
    this.metadata = other.metadata;
    this.readSchema = other.readSchema;
    this.filters = new ScanFilters(other.filters.expressions, snapshot);
    this.top = other.top;
    this.keyColumns = other.keyColumns;
    this.partitionColumns = other.partitionColumns;
  }

  public FileMetadata metadata() { return metadata; }

  public StructType readSchema() { return readSchema; }

  public ScanFilters filters() { return filters; }

  public String top() { return top; }

  public StructType partitionColumns() { return partitionColumns; }

  private ScanRequest copy() {
    try {
      return (ScanRequest) super.clone();
    } catch (CloneNotSupportedException never) {
      throw new IllegalStateException(never);
    }
  }

  /** Rows on which these conditions are true, in the place of those of the former conditions; itself if it knows them. */
  public ScanRequest withFilters(List<Expression> conditions) {
    if (filters.areSame(conditions)) return this;
    ScanFilters others = new ScanFilters(conditions, snapshot);
    if (Objects.equals(others.json, filters.json)) return this;
    ScanRequest copy = copy();
    copy.filters = others;
    copy.top = null;
    return copy;
  }

  /** Rows of some blocks: those of which there is no stored state. */
  public ScanRequest restrictedTo(byte[] mask) {
    ScanRequest copy = copy();
    copy.blockMask = mask;
    copy.top = null;
    return copy;
  }

  /** No more than these first rows; itself if it knows. */
  public ScanRequest withTop(String first) {
    if (first.equals(top)) return this;
    ScanRequest copy = copy();
    copy.top = first;
    return copy;
  }

  /** Rows with these keys of joins, `column IN (...)`, which are known before the scan is planned. */
  public ScanRequest withKeys(List<Expression> memberships) {
    ScanRequest copy = copy();
    copy.keyColumns = new HashSet<String>(keyColumns);
    for (Expression membership : memberships) copy.keyColumns.add(((Attribute) membership.references().head()).name());
    copy.filters = filters.and(memberships, snapshot);
    return copy;
  }

  /** Rows of another version of the table, with the same columns. */
  public ScanRequest at(TableSnapshot other) { return new ScanRequest(other, this); }

  /** Rows by tasks that read one value of each of these columns. */
  public ScanRequest keyedBy(List<Attribute> keys) {
    ScanRequest copy = copy();
    copy.partitionColumns = stored(keys);
    return copy;
  }

  /** The parts of `_metadata` and of columns that are partly constant in their places; itself if there are none. */
  public ScanRequest flat() {
    StructType shared = PartlyConstant.shared(snapshot.listing, snapshot.stored(columns));
    boolean hasParts = shared.length() == 0 || readSchema.getFieldIndex(shared.fields()[0].name()).isDefined();
    return hasParts && (metadata.isEmpty() || snapshot.metadataColumn(readSchema) == null) ? this : flatWith(metadata);
  }

  /** Flat columns, and which of the rows no longer count. */
  public ScanRequest tellingDeletedRows() { return flatWith(metadata.tellingDeletedRows()); }

  private ScanRequest flatWith(FileMetadata parts) {
    StructType stored = snapshot.stored(columns);
    StructType schema = new StructType();
    int inFiles = snapshot.storedIn(stored, true).length();
    for (int i = 0; i < inFiles; i++) schema = schema.add(PartlyConstant.held(snapshot.listing, columns.fields()[i], stored.fields()[i].name()));
    for (StructField part : parts.read().fields()) schema = schema.add(part);
    for (int i = inFiles; i < columns.length(); i++) schema = schema.add(columns.fields()[i]);
    for (StructField part : PartlyConstant.shared(snapshot.listing, stored).fields()) schema = schema.add(part);
    for (StructField part : parts.constants().fields()) schema = schema.add(part);
    ScanRequest copy = copy();
    copy.metadata = parts;
    copy.readSchema = schema;
    return copy;
  }

  /** What is read of files, by the names that they have for it. */
  public StructType columnsInFiles() {
    StructType read = snapshot.storedIn(snapshot.stored(columns), true);
    for (StructField part : metadata.read().fields()) read = read.add(part);
    return read;
  }

  /** Columns of which each range of a file has one value. */
  public StructType constants() {
    StructType constants = snapshot.shared(snapshot.stored(columns));
    for (StructField part : metadata.constants().fields()) constants = constants.add(part);
    return constants;
  }

  /** Columns of the table, by the names that files have for them. */
  private StructType stored(List<Attribute> keys) {
    StructType named = new StructType();
    for (Attribute key : keys) named = named.add(snapshot.schema.apply(key.name()));
    return snapshot.stored(named);
  }

  public boolean isRestricted() { return blockMask != null; }

  public boolean isKeyed() { return partitionColumns.length() > 0; }

  /** Whether keys of this column's joins are among the conditions. */
  public boolean knowsKeysOf(String column) { return keyColumns.contains(column); }

  public boolean knowsKeys() { return !keyColumns.isEmpty(); }

  /** The different values of these columns in blocks; null where a block may have many. */
  public Set<InternalRow> partitions(List<Integer> blocks, List<Attribute> keys) { return snapshot.listing.partitions.distinct(blocks, stored(keys)); }

  /** Whether Python can be asked for the rows: whole columns of ours, of any block. */
  public boolean mayGiveRows() {
    if (filters.json == null || blockMask != null || columns.length() == 0 || readSchema.length() != columns.length()) return false;
    for (StructField field : columns.fields()) if (!field.dataType().sameType(snapshot.schema.apply(field.name()).dataType())) return false;
    return snapshot.asksIndexes();
  }

  /** What Python is asked by these conditions, as JSON that is still open: for votes, or for more by further members. */
  public Json open(String question, ScanFilters known) {
    Json request = snapshot.openQuestion(question, known.json == null ? "[]" : known.json);
    return top == null ? request : request.key("top").json(top);
  }

  /** The numbers of the blocks to read. */
  public List<Integer> blocks(BlockMask votes) {
    List<Integer> blocks = new ArrayList<Integer>();
    for (int i = 0; i < snapshot.listing.fileCount(); i++) {
      boolean mayRead = blockMask == null || ((blockMask[i >> 3] >> (i & 7)) & 1) == 1;
      if (mayRead && votes.mustRead(i)) blocks.add(Integer.valueOf(i));
    }
    return blocks;
  }

  /** What is to be read of the files of some blocks. */
  public List<FileRange> ranges(BlockMask votes, List<Integer> blocks) {
    List<FileRange> ranges = new ArrayList<FileRange>();
    StructType constants = snapshot.shared(snapshot.stored(columns));
    for (Integer block : blocks) {
      int file = block.intValue();
      ranges.addAll(FileRange.of(snapshot.listing, file, votes.ranges(file), Constants.of(snapshot.listing, file, constants, metadata)));
    }
    return ranges;
  }

  /** Whether the same is read, but for conditions. */
  public boolean equals(Object other) {
    if (!(other instanceof ScanRequest)) return false;
    ScanRequest that = (ScanRequest) other;
    return snapshot.equals(that.snapshot) && readSchema.equals(that.readSchema) && Objects.equals(top, that.top)
        && Arrays.equals(blockMask, that.blockMask) && partitionColumns.equals(that.partitionColumns);
  }

  public int hashCode() { return Objects.hash(new Object[] {snapshot, columns}); }
}
