import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.HashMap;

/** All that Python calls: py4j finds methods of objects, and this is the one object of ours in a JVM. */
public class Bridge {
  public void register(String key, String mailbox) { PythonCallback.register(key, mailbox); }

  public String take(String mailbox, int milliseconds) throws InterruptedException { return PythonCallback.take(mailbox, milliseconds); }

  public void answer(String number, Object reply, String failure) { PythonCallback.answer(number, reply, failure); }

  /** Blocks of a snapshot as a relation. `schema` has physical names; `unpushablePaths` is what BlockParquetFormat wants. */
  public HadoopFsRelation relation(Object session, String callbackKey, String url, String branch, String mode, String snapshot,
      byte[] listing, String schema, List<List<String>> unpushablePaths) {
    StructType columns = ((StructType) DataType.fromJson(schema)).asNullable();
    FuseIndex index = new FuseIndex(
        (SparkSession) session, callbackKey, url, branch, mode, columns.fieldNames(), snapshot, new FileListing(listing));
    // Dates and times in blocks are of the proleptic calendar, whatever the session thinks of files that do not say so.
    HashMap<String, String> options = new HashMap<String, String>();
    options = (HashMap<String, String>) options.updated("datetimeRebaseMode", "CORRECTED");
    options = (HashMap<String, String>) options.updated("int96RebaseMode", "CORRECTED");
    // Rows that are gone or damaged are an error, whatever the session would rather pass over: our snapshot names them.
    options = (HashMap<String, String>) options.updated("ignoreMissingFiles", "false");
    options = (HashMap<String, String>) options.updated("ignoreCorruptFiles", "false");
    options = (HashMap<String, String>) options.updated("parquet.page.verify-checksum.enabled", "true");
    return new HadoopFsRelation(
        index, new StructType(), columns, scala.Option.empty(), new BlockParquetFormat(unpushablePaths), options, (SparkSession) session);
  }

  /** Appends our rules to those that other libraries have put there: it is a variable, and whoever sets it drops their rules. */
  public synchronized void optimize(Object session) {
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(methods.extraOptimizations()));
    for (Object rule : rules) if (rule instanceof EarlyPruneRule) return;
    rules.add(new CatalogTableRule<LogicalPlan>());
    rules.add(new AggregateRule<LogicalPlan>());
    rules.add(new EarlyPruneRule<LogicalPlan>());
    methods.extraOptimizations_$eq(ScalaLists.toScala(rules));
  }

  /** Makes a SQL function that Python writes; false if Spark itself has one of that name. */
  public boolean function(Object session, String name, String callbackKey) {
    return SqlFunctions.register((SparkSession) session, name, callbackKey);
  }

  /** The SQL text of a call of such a function in which a UDF is called, with inputs that are SQL text too. */
  public Object callOfUdf(String sql, Object udf, List<String> inputs) { return new SqlFunctions.CallOfUdf(sql, udf, inputs); }

  public String answers(Object execution) { return AggregateReport.of(((QueryExecution) execution).optimizedPlan()); }

  public String scans(Object execution) { return ScanReport.of(((QueryExecution) execution).executedPlan()); }
}
