package fuse_index.spark.java;

import fuse_index.spark.java.aggregate.*;
import fuse_index.spark.java.catalog.*;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.driver.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.foreign.*;
import fuse_index.spark.java.report.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.sources.*;
import fuse_index.spark.java.rules.*;
import fuse_index.spark.java.server.*;
import fuse_index.spark.java.statements.*;
import fuse_index.spark.java.write.*;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.*;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.ExecutableDuringAnalysis;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.mutable.HashMap;

/** All that Python calls: py4j finds methods of objects, and this is the one object of ours in a JVM. */
public class Bridge {
  public void register(String key, String mailbox) { PythonCallback.register(key, mailbox); }

  public String take(String mailbox, int milliseconds) throws InterruptedException { return PythonCallback.take(mailbox, milliseconds); }

  public boolean awaited(String number) { return PythonCallback.awaited(number); }

  public void answer(String number, Object reply, String failure) { PythonCallback.answer(number, reply, failure); }

  public void addConditions(String conditions) throws IOException, ReflectiveOperationException { ErrorConditions.add(conditions); }

  public void unregister(String prefix) { PythonCallback.unregister(prefix); }

  public Object attachment(String number) { return PythonCallback.attachment(number); }

  /** Puts a catalogue into the session's map of loaded ones: Spark makes one by name only from a class path. */
  @SuppressWarnings("unchecked")
  public void catalog(Object session, String name, String callbackKey) throws ReflectiveOperationException {
    CatalogManager manager = ((SparkSession) session).sessionState().catalogManager();
    HashMap<String, CatalogPlugin> loaded = (HashMap<String, CatalogPlugin>) Reflection.get(manager, "catalogs");
    synchronized (manager) {
      loaded.put(name, new FuseCatalog((SparkSession) session, name, callbackKey));
    }
    TypedStatements.install((SparkSession) session, callbackKey);
    add(session, new SparkStrategy[] {new SourceIndexStatements(new CatalogClient((SparkSession) session, name, callbackKey))});
  }

  /** Has Python asked, under a key and with its id, to install us in each session that is made of this one. */
  public void hook(Object session, String callbackKey) { SessionHook.put((SparkSession) session, callbackKey); }

  public SparkSession served(String id) { return ServedSessions.find(id); }

  public String takeEnded() { return ServedSessions.takeEnded(); }

  public void keyStore(String chain, String privateKey, String place, String password) throws GeneralSecurityException, IOException {
    KeyStores.write(chain, privateKey, place, password);
  }

  /** A DataFrame over one of our tables. `description` and `listing` are what TableSnapshot wants. */
  public Dataset<Row> dataset(Object session, String description, byte[] listing) throws IOException {
    TableSnapshot snapshot = TableSnapshot.of(description, listing);
    FuseTable table = new FuseTable((SparkSession) session, snapshot.url, snapshot);
    return Dataset$.MODULE$.ofRows((SparkSession) session, table.relation());
  }

  /** A DataFrame of a query's text; null if that is a command, which Spark would run to make one. */
  public Dataset<Row> query(Object session, String text) throws ParseException {
    SessionState state = ((SparkSession) session).sessionState();
    LogicalPlan parsed = state.sqlParser().parsePlan(text);
    if (isCommand(parsed)) return null; // of which some run while they are analysed
    LogicalPlan plan = state.executePlan(parsed, CommandExecutionMode.SKIP()).analyzed();
    return isCommand(plan) ? null : Dataset$.MODULE$.ofRows((SparkSession) session, plan);
  }

  /** What a DELETE, UPDATE, MERGE or INSERT would do, of its text: nothing is done. Null for any other text, and for tables of others. */
  public StatementPlan statement(Object session, String text) throws ParseException { return StatementPlan.of((SparkSession) session, text); }

  private static boolean isCommand(LogicalPlan plan) {
    if (plan instanceof Command || plan instanceof ParsedStatement || plan instanceof ExecutableDuringAnalysis || Versions.runsInAnalysis(plan)) return true;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (isCommand(child)) return true;
    return false;
  }

  /** The rows that a statement changes, found where they lie in another version; null where its query does not tell where. */
  @SuppressWarnings("unchecked")
  public Dataset<Row> movedRows(Object rows, String url, String from, String to, byte[] listing) throws IOException {
    Dataset<Row> found = (Dataset<Row>) rows;
    LogicalPlan plan = found.queryExecution().analyzed();
    LogicalPlan moved = (LogicalPlan) plan.transformDown(new RowStatementRule.MovedScans(url, from, to, new FileListing(listing)));
    if (moved == plan) return null;
    moved.setAnalyzed();
    return Dataset$.MODULE$.ofRows(found.sparkSession(), moved);
  }

  /** Appends our rules to those that other libraries have put there: it is a variable, and whoever sets it drops their rules. */
  public synchronized void optimize(Object session) {
    StatementRule.install((SparkSession) session);
    ChangedRowsRule.install((SparkSession) session);
    ReplacedRowsRule.install((SparkSession) session);
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(methods.extraOptimizations()));
    boolean optimizes = false;
    for (Object rule : rules) optimizes |= rule instanceof PruneRule;
    if (!optimizes) methods.extraOptimizations_$eq(ScalaLists.toScala(withOurs(rules)));
    add(session, new SparkStrategy[] {new WrittenScans(), new FuseRowsStrategy((SparkSession) session), new LiveRows((SparkSession) session)});
  }

  /** Appends strategies to the session's, unless it has them. */
  private static void add(Object session, SparkStrategy[] ours) {
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    List<SparkStrategy> strategies = new ArrayList<SparkStrategy>(ScalaLists.toJava(methods.extraStrategies()));
    for (Object strategy : strategies) if (strategy.getClass() == ours[0].getClass()) return;
    strategies.addAll(Arrays.asList(ours));
    methods.extraStrategies_$eq(ScalaLists.toScala(strategies));
  }

  /** From now on queries of other connectors' tables ask for indexes of these; those that were found are found anew. */
  public synchronized void renewSourceIndexes(Object session, String callbackKey) throws ReflectiveOperationException {
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    for (Object strategy : ScalaLists.toJava(methods.extraStrategies())) {
      if (!(strategy instanceof IndexedScanStrategy)) continue;
      ((IndexedScanStrategy) strategy).indexes.renew();
      return;
    }
    Releases.tell();
    SourceIndexes indexes = new SourceIndexes(callbackKey);
    add(session, new SparkStrategy[] {new IndexedScanStrategy((SparkSession) session, indexes)});
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(methods.extraOptimizations()));
    rules.add(new OuterKeysRule<LogicalPlan>(indexes));
    rules.add(new PlacesRule<LogicalPlan>());
    methods.extraOptimizations_$eq(ScalaLists.toScala(rules));
    BroadcastKeysRule.install((SparkSession) session, indexes);
  }

  /** Which connectors are there whose scans may ask indexes, as JSON. */
  public String connectors() { return Releases.describe(); }

  /** The format of the one source that a query reads by a connector that is known, and where it is; null if there is none such. */
  public String[] source(Object query) {
    Connector connector = Connector.of(Trees.below(((Dataset<?>) query).queryExecution().optimizedPlan()));
    return connector == null || connector.locations().isEmpty() ? null : new String[] {connector.format(), (String) connector.locations().get(0)};
  }

  /** What a query calls the columns of the one source that it reads, by names of the source; null of one that is computed. */
  public Map<String, String> sourceColumns(Object query) { return SourceColumns.names(((Dataset<?>) query).queryExecution().optimizedPlan()); }

  private static List<Rule<LogicalPlan>> withOurs(List<Rule<LogicalPlan>> rules) {
    rules.add(new CatalogTableRule<LogicalPlan>());
    rules.add(new RefreshRule<LogicalPlan>());
    rules.add(new StreamMetadataRule<LogicalPlan>());
    rules.add(new ChangedRowsRule<LogicalPlan>());
    rules.add(new RowStatementRule<LogicalPlan>());
    rules.add(new AggregateRule<LogicalPlan>());
    rules.add(new PruneRule<LogicalPlan>());
    rules.add(new RuntimePruneRule<LogicalPlan>());
    rules.add(new TopRule<LogicalPlan>());
    rules.add(new PartitionedScanRule<LogicalPlan>());
    rules.add(new RecursionRule<LogicalPlan>());
    return rules;
  }

  /** Makes a SQL function that Python writes; false if Spark itself has one of that name. */
  public boolean function(Object session, String name, String callbackKey) {
    return SqlFunctions.register((SparkSession) session, name, callbackKey);
  }

  /** The SQL text of a call of such a function in which a UDF is called, with inputs that are SQL text too. */
  public Object callOfUdf(String sql, Object udf, List<String> inputs) { return new SqlFunctions.CallOfUdf(sql, udf, inputs); }

  public String answers(Object execution) { return AggregateReport.of(((QueryExecution) execution).optimizedPlan()); }

  public String scans(Object execution) { return ScanReport.of((QueryExecution) execution, ((QueryExecution) execution).analyzed()); }
}
