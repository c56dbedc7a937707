package fuse_index.spark.java.report;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.EmptyRelation;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.EmptyRelationExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import org.apache.spark.sql.execution.python.EvalPythonExec;

/** The scans of our tables in an executed plan, as adaptive execution left it, and the conditions that never reached them. */
public class ScanReport {
  private final Set<SparkPlan> visited = Collections.newSetFromMap(new IdentityHashMap<SparkPlan, Boolean>());
  private final List<BatchScanExec> scans = new ArrayList<BatchScanExec>();
  private final List<ReportedScan> others = new ArrayList<ReportedScan>();
  private final List<Expression> conditions = new ArrayList<Expression>();
  /** The columns that a column of a plan is made of. */
  private final Map<ExprId, Set<ExprId>> origins = new HashMap<ExprId, Set<ExprId>>();
  /** Columns that calls of our functions make. */
  private final Set<ExprId> pluginColumns = new HashSet<ExprId>();

  /** By what names the columns of a plan are called: `a` of `a.id`. */
  private final Map<ExprId, String> qualifiers = new HashMap<ExprId, String>();
  /** Conditions that joins compare keys by. */
  private final Set<Expression> joins = Collections.newSetFromMap(new IdentityHashMap<Expression, Boolean>());

  /** Conditions as the query was written. */
  private final List<Expression> written = new ArrayList<Expression>();
  /** The leaves of these, and of what calls of our functions were given beside them for Spark to evaluate. */
  private final List<Expression> ownLeaves = new ArrayList<Expression>();
  private final List<Expression> givenLeaves = new ArrayList<Expression>();

  private final UntoldKeys untold;

  private ScanReport(LogicalPlan optimized) { this.untold = new UntoldKeys(optimized); }

  /**
   * A JSON list of {"callback", "request", "table", "alias", "unpushed": {condition: why, or ""}, "awaited": [condition], "added": [filter]};
   * equal ones once. Awaited are joins, of which a query that runs will tell the scan the keys; added are those of the request's filters,
   * as these are written there, that nobody wrote.
   */
  public static String of(QueryExecution execution, LogicalPlan analyzed) {
    ScanReport report = new ScanReport(execution.optimizedPlan());
    report.walk(execution.executedPlan());
    report.addWritten(analyzed);
    Set<String> lines = new LinkedHashSet<String>();
    for (BatchScanExec scan : report.scans) lines.add(report.jsonLine(scan));
    for (ReportedScan scan : report.others) lines.add(scan.reportLine());
    return Json.list(lines);
  }

  private void walk(SparkPlan plan) {
    if (!visited.add(plan)) return;
    if (plan instanceof BatchScanExec && isFuseScan((BatchScanExec) plan)) scans.add((BatchScanExec) plan);
    else if (plan instanceof ReportedScan) others.add((ReportedScan) plan);
    else if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).executedPlan());
    else if (plan instanceof QueryStageExec) walk(((QueryStageExec) plan).plan());
    else if (plan instanceof EmptyRelationExec) walkEmpty(((EmptyRelationExec) plan).logical());
    else if (plan instanceof InMemoryTableScanExec) walk(((InMemoryTableScanExec) plan).relation().cachedPlan());
    else if (plan instanceof ReusedExchangeExec) return; // its scans stand where the exchange is made
    else if (plan instanceof FilterExec) conditions.addAll(Trees.conjuncts(((FilterExec) plan).condition()));
    else if (plan instanceof ProjectExec) addAliases(((ProjectExec) plan).projectList());
    else if (plan instanceof BaseJoinExec) addJoinConditions((BaseJoinExec) plan);
    else if (plan instanceof EvalPythonExec) addPythonColumns((EvalPythonExec) plan);
    for (Expression expression : ScalaLists.toJava(plan.expressions())) addQualifiers(expression);
    walkAll(plan.children());
    walkAll(plan.subqueries());
  }

  /** What adaptive execution found empty: of a plan that it took out the stages are left that ran, and the conditions between them. */
  private void walkEmpty(LogicalPlan plan) {
    if (plan instanceof LogicalQueryStage) walk(((LogicalQueryStage) plan).physicalPlan());
    else if (plan instanceof EmptyRelation) walkEmpty(((EmptyRelation) plan).logical());
    else if (plan instanceof Filter) conditions.addAll(Trees.conjuncts(((Filter) plan).condition()));
    else if (plan instanceof Join && ((Join) plan).condition().isDefined()) addConditions((Expression) ((Join) plan).condition().get());
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) walkEmpty(child);
  }

  /** The scan that an answered aggregate left over is no scan of its own: the aggregate accounts for it. */
  private static boolean isFuseScan(BatchScanExec scan) {
    return scan.scan() instanceof FuseScan && !((FuseScan) scan.scan()).asked.isRestricted();
  }

  private void walkAll(scala.collection.Seq<SparkPlan> plans) {
    for (SparkPlan plan : ScalaLists.toJava(plans)) walk(plan);
  }

  private void addWritten(LogicalPlan plan) {
    if (plan instanceof Filter) {
      written.addAll(Trees.conjuncts(((Filter) plan).condition()));
      addLeaves(((Filter) plan).condition(), ownLeaves);
    }
    if (plan instanceof Project) addAliases(((Project) plan).projectList());
    if (plan instanceof Command || plan instanceof UpdateTable || plan instanceof MergeIntoTable) {
      for (Expression part : ScalaLists.toJava(plan.expressions())) written.addAll(Trees.conjuncts(part));
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) addWritten(child);
    for (LogicalPlan query : ScalaLists.toJava(plan.subqueries())) addWritten(query);
  }

  private void addLeaves(Expression condition, List<Expression> leaves) {
    Expression given = SqlFunctions.besideCall(condition);
    if (given != null) addLeaves(given, givenLeaves);
    else if (Trees.isConnective(condition)) for (Expression part : ScalaLists.toJava(condition.children())) addLeaves(part, leaves);
    else leaves.add(condition);
  }

  /** Whether all leaves of a filter are among those of the query as it was written. */
  private boolean isMadeOf(Expression filter, List<Expression> leaves) {
    if (Trees.isConnective(filter)) {
      for (Expression part : ScalaLists.toJava(filter.children())) if (!isMadeOf(part, leaves)) return false;
      return true;
    }
    for (Expression leaf : leaves) if (isSame(leaf, filter)) return true;
    return false;
  }

  /** Whether they say the same: columns of a view have ids of their own. */
  private boolean isSame(Expression leaf, Expression filter) {
    if (filter instanceof Attribute) return leaf instanceof Attribute && refersTo(leaf, columnIds(filter));
    if (filter instanceof Literal) return SqlFunctions.isConstant(leaf) && Objects.equals(leaf.eval(null), ((Literal) filter).value());
    if (leaf.getClass() != filter.getClass() || leaf.children().size() != filter.children().size()) return false;
    for (int i = 0; i < filter.children().size(); i++) {
      if (!isSame((Expression) leaf.children().apply(i), (Expression) filter.children().apply(i))) return false;
    }
    return true;
  }

  /** Whether nobody wrote a filter: a call of ours was given it, or it follows: a test for NULL, or one on columns that none names. */
  private boolean isAdded(Expression filter) {
    if (isMadeOf(filter, givenLeaves) && !isMadeOf(filter, ownLeaves)) return true;
    for (Expression condition : written) {
      boolean same = filter instanceof IsNotNull ? has(condition, filter) : refersTo(condition, columnIds(filter));
      if (same) return false;
    }
    return filter.references().nonEmpty();
  }

  private static boolean has(Expression tree, Expression part) {
    if (tree.semanticEquals(part)) return true;
    for (Expression child : ScalaLists.toJava(tree.children())) if (has(child, part)) return true;
    return false;
  }

  private void addAliases(scala.collection.Seq<NamedExpression> columns) {
    for (NamedExpression column : ScalaLists.toJava(columns)) {
      if (column instanceof Alias) origins.put(((Alias) column).exprId(), columnIds(((Alias) column).child()));
    }
  }

  private void addQualifiers(Expression expression) {
    for (Attribute column : ScalaLists.toJava(expression.references().toSeq())) {
      if (!column.qualifier().isEmpty()) qualifiers.put(column.exprId(), (String) column.qualifier().last());
    }
  }

  private void addJoinConditions(BaseJoinExec join) {
    for (int i = 0; i < join.leftKeys().length(); i++) {
      Expression equality = new EqualTo((Expression) join.leftKeys().apply(i), (Expression) join.rightKeys().apply(i));
      conditions.add(equality);
      joins.add(equality);
    }
    if (join.condition().isDefined()) conditions.addAll(Trees.conjuncts((Expression) join.condition().get()));
  }

  private void addConditions(Expression join) {
    for (Expression condition : Trees.conjuncts(join)) {
      conditions.add(condition);
      if (condition instanceof EqualTo) joins.add(condition);
    }
  }

  private void addPythonColumns(EvalPythonExec python) {
    for (int i = 0; i < python.udfs().length(); i++) {
      ExprId result = ((Attribute) python.resultAttrs().apply(i)).exprId();
      PythonUDF udf = (PythonUDF) python.udfs().apply(i);
      origins.put(result, columnIds(udf));
      if (SqlFunctions.isRegistered(udf.name())) pluginColumns.add(result);
    }
  }

  private String jsonLine(BatchScanExec scan) {
    FuseScan fuse = (FuseScan) scan.scan();
    List<Expression> filters = fuse.filters();
    Set<ExprId> output = new HashSet<ExprId>();
    for (Attribute column : ScalaLists.toJava(scan.output())) output.add(column.exprId());
    Map<String, String> unpushed = new LinkedHashMap<String, String>();
    Set<String> awaited = new LinkedHashSet<String>();
    for (Expression condition : conditions) {
      if (!refersTo(condition, output) || isPushed(condition, filters) || isImplied(condition, scan, filters) || isOnDeletedRows(condition)) continue;
      if (!isAskedByKeys(condition, scan)) unpushed.put(condition.sql(), joins.contains(condition) ? untold.refusal((EqualTo) condition, scan) : "");
      else if (fuse.awaitsKeys()) awaited.add(condition.sql());
    }
    Json line = new Json().open('{').key("callback").text(fuse.snapshot.callbackKey);
    line.key("request").text(fuse.request()).key("table").text(scan.table().name()).key("alias").text(alias(scan)).key("unpushed").open('{');
    for (Map.Entry<String, String> condition : unpushed.entrySet()) line.key((String) condition.getKey()).text((String) condition.getValue());
    line.close('}').key("awaited").open('[');
    for (String condition : awaited) line.text(condition);
    List<Expression> added = new ArrayList<Expression>();
    for (Expression filter : filters) if (isAdded(filter)) added.add(filter);
    String trees = added.isEmpty() ? "[]" : ExpressionJson.of(ScalaLists.toScala(added), fuse.snapshot.columns());
    return line.close(']').key("added").json(trees).close('}').toString();
  }

  /** What a query calls the table; empty if nothing that is computed names a column of it. */
  private String alias(BatchScanExec scan) {
    for (Attribute column : ScalaLists.toJava(scan.output())) {
      if (qualifiers.containsKey(column.exprId())) return (String) qualifiers.get(column.exprId());
    }
    return "";
  }

  /** Whether it is ours, which leaves out rows that were deleted: the query has no such condition. */
  private static boolean isOnDeletedRows(Expression condition) {
    return Trees.find(ScalaLists.toJava(condition.references().toSeq()), FileMetadata.DELETED) != null;
  }

  private static boolean isPushed(Expression condition, List<Expression> filters) {
    for (Expression filter : filters) if (filter.semanticEquals(condition)) return true;
    return false;
  }

  /** Whether it is of a join, or a subquery, of which the scan is told the keys or the value: when it runs, or when it ran. */
  private static boolean isAskedByKeys(Expression condition, BatchScanExec scan) {
    if (!(condition instanceof BinaryComparison)) return false;
    for (Attribute key : ScalaLists.toJava(condition.references().toSeq())) {
      if (scan.outputSet().contains(key) && ((FuseScan) scan.scan()).asked.knowsKeysOf(key.name())) return true;
    }
    for (Expression filter : ScalaLists.toJava(scan.runtimeFilters())) {
      for (Attribute key : ScalaLists.toJava(filter.references().toSeq())) {
        boolean ofScan = scan.outputSet().contains(key) && condition.references().contains(key);
        if (ofScan && ((FuseScan) scan.scan()).mayAskKeysOf(key.name())) return true;
      }
    }
    return false;
  }

  /** Calls of our functions reach the scan as marks, whatever evaluates them; and so may parts of other conditions. */
  private boolean isImplied(Expression condition, BatchScanExec scan, List<Expression> filters) {
    if (condition instanceof Attribute) return pluginColumns.contains(((Attribute) condition).exprId());
    Expression part = Trees.impliedBy(condition, scan.outputSet());
    return part != null && isPushed(part, filters);
  }

  /** Whether a condition depends on one of these columns, itself or by the columns that its own are made of. */
  private boolean refersTo(Expression condition, Set<ExprId> output) {
    Deque<ExprId> pending = new ArrayDeque<ExprId>(columnIds(condition));
    Set<ExprId> done = new HashSet<ExprId>();
    while (!pending.isEmpty()) {
      ExprId column = (ExprId) pending.pop();
      if (output.contains(column)) return true;
      if (done.add(column) && origins.containsKey(column)) pending.addAll((Set<ExprId>) origins.get(column));
    }
    return false;
  }

  private static Set<ExprId> columnIds(Expression expression) {
    Set<ExprId> columnIds = new HashSet<ExprId>();
    for (Attribute column : ScalaLists.toJava(expression.references().toSeq())) columnIds.add(column.exprId());
    return columnIds;
  }
}
