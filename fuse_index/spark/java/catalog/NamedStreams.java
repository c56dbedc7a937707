package fuse_index.spark.java.catalog;

import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** Streams from and to tables by name: the session's `format("fuse")` does them, at the place that the name stands for. */
public class NamedStreams {
  private static final String FORMAT = "fuse";

  /** A scan that may turn out to be one of a stream: which it is, Spark says after it was built. */
  public static class StreamableScan extends FuseScan {
    private final CatalogFuseTable table;
    private volatile boolean isStream;

    public StreamableScan(CatalogFuseTable table, StructType columns) {
      super(table.session, new ScanRequest(table.snapshot(), columns));
      this.table = table;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      isStream = true;
      return stream(table, CaseInsensitiveStringMap.empty(), checkpoint);
    }

    public Scan.ColumnarSupportMode columnarSupportMode() { return isStream ? Scan.ColumnarSupportMode.UNSUPPORTED : super.columnarSupportMode(); }
  }

  public static class ScanBuilderOf implements SupportsPushDownRequiredColumns {
    private final CatalogFuseTable table;
    private StructType columns;

    public ScanBuilderOf(CatalogFuseTable table) {
      this.table = table;
      this.columns = table.snapshot().schema;
    }

    public void pruneColumns(StructType required) { columns = table.snapshot().readSchema(required); }

    public Scan build() { return new StreamableScan(table, columns); }
  }

  /** With options, which mean something to a stream alone. */
  public static class OptionScan implements Scan, ScanBuilder {
    private final CatalogFuseTable table;
    private final CaseInsensitiveStringMap options;

    public OptionScan(CatalogFuseTable table, CaseInsensitiveStringMap options) {
      this.table = table;
      this.options = options;
    }

    public Scan build() { return this; }

    public StructType readSchema() { return table.snapshot().schema; }

    public Batch toBatch() {
      throw StatementError.invalidInput("the option '" + options.keySet().iterator().next() + "' means nothing to " + table.name()
          + ": leave it out, and say in the query what is wanted of it");
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) { return stream(table, options, checkpoint); }
  }

  public static class StreamableWrite extends FuseWrite {
    private final CatalogFuseTable table;
    private final LogicalWriteInfo info;

    public StreamableWrite(RowStatement statement, CatalogFuseTable table, LogicalWriteInfo info) {
      super(statement, null);
      this.table = table;
      this.info = info;
    }

    public StreamingWrite toStreaming() {
      CaseInsensitiveStringMap options = atItsPlace(table, info.options());
      SupportsWrite target = (SupportsWrite) provider().getTable(info.schema(), new Transform[0], options.asCaseSensitiveMap());
      WriteBuilder builder = target.newWriteBuilder(new InfoAtItsPlace(info, options));
      if (statement.operation.equals(Protocol.OVERWRITE)) builder = ((SupportsTruncate) builder).truncate();
      return builder.build().toStreaming();
    }
  }

  public static class InfoAtItsPlace implements LogicalWriteInfo {
    private final LogicalWriteInfo info;
    private final CaseInsensitiveStringMap options;

    public InfoAtItsPlace(LogicalWriteInfo info, CaseInsensitiveStringMap options) {
      this.info = info;
      this.options = options;
    }

    public CaseInsensitiveStringMap options() { return options; }

    public String queryId() { return info.queryId(); }

    public StructType schema() { return info.schema(); }
  }

  public static class WriteBuilderOf extends FuseWriteBuilder {
    private final CatalogFuseTable table;
    private final LogicalWriteInfo info;

    public WriteBuilderOf(CatalogFuseTable table, LogicalWriteInfo info) {
      super(new RowStatement(table, Protocol.APPEND, info.options()));
      this.table = table;
      this.info = info;
    }

    public Write build() { return new StreamableWrite(((FuseWrite) super.build()).statement, table, info); }
  }

  /** Options that are not Spark's own way to say which version is meant. */
  public static CaseInsensitiveStringMap without(CaseInsensitiveStringMap options, String... names) {
    Map<String, String> others = new HashMap<String, String>(options.asCaseSensitiveMap());
    for (Object name : options.asCaseSensitiveMap().keySet()) {
      for (String other : names) if (other.equalsIgnoreCase((String) name)) others.remove(name);
    }
    return new CaseInsensitiveStringMap(others);
  }

  private static MicroBatchStream stream(CatalogFuseTable table, CaseInsensitiveStringMap given, String checkpoint) {
    if (table.snapshot().branch.length() == 0) {
      throw StatementError.invalidInput(table.name() + " is read " + table.snapshot().fixed() + ", for nothing follows that");
    }
    CaseInsensitiveStringMap options = atItsPlace(table, given);
    TableProvider provider = provider();
    StructType columns = provider.inferSchema(options);
    if (!columns.asNullable().sameType(table.snapshot().schema)) {
      throw StatementError.invalidInput(table.name() + " has other columns by now, or these options give others: read it again, or follow"
          + " it by spark.readStream.format('fuse') with the same options, and load('" + table.snapshot().url + "')");
    }
    SupportsRead source = (SupportsRead) provider.getTable(columns, new Transform[0], options.asCaseSensitiveMap());
    return source.newScanBuilder(options).build().toMicroBatchStream(checkpoint);
  }

  private static CaseInsensitiveStringMap atItsPlace(CatalogFuseTable table, CaseInsensitiveStringMap given) {
    Map<String, String> options = new HashMap<String, String>(given.asCaseSensitiveMap());
    for (Map.Entry<String, String> each : table.place().entrySet()) {
      String name = (String) each.getKey();
      if (given.containsKey(name.toLowerCase(Locale.ROOT))) {
        throw StatementError.invalidInput(table.name() + " says by its name what the option '" + name + "' would: leave it out");
      }
      options.put(name, (String) each.getValue());
    }
    return new CaseInsensitiveStringMap(options);
  }

  private static TableProvider provider() {
    Option<TableProvider> found = DataSource$.MODULE$.lookupDataSourceV2(FORMAT, SQLConf.get());
    if (found.isEmpty()) throw StatementError.invalidInput("this session has no format 'fuse': call fuse_index.spark.install");
    return (TableProvider) found.get();
  }
}
