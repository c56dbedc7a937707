package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.index.SupportsIndex;
import org.apache.spark.sql.connector.catalog.index.TableIndex;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as a catalogue has it: with properties, a clustering key, and statements about its indexes. */
public class CatalogFuseTable extends FuseTable implements SupportsIndex, SupportsSchemaEvolution {
  protected final CatalogClient client;
  protected final Identifier identifier;
  private final JsonNode about;

  public CatalogFuseTable(CatalogClient client, Identifier identifier, String shown, TableSnapshot snapshot, JsonNode about) {
    super(client.session, shown, snapshot, client.callbackKey);
    this.client = client;
    this.identifier = identifier;
    this.about = about;
  }

  public Map<String, String> properties() { return CatalogClient.properties(about.get("properties")); }

  public String commandKey() {
    if (about.has("read_only")) throw StatementError.readOnly(about.get("read_only").asText());
    return super.commandKey();
  }

  /** Where it is, as options of `format("fuse")`. */
  public Map<String, String> place() { return CatalogClient.properties(about.get("place")); }

  public Set<TableCapability> capabilities() {
    Set<TableCapability> capabilities = new HashSet<TableCapability>(super.capabilities());
    capabilities.add(TableCapability.MICRO_BATCH_READ);
    capabilities.add(TableCapability.STREAMING_WRITE);
    if (Versions.SCHEMA_EVOLUTION != null) capabilities.add(Versions.SCHEMA_EVOLUTION);
    return capabilities;
  }

  /** New columns and wider types; values of other types are cast to those of the table, as ever. */
  public boolean supportsColumnChange(TableChange.ColumnChange change) {
    if (change instanceof TableChange.AddColumn) return true;
    if (!(change instanceof TableChange.UpdateColumnType)) return false;
    return client.ask(client.changes(client.request(Protocol.WIDENS_COLUMN, identifier), new TableChange[] {change})).length > 0;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    CaseInsensitiveStringMap others = NamedStreams.without(options, "versionAsOf", "timestampAsOf");
    return others.isEmpty() ? new NamedStreams.ScanBuilderOf(this) : new NamedStreams.OptionScan(this, others);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new NamedStreams.WriteBuilderOf(this, info); }

  public Transform[] partitioning() {
    List<Transform> partitions = new ArrayList<Transform>();
    for (JsonNode column : about.get("partition_by")) partitions.add(Expressions.identity(column.asText()));
    if (!partitions.isEmpty()) return (Transform[]) partitions.toArray(new Transform[0]);
    List<NamedReference> columns = new ArrayList<NamedReference>();
    for (JsonNode column : about.get("cluster_by")) columns.add(Expressions.column(column.asText()));
    if (columns.isEmpty()) return new Transform[0];
    return new Transform[] {new ClusterByTransform(ScalaLists.toScala(columns))};
  }

  public void createIndex(
      String name, NamedReference[] columns, Map<NamedReference, Map<String, String>> columnOptions, Map<String, String> options) {
    Json request = client.request(Protocol.CREATE_INDEX, identifier).key("index").text(name).key("columns").open('[');
    for (NamedReference column : columns) {
      Map<String, String> own = (Map<String, String>) columnOptions.get(column);
      request.open('{').key("path").texts(column.fieldNames());
      if (own != null) CatalogClient.object(request.key("options"), own);
      request.close('}');
    }
    client.ask(CatalogClient.object(request.close(']').key("options"), options));
  }

  public void dropIndex(String name) {
    client.ask(client.request(Protocol.DROP_INDEX, identifier).key("index").text(name));
  }

  public boolean indexExists(String name) {
    for (JsonNode index : about.get("indexes")) if (index.asText().equals(name)) return true;
    return false;
  }

  public TableIndex[] listIndexes() { return new TableIndex[0]; }
}
