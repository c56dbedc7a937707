package fuse_index.spark.java.files;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.io.IOException;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One version of one of our tables, as Python describes it: which files it has, and what their columns are called. */
public class TableSnapshot {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** Names of indexes that the session does not ask, by commas. */
  private static final String SWITCHED_OFF = "spark.fuse.index.off";
  /** Who answers what is asked about it. */
  public final String callbackKey;
  public final String url;
  /** Empty where a snapshot was asked for, so that a refresh has nowhere to move to. */
  public final String branch;
  public final String mode;
  public final String id;
  public final FileListing listing;
  /** The columns by their own names. */
  public final StructType schema;
  /** The columns as statements made them, with the limits of VARCHAR, which Spark sees to. */
  public final StructType declaredSchema;
  /** The columns, position by position, by the names that files have for them, and with what older files lack. */
  public final StructType storedSchema;
  /** Columns, as lists of stored names, by which Parquet must not filter, nor by anything within them. */
  public final Set<List<String>> unpushablePaths;
  /** Columns of which Spark must read all fields, whatever a query uses. */
  public final Set<String> wholeColumns;
  /** Files name columns as they like, and their field ids say which they are. */
  public final boolean byFieldId;

  private TableSnapshot(String callbackKey, String url, String branch, String mode, String id, FileListing listing, StructType schema,
      StructType declaredSchema, StructType storedSchema, Set<List<String>> unpushablePaths, Set<String> wholeColumns, boolean byFieldId) {
    this.callbackKey = callbackKey;
    this.url = url;
    this.branch = branch;
    this.mode = mode;
    this.id = id;
    this.listing = listing;
    this.schema = schema;
    this.declaredSchema = declaredSchema;
    this.storedSchema = storedSchema;
    this.unpushablePaths = unpushablePaths;
    this.wholeColumns = wholeColumns;
    this.byFieldId = byFieldId;
  }

  /** `description` is a ScanDescription of Python; `listing` what FileListing reads. */
  public static TableSnapshot of(String description, byte[] listing) throws IOException {
    return of(new ObjectMapper().readTree(description), listing);
  }

  public static TableSnapshot of(JsonNode json, byte[] listing) throws IOException {
    Set<List<String>> unpushable = new HashSet<List<String>>();
    for (JsonNode path : json.get("unpushable")) unpushable.add(texts(path));
    StructType schema = schema(json.get("schema"));
    return new TableSnapshot(json.get("callback").asText(), json.get("url").asText(), json.get("branch").asText(), json.get("mode").asText(),
        json.get("snapshot").asText(), new FileListing(listing), schema,
        json.has("declared") ? schema(json.get("declared")) : schema, schema(json.get("stored")), unpushable, new HashSet<String>(texts(json.get("whole"))), json.get("by_id").asBoolean());
  }

  private static StructType schema(JsonNode json) { return ((StructType) DataType.fromJson(json.toString())).asNullable(); }

  public static List<String> texts(JsonNode list) {
    List<String> texts = new ArrayList<String>();
    for (JsonNode text : list) texts.add(text.asText());
    return texts;
  }

  /** Another version with the same columns. */
  public TableSnapshot withHead(String newId, FileListing files) {
    return new TableSnapshot(callbackKey, url, branch, mode, newId, files, schema, declaredSchema, storedSchema, unpushablePaths,
        wholeColumns, byFieldId);
  }

  /** The columns to read for `wanted`, some of ours of which nested fields may be left out: those that must be whole are. */
  public StructType readSchema(StructType wanted) {
    StructField[] fields = (StructField[]) wanted.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      if (wholeColumns.contains(fields[i].name())) fields[i] = schema.apply(fields[i].name());
    }
    return new StructType(fields);
  }

  /** Keeps the columns that are ours. */
  public StructType ownColumns(StructType read) {
    StructType own = new StructType();
    for (StructField field : read.fields()) if (schema.getFieldIndex(field.name()).isDefined()) own = own.add(field);
    return own;
  }

  /** The fields to read of `_metadata`; null if it is not among these columns, or is a column of ours. */
  public StructType metadataColumn(StructType read) {
    boolean hidden = read.getFieldIndex(FileMetadata.COLUMN).isDefined() && schema.getFieldIndex(FileMetadata.COLUMN).isEmpty();
    return hidden ? (StructType) read.apply(FileMetadata.COLUMN).dataType() : null;
  }

  /** What files call these columns, which `readSchema` gave: the same types, position by position, with stored names. */
  public StructType stored(StructType read) { return (StructType) stored(read, schema, storedSchema); }

  /** Keeps the stored columns that some files hold; or else those of which each file has one value. */
  public StructType storedIn(StructType stored, boolean inFiles) {
    StructType some = new StructType();
    for (StructField field : stored.fields()) if (listing.isConstant(field.name()) != inFiles) some = some.add(field);
    return some;
  }

  /** What all rows of a range share of these stored columns: those that no file holds, and what is known of those that some hold. */
  public StructType shared(StructType stored) {
    StructType shared = storedIn(stored, false);
    for (StructField part : PartlyConstant.shared(listing, stored).fields()) shared = shared.add(part);
    return shared;
  }

  /** Puts those columns first that files hold: in this order Spark's reader gives them. */
  public StructType readOrder(StructType columns) {
    StructType first = new StructType();
    StructType last = new StructType();
    for (StructField field : columns.fields()) {
      boolean ours = schema.getFieldIndex(field.name()).isDefined();
      boolean constant = ours && listing.isConstant(storedSchema.fields()[schema.fieldIndex(field.name())].name());
      if (constant) last = last.add(field);
      else first = first.add(field);
    }
    for (StructField field : last.fields()) first = first.add(field);
    return first;
  }

  /** `read`, a part of the type `ours`, by the names of `files`, which is the same as `ours` but for its names. */
  private static DataType stored(DataType read, DataType ours, DataType files) {
    if (read instanceof StructType) {
      StructField[] fields = (StructField[]) ((StructType) read).fields().clone();
      for (int i = 0; i < fields.length; i++) {
        int position = ((StructType) ours).fieldIndex(fields[i].name());
        StructField file = ((StructType) files).fields()[position];
        DataType type = stored(fields[i].dataType(), ((StructType) ours).fields()[position].dataType(), file.dataType());
        fields[i] = new StructField(file.name(), type, true, file.metadata());
      }
      return new StructType(fields);
    }
    if (read instanceof ArrayType) {
      return new ArrayType(stored(((ArrayType) read).elementType(), ((ArrayType) ours).elementType(), ((ArrayType) files).elementType()), true);
    }
    if (read instanceof MapType) {
      DataType key = stored(((MapType) read).keyType(), ((MapType) ours).keyType(), ((MapType) files).keyType());
      return new MapType(key, stored(((MapType) read).valueType(), ((MapType) ours).valueType(), ((MapType) files).valueType()), true);
    }
    return read;
  }

  public Set<String> columns() { return new HashSet<String>(Arrays.asList(schema.fieldNames())); }

  /** Whether indexes are asked, or everything is read to compare with. */
  public boolean asksIndexes() { return mode.equals("indexes"); }

  /** A question whose object is still open, for more members. The order of keys is fixed: replies are remembered by this text. */
  public Json openQuestion(String question, String filters) {
    return withSwitches(about(new Json().open('{').key("question").text(question), filters));
  }

  /** A statement on rows that the filters are true on, which is still open. */
  public Json openStatement(String filters) {
    return withSwitches(about(new Json().open('{').key("operation").text(Protocol.CHANGE_ROWS), filters));
  }

  private static Json withSwitches(Json request) {
    String off = SQLConf.get().getConfString(SWITCHED_OFF, "");
    return off.isEmpty() ? request : request.key("off").text(off);
  }

  private Json about(Json request, String filters) {
    SQLConf session = SQLConf.get();
    return request.key("url").text(url).key("snapshot").text(id).key("mode").text(mode)
        .key("context").open('{').key("time_zone").text(session.sessionLocalTimeZone()).key("ansi").bool(session.ansiEnabled())
        .key("case_sensitive").bool(session.caseSensitiveAnalysis()).close('}').key("filters").json(filters);
  }

  /** Whether an index, or statistics, may leave out blocks by keys that a join compares with `key`; not where nobody can be asked. */
  public boolean mayPruneByKeys(Expression key) {
    if (!asksIndexes()) return false;
    String keys = ExpressionJson.ofOrdered(ScalaLists.of(key), columns());
    String question = openQuestion(Protocol.JOIN_KEYS, "[]").key("keys").json(keys).close('}').toString();
    byte[] known = ReplyMemo.get(callbackKey, question);
    if (known != null) return known[1] == 1;
    byte[] reply = null;
    try {
      reply = PythonCallback.send(callbackKey, question);
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
    } catch (Exception failure) {
      LOG.warn("keys of joins do not reach indexes of " + this + ": " + failure);
    }
    if (reply == null || reply[0] != 1) return false; // and the next who asks may be luckier
    if (reply[1] == 1) ReplyMemo.put(callbackKey, question, reply);
    else ReplyMemo.putFor(Protocol.DOUBTFUL_SECONDS, callbackKey, question, reply); // whoever was asked may have had no time
    return reply[1] == 1;
  }

  /** The newest snapshot of the branch; this one if that is it, or if no branch is followed. Raises where it cannot be had. */
  public TableSnapshot refreshed() {
    if (branch.length() == 0) return this;
    try {
      Json request = new Json().open('{').key("question").text(Protocol.REFRESH).key("url").text(url).key("snapshot").text(id).key("branch").text(branch).close('}');
      byte[] reply = PythonCallback.send(callbackKey, request.toString());
      if (PythonCallback.refusal(reply) != null) throw new IllegalStateException(PythonCallback.refusal(reply));
      if (reply.length == 1) return this;
      int length = reply[1];
      return withHead(new String(reply, 2, length, "UTF-8"), new FileListing(Arrays.copyOfRange(reply, 2 + length, reply.length)));
    } catch (RuntimeException failure) {
      throw failure;
    } catch (Exception failure) {
      SafeRule.restoreInterrupt(failure);
      throw new IllegalStateException("could not refresh " + url + ": " + failure, failure);
    }
  }

  /** Equal where the same rows are read in the same way. */
  public boolean equals(Object other) {
    if (!(other instanceof TableSnapshot)) return false;
    TableSnapshot that = (TableSnapshot) other;
    return url.equals(that.url) && id.equals(that.id) && mode.equals(that.mode) && schema.equals(that.schema);
  }

  public int hashCode() { return Objects.hash(new Object[] {url, id, mode}); }

  /** In what way it is none that is changed or followed, and what to leave out. */
  public String fixed() {
    return id.endsWith("-") ? "without rows that are not tiered: leave out base" : "as it was at " + id + ": leave out the version";
  }

  public String toString() { return url + " at " + id; }
}
