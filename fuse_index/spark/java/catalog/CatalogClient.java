package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.immutable.Seq;

/** What the classes of a catalogue ask Python, as JSON, and what they make of its replies. */
public class CatalogClient {
  /** Names of Spark's functions that give another value to each statement, or session. */
  private static final Pattern DEPENDING = Pattern.compile("\\b(current_\\w+|curdate|now|localtimestamp|unix_timestamp|user|session_user)\\b", Pattern.CASE_INSENSITIVE);
  /** Literals that are of the day on which they are read. */
  private static final Pattern TODAY = Pattern.compile("\\b(date|timestamp\\w*)\\s*['\"]\\s*(now|today|tomorrow|yesterday)\\s*['\"]", Pattern.CASE_INSENSITIVE);

  /** What a header says, read once: a table that nobody has changed comes with the same text each time. */
  public static class Loaded {
    public final JsonNode about;
    public final TableSnapshot snapshot;

    public Loaded(JsonNode about, TableSnapshot snapshot) {
      this.about = about;
      this.snapshot = snapshot;
    }
  }

  public final SparkSession session;
  public final String catalog;
  public final String callbackKey;

  public CatalogClient(SparkSession session, String catalog, String callbackKey) {
    this.session = session;
    this.catalog = catalog;
    this.callbackKey = callbackKey;
  }

  /** The reply to a request whose object is still open. */
  public byte[] ask(Json request) { return (byte[]) PythonCallback.command(callbackKey, request, null); }

  public JsonNode json(Json request) { return parse(new String(ask(request), StandardCharsets.UTF_8)); }

  public static JsonNode parse(String text) {
    try {
      return new ObjectMapper().readTree(text);
    } catch (IOException malformed) {
      throw new IllegalStateException(malformed);
    }
  }

  /** The table of a reply: int length of a header, the header as JSON, and the files, or rows, that it is about. */
  public Table table(Identifier name, byte[] reply) {
    int length = ByteBuffer.wrap(reply).getInt(0);
    String header = new String(reply, 4, length, StandardCharsets.UTF_8);
    String shown = catalog + "." + name;
    Loaded loaded = (Loaded) ReplyMemo.find(callbackKey, header);
    if (loaded == null) {
      byte[] rest = Arrays.copyOfRange(reply, 4 + length, reply.length);
      JsonNode json = parse(header);
      if (json.has("view")) return new MetadataTable(this, name, json.get("shown").asText(), json.get("at").toString(), new LocalRows(rest));
      try {
        loaded = new Loaded(json, TableSnapshot.of(json, rest));
      } catch (IOException malformed) {
        throw new IllegalStateException(malformed);
      }
      if (!json.has("staged")) ReplyMemo.put(callbackKey, header, loaded, reply.length);
    }
    if (loaded.about.has("staged")) return new StagedFuseTable(this, name, shown, loaded.snapshot, loaded.about);
    return new CatalogFuseTable(this, name, shown, loaded.snapshot, loaded.about);
  }

  /** The namespace that names are in without being told, where this is the session's current catalogue. */
  public String[] currentNamespace() {
    CatalogManager manager = session.sessionState().catalogManager();
    return manager.currentCatalog().name().equals(catalog) ? manager.currentNamespace() : new String[0];
  }

  public Json request(String operation, String[] namespace) {
    return new Json().open('{').key("operation").text(operation).key("namespace").texts(namespace);
  }

  public Json request(String operation, Identifier table) {
    return request(operation, table.namespace()).key("name").text(table.name()).key("within").texts(currentNamespace());
  }

  public Identifier[] identifiers(Json request) {
    List<Identifier> found = new ArrayList<Identifier>();
    for (JsonNode each : json(request)) {
      String[] parts = texts(each);
      found.add(Identifier.of((String[]) Arrays.copyOf(parts, parts.length - 1), parts[parts.length - 1]));
    }
    return (Identifier[]) found.toArray(new Identifier[0]);
  }

  /** A request with the columns and properties of a table that is to be. */
  public Json definition(
      String operation, Identifier table, String mode, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Json request = request(operation, table).key("mode").text(mode).key("columns").open('[');
    for (Column column : columns) {
      request.open('{');
      type(request.key("path").open('[').text(column.name()).close(']'), column.dataType(), column.nullable(), column.comment());
      value(request, column.defaultValue()).close('}');
    }
    request.close(']').key("partitioning").open('[');
    for (Transform each : partitions) paths(request.open('{').key("transform").text(each.name()).key("columns"), columnsOf(each)).close('}');
    return object(request.close(']').key("properties"), properties);
  }

  /** The columns of a transform as they stood in the statement: Delta's own tells them in no order as references. */
  private static NamedReference[] columnsOf(Transform transform) {
    List<NamedReference> columns = new ArrayList<NamedReference>();
    for (Expression argument : transform.arguments()) if (argument instanceof NamedReference) columns.add((NamedReference) argument);
    return (NamedReference[]) columns.toArray(new NamedReference[0]);
  }

  public Json changes(Json request, TableChange[] changes) { return changes(request, changes, new StructType()); }

  /** `columns`: those of the table, where a default is set, which is a value of its column's type. */
  public Json changes(Json request, TableChange[] changes, StructType columns) {
    request.key("changes").open('[');
    for (TableChange each : changes) {
      request.open('{').key("change").text(each.getClass().getSimpleName());
      if (each instanceof TableChange.UpdateColumnDefaultValue) newDefault(request, (TableChange.UpdateColumnDefaultValue) each, columns).close('}');
      else change(request, each).close('}');
    }
    return request.close(']');
  }

  public static boolean setsDefault(TableChange[] changes) {
    for (TableChange each : changes) if (each instanceof TableChange.UpdateColumnDefaultValue) return true;
    return false;
  }

  /** SET DEFAULT, by the value that Spark makes of its text; DROP DEFAULT, where there is none. */
  @SuppressWarnings("deprecation")
  private static Json newDefault(Json out, TableChange.UpdateColumnDefaultValue change, StructType columns) {
    String[] path = change.fieldNames();
    String sql = change.newDefaultValue();
    out.key("path").texts(path);
    if (sql == null || sql.isEmpty()) return out;
    for (StructField each : columns.fields()) {
      if (path.length > 1 || !each.name().equals(path[0]) || depends(sql)) continue;
      return constant(out, ResolveDefaultColumns$.MODULE$.analyze(each.name(), each.dataType(), sql, "ALTER TABLE").eval(null));
    }
    return out.key("has_default").bool(true);
  }

  @SuppressWarnings("deprecation")
  private static Json change(Json out, TableChange change) {
    if (change instanceof TableChange.SetProperty) {
      return out.key("name").text(((TableChange.SetProperty) change).property()).key("value").text(((TableChange.SetProperty) change).value());
    }
    if (change instanceof TableChange.RemoveProperty) return out.key("name").text(((TableChange.RemoveProperty) change).property());
    if (change.getClass().getSimpleName().equals("ClusterBy")) return paths(out.key("columns"), clusteringColumns(change));
    if (!(change instanceof TableChange.ColumnChange)) return out;
    out.key("path").texts(((TableChange.ColumnChange) change).fieldNames());
    if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn added = (TableChange.AddColumn) change;
      return position(value(type(out, added.dataType(), added.isNullable(), added.comment()), added.defaultValue()), added.position());
    }
    if (change instanceof TableChange.RenameColumn) return out.key("to").text(((TableChange.RenameColumn) change).newName());
    if (change instanceof TableChange.UpdateColumnType) return out.key("type").json(((TableChange.UpdateColumnType) change).newDataType().json());
    if (change instanceof TableChange.UpdateColumnNullability) {
      return out.key("nullable").bool(((TableChange.UpdateColumnNullability) change).nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment) {
      String comment = ((TableChange.UpdateColumnComment) change).newComment();
      return comment == null ? out : out.key("comment").text(comment);
    }
    if (change instanceof TableChange.UpdateColumnPosition) return position(out, ((TableChange.UpdateColumnPosition) change).position());
    if (change instanceof TableChange.DeleteColumn) return out.key("if_exists").bool(((TableChange.DeleteColumn) change).ifExists().booleanValue());
    return out;
  }

  /** Delta's parser, where a session has it, makes changes of its own of CLUSTER BY, in statements of all catalogues. */
  private static NamedReference[] clusteringColumns(TableChange change) {
    if (change instanceof TableChange.ClusterBy) return ((TableChange.ClusterBy) change).clusteringColumns();
    List<?> columns = ScalaLists.toJava((Seq<?>) ((Product) change).productElement(0));
    return (NamedReference[]) columns.toArray(new NamedReference[0]);
  }

  private static Json type(Json out, DataType type, boolean nullable, String comment) {
    out.key("type").json(type.json()).key("nullable").bool(nullable);
    return comment == null ? out : out.key("comment").text(comment);
  }

  /** A default, by its value in Spark's internal form as text; where it is no constant, it has none. */
  private static Json value(Json out, ColumnDefaultValue given) {
    if (given == null) return out;
    boolean isConstant = given.getValue() != null && !depends(Versions.sqlOf(given));
    return isConstant ? constant(out, given.getValue().value()) : out.key("has_default").bool(true);
  }

  private static Json constant(Json out, Object value) {
    out.key("has_default").bool(true);
    if (value instanceof byte[]) return out;
    return value == null ? out.key("default").json("null") : out.key("default").text(value.toString());
  }

  /** Whether a default depends on who says it and when: Spark has it evaluated by the statement that makes the column. */
  private static boolean depends(String sql) {
    return sql != null && (DEPENDING.matcher(sql.replaceAll("'[^']*'|\"[^\"]*\"", "")).find() || TODAY.matcher(sql).find());
  }

  private static Json position(Json out, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.After) return out.key("after").text(((TableChange.After) position).column());
    return position == null ? out : out.key("first").bool(true);
  }

  private static Json paths(Json out, NamedReference[] columns) {
    out.open('[');
    for (NamedReference column : columns) out.texts(column.fieldNames());
    return out.close(']');
  }

  public static String[] parts(Identifier name) {
    String[] parts = (String[]) Arrays.copyOf(name.namespace(), name.namespace().length + 1);
    parts[parts.length - 1] = name.name();
    return parts;
  }

  public static Json object(Json out, Map<String, String> members) {
    out.open('{');
    for (Map.Entry<String, String> each : members.entrySet()) out.key((String) each.getKey()).text((String) each.getValue());
    return out.close('}');
  }

  public static String[] texts(JsonNode list) { return (String[]) TableSnapshot.texts(list).toArray(new String[0]); }

  public static Map<String, String> properties(JsonNode object) {
    Map<String, String> properties = new HashMap<String, String>();
    Iterator<String> names = object.fieldNames();
    while (names.hasNext()) {
      String name = (String) names.next();
      properties.put(name, object.get(name).asText());
    }
    return properties;
  }
}
