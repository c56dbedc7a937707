package fuse_index.spark.java.write;

import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One of our tables as Spark's DataSource V2 knows it. A query reads the snapshot that it had when the query was planned, and a
 * statement that changes rows begins there.
 */
public class FuseTable implements SupportsRead, SupportsMetadataColumns, SupportsWrite, SupportsRowLevelOperations, TruncatableTable {
  public final SparkSession session;
  private final String name;
  private volatile TableSnapshot snapshot;
  /** Who does what statements ask for; null in no catalogue. */
  private final String commandKey;

  /** In no catalogue: nothing can be changed through it. */
  public FuseTable(SparkSession session, String name, TableSnapshot snapshot) { this(session, name, snapshot, null); }

  public FuseTable(SparkSession session, String name, TableSnapshot snapshot, String commandKey) {
    this.session = session;
    this.name = name;
    this.snapshot = snapshot;
    this.commandKey = commandKey;
  }

  /** The table of a plan that reads one of ours, or writes to it; null of any other. */
  public static FuseTable of(Object plan) {
    boolean ours = plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof FuseTable;
    return ours ? (FuseTable) ((DataSourceV2Relation) plan).table() : null;
  }

  public TableSnapshot snapshot() { return snapshot; }

  /** A plan that scans it, in no catalogue. */
  public LogicalPlan relation() {
    scala.Option<CatalogPlugin> noCatalog = scala.Option.empty();
    scala.Option<Identifier> noName = scala.Option.empty();
    return DataSourceV2Relation$.MODULE$.create(this, noCatalog, noName);
  }

  /** Moves to the head of the branch, for every DataFrame made from this. Raises where that is not possible. */
  public void refresh() { snapshot = snapshot.refreshed(); }

  public String name() { return name; }

  @SuppressWarnings("deprecation")
  public StructType schema() { return snapshot.declaredSchema; }

  public Set<TableCapability> capabilities() {
    // BATCH_WRITE too, without which Spark refuses to overwrite partitions before it asks us.
    return new HashSet<TableCapability>(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ, TableCapability.BATCH_WRITE,
        TableCapability.V1_BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC}));
  }

  public MetadataColumn[] metadataColumns() { return new MetadataColumn[] {new FileMetadata.Column()}; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new FuseScanBuilder(session, snapshot); }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new FuseWriteBuilder(new RowStatement(this, Protocol.APPEND, info.options()));
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    for (String column : schema().fieldNames()) {
      if (column.equalsIgnoreCase(FileMetadata.COLUMN)) {
        throw StatementError.invalidInput(name + " has a column " + column + ", by which name " + info.command() + " finds where rows lie:"
            + " rename it, or change rows by fuse_index.spark");
      }
    }
    return new FuseRowOperation(new RowStatement(this, info.command().toString().toLowerCase(), info.options()), info.command());
  }

  public boolean truncateTable() {
    new RowStatement(this, Protocol.TRUNCATE, CaseInsensitiveStringMap.empty()).run(null, null);
    return true;
  }

  /** None; said here because since 4.1 two interfaces of ours have each an answer. */
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }

  public CustomMetric[] supportedCustomMetrics() { return new CustomMetric[0]; }

  /** Under which key Python is asked to change it. Raises where that cannot be, and says what to name instead. */
  public String commandKey() {
    if (commandKey == null) {
      throw StatementError.invalidInput(name + " is read, and in no catalogue: change it by its name in a catalogue, such as fuse.`"
          + snapshot.url + "`, or by fuse_index.spark");
    }
    return commandKey;
  }

  public String toString() { return "fuse " + name; }

  /** Whether Spark may make one scan of several: a plan over a table of which it may is another plan. */
  protected boolean isMergeable() { return false; }

  public boolean equals(Object other) {
    return other instanceof FuseTable && isMergeable() == ((FuseTable) other).isMergeable() && snapshot.equals(((FuseTable) other).snapshot);
  }

  public int hashCode() { return snapshot.hashCode(); }
}
