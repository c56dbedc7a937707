package fuse_index.spark.java.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What Spark plans joins by: the size of the blocks that votes left, their rows, and for a cost-based optimizer their columns. */
public class ScanStatistics implements Statistics {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  private final long bytes;
  private final long rows;
  private final Map<NamedReference, ColumnStatistics> columns;

  private ScanStatistics(long bytes, long rows, Map<NamedReference, ColumnStatistics> columns) {
    this.bytes = bytes;
    this.rows = rows;
    this.columns = columns;
  }

  /** What Python knows of one column. */
  public static class Column implements ColumnStatistics {
    private final JsonNode known;
    private final DataType type;

    public Column(JsonNode known, DataType type) {
      this.known = known;
      this.type = type;
    }

    public OptionalLong nullCount() { return OptionalLong.of(known.get("null_count").asLong()); }

    public OptionalLong distinctCount() { return OptionalLong.of(known.get("distinct_count").asLong()); }

    public Optional<Object> min() { return bound("min"); }

    public Optional<Object> max() { return bound("max"); }

    private Optional<Object> bound(String name) {
      JsonNode text = known.get(name);
      return Optional.<Object>ofNullable(text.isNull() ? null : Constants.value(text.asText(), type));
    }
  }

  /** `request` asks about columns of the scan; only a cost-based optimizer's session is told about them. */
  public static ScanStatistics of(long bytes, long rows, String callbackKey, String request, StructType columns) {
    return new ScanStatistics(bytes, rows, asksForColumns() ? ask(callbackKey, request, columns) : Collections.<NamedReference, ColumnStatistics>emptyMap());
  }

  /** What Python knows of columns of a scan; nothing where it cannot be asked. */
  public static Map<NamedReference, ColumnStatistics> ask(String callbackKey, String request, StructType columns) {
    Map<NamedReference, ColumnStatistics> known = Collections.<NamedReference, ColumnStatistics>emptyMap();
    try {
      known = told(callbackKey, request, columns);
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
    } catch (Exception failure) {
      LOG.warn("the optimizer knows nothing of columns: " + failure);
    }
    return known;
  }

  private static Map<NamedReference, ColumnStatistics> told(String callbackKey, String request, StructType columns) throws Exception {
    byte[] known = ReplyMemo.get(callbackKey, request);
    byte[] reply = known == null ? PythonCallback.send(callbackKey, request) : known;
    Map<NamedReference, ColumnStatistics> told = columns(reply, columns);
    if (known == null) ReplyMemo.put(callbackKey, request, reply);
    return told;
  }

  /** Whether this session's optimizer goes by columns. */
  public static boolean asksForColumns() { return SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled(); }

  private static Map<NamedReference, ColumnStatistics> columns(byte[] reply, StructType schema) throws Exception {
    Map<NamedReference, ColumnStatistics> columns = new HashMap<NamedReference, ColumnStatistics>();
    JsonNode known = new ObjectMapper().readTree(PythonCallback.body(reply));
    for (Iterator<String> names = known.fieldNames(); names.hasNext();) {
      String name = (String) names.next();
      columns.put(reference(name), new Column((JsonNode) known.get(name), schema.apply(name).dataType()));
    }
    return columns;
  }

  /** A column by its name, whatever is in that. */
  public static NamedReference reference(String name) { return new FieldReference(ScalaLists.of(name)); }

  public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

  public OptionalLong numRows() { return OptionalLong.of(rows); }

  public Map<NamedReference, ColumnStatistics> columnStats() { return columns; }
}
