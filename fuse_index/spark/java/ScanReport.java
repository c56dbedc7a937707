import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import org.apache.spark.sql.execution.python.EvalPythonExec;
import scala.collection.mutable.ArrayBuffer;

/** The scans of our tables in an executed plan, as adaptive execution left it, and the conditions that never reached them. */
public class ScanReport {
  private final Set seen = Collections.newSetFromMap(new IdentityHashMap());
  private final List scans = new ArrayList();
  private final List conditions = new ArrayList();
  /** What a column of a plan is made of: expression ids by expression id. */
  private final Map origins = new HashMap();
  /** Columns that calls of our functions make. */
  private final Set ours = new HashSet();

  private ScanReport() {}

  /** A JSON list of {"voter", "request", "unpushed"}; equal ones once. */
  public static String of(SparkPlan plan) {
    ScanReport found = new ScanReport();
    found.walk(plan);
    Set lines = new LinkedHashSet();
    for (int i = 0; i < found.scans.size(); i++) lines.add(found.line((FileSourceScanExec) found.scans.get(i)));
    return "[" + String.join(",", lines) + "]";
  }

  private void walk(SparkPlan plan) {
    if (!seen.add(plan)) return;
    if (plan instanceof FileSourceScanExec && ours(((FileSourceScanExec) plan).relation().location())) scans.add(plan);
    else if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).executedPlan());
    else if (plan instanceof QueryStageExec) walk(((QueryStageExec) plan).plan());
    else if (plan instanceof InMemoryTableScanExec) walk(((InMemoryTableScanExec) plan).relation().cachedPlan());
    else if (plan instanceof ReusedExchangeExec) return; // its scans stand where the exchange is made
    else if (plan instanceof FilterExec) split(((FilterExec) plan).condition());
    else if (plan instanceof ProjectExec) named(((ProjectExec) plan).projectList());
    else if (plan instanceof BaseJoinExec) joined((BaseJoinExec) plan);
    else if (plan instanceof EvalPythonExec) computed((EvalPythonExec) plan);
    each(plan.children());
    each(plan.subqueries());
  }

  /** What an answered aggregate left over is accounted for by that. */
  private static boolean ours(Object location) { return location instanceof FuseIndex && !((FuseIndex) location).limited(); }

  private void each(scala.collection.Seq plans) {
    scala.collection.Iterator each = plans.iterator();
    while (each.hasNext()) walk((SparkPlan) each.next());
  }

  private void split(Expression condition) {
    if (condition instanceof And) {
      split(((And) condition).left());
      split(((And) condition).right());
    } else {
      conditions.add(condition);
    }
  }

  private void named(scala.collection.Seq columns) {
    scala.collection.Iterator each = columns.iterator();
    while (each.hasNext()) {
      Object column = each.next();
      if (column instanceof Alias) origins.put(((Alias) column).exprId(), ids(((Alias) column).child()));
    }
  }

  private void joined(BaseJoinExec join) {
    for (int i = 0; i < join.leftKeys().length(); i++) {
      conditions.add(new EqualTo((Expression) join.leftKeys().apply(i), (Expression) join.rightKeys().apply(i)));
    }
    if (join.condition().isDefined()) split((Expression) join.condition().get());
  }

  private void computed(EvalPythonExec python) {
    for (int i = 0; i < python.udfs().length(); i++) {
      Object made = ((Attribute) python.resultAttrs().apply(i)).exprId();
      PythonUDF udf = (PythonUDF) python.udfs().apply(i);
      origins.put(made, ids(udf));
      if (SqlFunctions.isOurs(udf.name())) ours.add(made);
    }
  }

  private String line(FileSourceScanExec scan) {
    FuseIndex index = (FuseIndex) scan.relation().location();
    ArrayBuffer filters = listed(scan);
    Set output = new HashSet();
    for (int i = 0; i < scan.output().length(); i++) output.add(((Attribute) scan.output().apply(i)).exprId());
    Set unpushed = new LinkedHashSet();
    for (int i = 0; i < conditions.size(); i++) {
      Expression condition = (Expression) conditions.get(i);
      if (touches(condition, output) && !asked(condition, filters) && !implied(condition, scan, filters)) unpushed.add(ExpressionJson.quoted(condition.sql()));
    }
    return "{\"voter\":" + ExpressionJson.quoted(index.voter()) + ",\"request\":" + ExpressionJson.quoted(index.request(filters))
        + ",\"unpushed\":[" + String.join(",", unpushed) + "]}";
  }

  /** The filters that Spark lists files with: those that need no subquery's result. */
  private static ArrayBuffer listed(FileSourceScanExec scan) {
    ArrayBuffer filters = new ArrayBuffer();
    scala.collection.Iterator each = scan.dataFilters().iterator();
    while (each.hasNext()) {
      Expression filter = (Expression) each.next();
      if (!waits(filter)) filters.addOne(filter);
    }
    return filters;
  }

  private static boolean waits(Expression expression) {
    if (expression instanceof PlanExpression) return true;
    for (int i = 0; i < expression.children().length(); i++) if (waits((Expression) expression.children().apply(i))) return true;
    return false;
  }

  private static boolean asked(Expression condition, ArrayBuffer filters) {
    for (int i = 0; i < filters.length(); i++) if (((Expression) filters.apply(i)).semanticEquals(condition)) return true;
    return false;
  }

  /** Calls of our functions reach the scan as marks, whatever evaluates them; and so may parts of other conditions. */
  private boolean implied(Expression condition, FileSourceScanExec scan, ArrayBuffer filters) {
    if (condition instanceof Attribute) return ours.contains(((Attribute) condition).exprId());
    Expression part = ImpliedFilter.of(condition, scan.outputSet());
    return part != null && asked(part, filters);
  }

  private boolean touches(Expression condition, Set output) {
    Set waiting = ids(condition);
    Set done = new HashSet();
    while (!waiting.isEmpty()) {
      Iterator each = waiting.iterator();
      Object id = each.next();
      each.remove();
      if (output.contains(id)) return true;
      if (done.add(id) && origins.containsKey(id)) waiting.addAll((Set) origins.get(id));
    }
    return false;
  }

  private static Set ids(Expression expression) {
    Set found = new HashSet();
    scala.collection.Iterator each = expression.references().iterator();
    while (each.hasNext()) found.add(((Attribute) each.next()).exprId());
    return found;
  }
}
