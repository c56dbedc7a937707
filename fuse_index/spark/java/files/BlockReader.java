package fuse_index.spark.java.files;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.immutable.HashMap;
import scala.reflect.ClassTag$;

/** Spark's own Parquet reader, set to read our blocks alike whatever the session says. Executors know it, and none of our classes. */
public class BlockReader {
  private static final String SQL = "spark.sql.";
  private static final String FIELD_ID = "parquet.field.id";
  private static final String[] OFF = {"parquet.binaryAsString", "legacy.parquet.nanosAsLong",
    "parquet.fieldId.read.ignoreMissing"};
  private static final String[] ON = {"caseSensitive", "parquet.int96AsTimestamp", "parquet.inferTimestampNTZ.enabled",
    "optimizer.nestedSchemaPruning.enabled"};

  /**
   * By field ids rows are read in batches, whatever a session prefers: Spark's reader of single rows goes by ids only where the
   * session does, and by names takes one column for another that has its name by now.
   */
  private static final String[] IN_BATCHES = {"parquet.enableVectorizedReader", "parquet.enableNestedColumnVectorizedReader",
    "codegen.wholeStage"};

  /** Whether Spark reads these columns in batches, as it plans to before anything is read. */
  public static boolean isColumnar(SparkSession session, TableSnapshot snapshot, StructType read, StructType constants) {
    return factory(session, snapshot, read, constants, new Filter[0], null).supportColumnarReads(null);
  }

  /**
   * `read` are the columns of the snapshot that are to be read, by the names that files have for them; `constants` are columns of which
   * each range has one value. Sends executors a configuration, and so is for scans that are about to run.
   */
  public static PartitionReaderFactory factory(
      SparkSession session, TableSnapshot snapshot, StructType read, StructType constants, Filter[] filters) {
    Configuration hadoop = session.sessionState().newHadoopConf();
    if (snapshot.byFieldId) read = (StructType) withoutNames(read);
    hadoop.set("parquet.read.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport");
    hadoop.set("org.apache.spark.sql.parquet.row.requested_schema", read.json());
    hadoop.set("org.apache.spark.sql.parquet.row.attributes", read.json());
    hadoop.set("spark.sql.session.timeZone", session.sessionState().conf().sessionLocalTimeZone());
    hadoop.set("parquet.page.verify-checksum.enabled", "true");
    for (String setting : OFF) hadoop.setBoolean(SQL + setting, false);
    hadoop.setBoolean(SQL + "parquet.fieldId.read.enabled", snapshot.byFieldId);
    for (String setting : ON) hadoop.setBoolean(SQL + setting, true);
    Broadcast<SerializableConfiguration> shared = session.sparkContext().broadcast(
        new SerializableConfiguration(hadoop), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    return factory(session, snapshot, read, constants, filters, shared);
  }

  private static PartitionReaderFactory factory(SparkSession session, TableSnapshot snapshot, StructType read, StructType constants,
      Filter[] filters, Broadcast<SerializableConfiguration> shared) {
    HashMap<String, String> options = new HashMap<String, String>();
    // Dates and times in blocks are of the proleptic calendar, whatever the session thinks of files that do not say so.
    options = (HashMap<String, String>) options.updated("datetimeRebaseMode", "CORRECTED");
    options = (HashMap<String, String>) options.updated("int96RebaseMode", "CORRECTED");
    // Rows that are gone or damaged are an error, whatever the session would rather pass over: our snapshot names them.
    options = (HashMap<String, String>) options.updated("ignoreMissingFiles", "false");
    options = (HashMap<String, String>) options.updated("ignoreCorruptFiles", "false");
    SQLConf conf = snapshot.byFieldId ? inBatches(session.sessionState().conf()) : session.sessionState().conf();
    return new ParquetPartitionReaderFactory(
        conf, shared, snapshot.storedSchema, read, constants, filters, scala.Option.empty(), new ParquetOptions(options, conf));
  }

  private static SQLConf inBatches(SQLConf session) {
    SQLConf conf = session.clone();
    for (String setting : IN_BATCHES) conf.setConfString(SQL + setting, "true");
    conf.setConfString(SQL + "codegen.maxFields", String.valueOf(Integer.MAX_VALUE));
    return conf;
  }

  /** A type in which what has a field id has a name that no file has: Spark takes types by names first, and by ids where it finds none. */
  private static DataType withoutNames(DataType type) {
    if (type instanceof StructType) {
      StructType renamed = new StructType();
      for (StructField field : ((StructType) type).fields()) {
        String name = field.metadata().contains(FIELD_ID) ? "\1" + field.metadata().getLong(FIELD_ID) : field.name();
        renamed = renamed.add(new StructField(name, withoutNames(field.dataType()), true, field.metadata()));
      }
      return renamed;
    }
    if (type instanceof ArrayType) return new ArrayType(withoutNames(((ArrayType) type).elementType()), true);
    if (!(type instanceof MapType)) return type;
    return new MapType(withoutNames(((MapType) type).keyType()), withoutNames(((MapType) type).valueType()), true);
  }
}
