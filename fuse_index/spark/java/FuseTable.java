import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One of our tables as Spark's DataSource V2 knows it. A query reads the snapshot that it had when the query was planned. */
public class FuseTable implements SupportsRead, SupportsMetadataColumns {
  public final SparkSession session;
  private final String name;
  private volatile TableSnapshot snapshot;

  public FuseTable(SparkSession session, String name, TableSnapshot snapshot) {
    this.session = session;
    this.name = name;
    this.snapshot = snapshot;
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
  public StructType schema() { return snapshot.schema; }

  public Set<TableCapability> capabilities() {
    Set<TableCapability> capabilities = new HashSet<TableCapability>();
    capabilities.add(TableCapability.BATCH_READ);
    return capabilities;
  }

  public MetadataColumn[] metadataColumns() { return new MetadataColumn[] {new FileMetadata.Column()}; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new FuseScanBuilder(session, snapshot); }

  public boolean equals(Object other) { return other instanceof FuseTable && snapshot.equals(((FuseTable) other).snapshot); }

  public int hashCode() { return snapshot.hashCode(); }
}
