package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** A catalogue of a session in which every statement is a question to Python: `endpoint.py` answers. */
@SuppressWarnings("deprecation")
public class FuseCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog, FunctionCatalog {
  private static final String HEAD = "null";
  protected final CatalogClient client;

  public FuseCatalog(SparkSession session, String name, String callbackKey) { this.client = new CatalogClient(session, name, callbackKey); }

  public void initialize(String given, CaseInsensitiveStringMap options) {}

  public String name() { return client.catalog; }

  public Set<TableCatalogCapability> capabilities() { return Collections.singleton(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE); }

  public Table loadTable(Identifier table) { return load(table, HEAD, "read"); }

  public Table loadTable(Identifier table, String version) { return load(table, new Json().text(version).toString(), "read"); }

  public Table loadTable(Identifier table, long microseconds) { return load(table, String.valueOf(microseconds), "read"); }

  public Table loadTable(Identifier table, Set<TableWritePrivilege> privileges) { return load(table, HEAD, "write"); }

  /** `at`: JSON, a text that names a version, or microseconds, or HEAD. Python itself says why there is nothing to read. */
  private Table load(Identifier table, String at, String purpose) {
    Json request = client.request(Protocol.LOAD_TABLE, table).key("at").json(at).key("purpose").text(purpose);
    TableChange[] held = SchemaEvolution.taken(table);
    byte[] reply = client.ask(held == null ? request : client.changes(request, held));
    if (reply.length == 0) Platform.throwException(new NoSuchTableException(table));
    return client.table(table, reply);
  }

  public boolean tableExists(Identifier table) { return client.ask(client.request(Protocol.TABLE_EXISTS, table)).length > 0; }

  public Identifier[] listTables(String[] namespace) { return client.identifiers(client.request(Protocol.LIST_TABLES, namespace)); }

  public Table createTable(Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    client.ask(client.definition(Protocol.CREATE_TABLE, table, "create", columns, partitions, properties));
    return load(table, HEAD, "write");
  }

  public StagedTable stageCreate(Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create", table, columns, partitions, properties);
  }

  public StagedTable stageReplace(Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    if (!tableExists(table)) Platform.throwException(new NoSuchTableException(table));
    return stage("replace", table, columns, partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create or replace", table, columns, partitions, properties);
  }

  private StagedTable stage(String mode, Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return (StagedTable) client.table(table, client.ask(client.definition(Protocol.STAGE_TABLE, table, mode, columns, partitions, properties)));
  }

  public Table alterTable(Identifier table, TableChange... changes) {
    if (Versions.isSchemaEvolution()) {
      SchemaEvolution.hold(table, changes);
      return null; // which nobody looks at: Spark loads it
    }
    StructType columns = CatalogClient.setsDefault(changes) ? load(table, HEAD, "write").schema() : new StructType();
    client.ask(client.changes(client.request(Protocol.ALTER_TABLE, table), changes, columns));
    return load(table, HEAD, "write");
  }

  public boolean dropTable(Identifier table) { return client.ask(client.request(Protocol.DROP_TABLE, table).key("purge").bool(false)).length > 0; }

  public boolean purgeTable(Identifier table) { return client.ask(client.request(Protocol.DROP_TABLE, table).key("purge").bool(true)).length > 0; }

  public void renameTable(Identifier table, Identifier renamed) {
    client.ask(client.request(Protocol.RENAME_TABLE, table).key("to").texts(CatalogClient.parts(renamed)));
  }

  public String[][] listNamespaces() { return listNamespaces(new String[0]); }

  public String[][] listNamespaces(String[] namespace) {
    List<String[]> found = new ArrayList<String[]>();
    for (JsonNode each : client.json(client.request(Protocol.LIST_NAMESPACES, namespace))) found.add(CatalogClient.texts(each));
    return (String[][]) found.toArray(new String[0][]);
  }

  public boolean namespaceExists(String[] namespace) { return client.ask(client.request(Protocol.NAMESPACE_EXISTS, namespace)).length > 0; }

  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return CatalogClient.properties(client.json(client.request(Protocol.LOAD_NAMESPACE, namespace)));
  }

  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    client.ask(CatalogClient.object(client.request(Protocol.CREATE_NAMESPACE, namespace).key("properties"), metadata));
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    Map<String, String> updates = new HashMap<String, String>();
    List<String> removals = new ArrayList<String>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty) {
        updates.put(((NamespaceChange.SetProperty) change).property(), ((NamespaceChange.SetProperty) change).value());
      } else {
        removals.add(((NamespaceChange.RemoveProperty) change).property());
      }
    }
    Json request = CatalogClient.object(client.request(Protocol.ALTER_NAMESPACE, namespace).key("updates"), updates).key("removals");
    client.ask(request.texts((String[]) removals.toArray(new String[0])));
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return client.ask(client.request(Protocol.DROP_NAMESPACE, namespace).key("cascade").bool(cascade)).length > 0;
  }


  /** None: what plugins add are functions of the session. */
  public Identifier[] listFunctions(String[] namespace) { return new Identifier[0]; }

  public UnboundFunction loadFunction(Identifier function) {
    Platform.throwException(new NoSuchFunctionException(function));
    return null; // never
  }

  public UnboundProcedure loadProcedure(Identifier procedure) {
    return new FuseProcedure(client, procedure.name(), client.json(client.request(Protocol.DESCRIBE_PROCEDURE, procedure)));
  }

  public Identifier[] listProcedures(String[] namespace) { return client.identifiers(client.request(Protocol.LIST_PROCEDURES, namespace)); }
}
