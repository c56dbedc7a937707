import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.HashMap;

/** All that Python calls: py4j finds methods of objects, and this is the one object of ours in a JVM. */
public class Bridge {
  public void register(String key, Object voter) { PythonCallback.register(key, voter); }

  /** Blocks of a snapshot as a relation. `schema` has physical names; `kept` is what BlockParquetFormat wants. */
  public HadoopFsRelation relation(Object session, String voter, String url, String branch, String mode, String snapshot, byte[] listing,
      String schema, List kept) {
    StructType columns = ((StructType) DataType.fromJson(schema)).asNullable();
    FuseIndex index = new FuseIndex(voter, url, branch, mode, columns.fieldNames(), snapshot, new FileListing(listing));
    // Dates and times in blocks are of the proleptic calendar, whatever the session thinks of files that do not say so.
    HashMap options = (HashMap) new HashMap().updated("datetimeRebaseMode", "CORRECTED").updated("int96RebaseMode", "CORRECTED");
    // Rows that are gone or damaged are an error, whatever the session would rather pass over: our snapshot names them.
    options = (HashMap) options.updated("ignoreMissingFiles", "false").updated("ignoreCorruptFiles", "false");
    options = (HashMap) options.updated("parquet.page.verify-checksum.enabled", "true");
    return new HadoopFsRelation(
        index, new StructType(), columns, scala.Option.empty(), new BlockParquetFormat(kept), options, (SparkSession) session);
  }

  /** Appends our rules to what other libraries have put there: it is a variable, and whoever sets it drops their rules. */
  public synchronized void optimize(Object session) {
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    scala.collection.Iterator each = methods.extraOptimizations().iterator();
    while (each.hasNext()) if (each.next() instanceof EarlyPruneRule) return;
    Object ours = methods.extraOptimizations().appended(new AggregateRule());
    methods.extraOptimizations_$eq((scala.collection.immutable.Seq) ((scala.collection.immutable.Seq) ours).appended(new EarlyPruneRule()));
  }

  /** Makes a SQL function that Python writes; false if Spark itself has one of that name. */
  public boolean function(Object session, String name, Object python) {
    return SqlFunctions.register((SparkSession) session, name, (java.util.function.Function) python);
  }

  public String answers(Object execution) { return AggregateReport.of(((QueryExecution) execution).optimizedPlan()); }

  public String scans(Object execution) { return ScanReport.of(((QueryExecution) execution).executedPlan()); }
}
