package fuse_index.spark.java.catalog;

import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsDelete;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What there is to see of a table, as a table of its own, which nobody writes to. */
public class MetadataTable implements SupportsRead, SupportsWrite, SupportsDelete, SupportsRowLevelOperations {
  private final CatalogClient client;
  private final Identifier identifier;
  private final String shown;
  private final String at;
  private final LocalRows rows;

  public MetadataTable(CatalogClient client, Identifier identifier, String shown, String at, LocalRows rows) {
    this.client = client;
    this.identifier = identifier;
    this.shown = shown;
    this.at = at;
    this.rows = rows;
  }

  public String name() { return shown; }

  @SuppressWarnings("deprecation")
  public StructType schema() { return rows.readSchema(); }

  public Set<TableCapability> capabilities() {
    return new HashSet<TableCapability>(Arrays.asList(new TableCapability[] {TableCapability.BATCH_READ, TableCapability.BATCH_WRITE,
        TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC}));
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new Rows(this, options); }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { throw refusal(); }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) { throw refusal(); }

  public boolean canDeleteWhere(Filter[] filters) { throw refusal(); }

  public void deleteWhere(Filter[] filters) { throw refusal(); }

  public boolean truncateTable() { throw refusal(); }

  private RuntimeException refusal() {
    return StatementError.readOnly(shown + " shows what there is to see of a table, and cannot be written to: change the table");
  }

  /** With options it is another question to Python: since when changes are wanted. */
  private Scan scan(Map<String, String> options) {
    if (options.isEmpty()) return rows;
    Json request = CatalogClient.object(client.request(Protocol.READ_METADATA, identifier).key("at").json(at).key("options"), options);
    return new LocalRows(client.ask(request));
  }

  /** The rows, asked for when they are wanted. */
  public static class Rows implements ScanBuilder {
    private final MetadataTable table;
    private final Map<String, String> options;

    public Rows(MetadataTable table, CaseInsensitiveStringMap options) {
      this.table = table;
      this.options = options.asCaseSensitiveMap();
    }

    public Scan build() { return table.scan(options); }
  }
}
