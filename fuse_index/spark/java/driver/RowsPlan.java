package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * A scan of one of our tables with nothing over it but what the driver may evaluate in the place of executors: projections and
 * conditions, deterministic, without subqueries and without users' functions. Calls of plugins' functions that are conditions by
 * themselves are left to Python, which knows them by their marks.
 */
public class RowsPlan {
  /** Takes out conditions that spare the reading of rows, and that the join repeats for which they were made. */
  public static class DropPruning extends DropConjuncts {
    protected boolean drops(Expression conjunct, Filter filter) { return conjunct instanceof DynamicPruningSubquery; }
  }

  /** The plan without what only spares the reading of rows. */
  public final LogicalPlan plan;
  public final LogicalPlan relation;
  public final FuseScan scan;
  /** The plan without what is left to Python. */
  public final LogicalPlan foldable;
  public final boolean leavesCallsToPython;
  /** Columns that calls make, and those of which a condition is left to Python. */
  private final Set<ExprId> calls = new HashSet<ExprId>();
  private int callsLeft;

  private RowsPlan(LogicalPlan plan, LogicalPlan relation) {
    this.plan = plan;
    this.relation = relation;
    this.scan = FuseScan.below(relation);
    LogicalPlan made = foldable(plan);
    boolean unmarked = callsLeft > marks();
    this.foldable = made == null || unmarked || usesCalls(plan.output()) ? null : made;
    this.leavesCallsToPython = callsLeft > 0;
  }

  /** The plan, if the driver may evaluate it; else null. */
  public static RowsPlan of(LogicalPlan plan) {
    LogicalPlan relation = relationBelow(plan);
    FuseScan scan = BroadcastKeys.scanOf(relation);
    if (scan == null || plan.isStreaming() || !scan.mayGiveRows()) return null;
    LogicalPlan told = (LogicalPlan) plan.transformDown(new DropPruning());
    if (scan != FuseScan.below(relation)) told = Trees.replace(told, relation, scan.replaceIn(relation));
    RowsPlan rows = new RowsPlan(told, relationBelow(told));
    return rows.foldable == null ? null : rows;
  }

  /** What lies below all that the driver may evaluate. */
  public static LogicalPlan relationBelow(LogicalPlan plan) {
    LogicalPlan relation = plan;
    while (relation instanceof Project || relation instanceof Filter || relation instanceof BaseEvalPython) {
      relation = Trees.child(relation);
    }
    return relation;
  }

  private LogicalPlan foldable(LogicalPlan plan) {
    if (plan == relation) return plan;
    LogicalPlan child = foldable(Trees.child(plan));
    if (child == null) return null;
    if (plan instanceof Filter) return filter(((Filter) plan).condition(), child);
    if (plan instanceof BaseEvalPython) return addCalls((BaseEvalPython) plan) ? child : null;
    for (NamedExpression column : ScalaLists.toJava(((Project) plan).projectList())) if (!isFoldable((Expression) column)) return null;
    return (LogicalPlan) plan.withNewChildren(ScalaLists.of(child));
  }

  private LogicalPlan filter(Expression condition, LogicalPlan child) {
    List<Expression> left = new ArrayList<Expression>();
    for (Expression conjunct : Trees.conjuncts(condition)) {
      if (conjunct instanceof Attribute && calls.contains(((Attribute) conjunct).exprId())) {
        callsLeft++;
        continue;
      }
      if (!isFoldable(conjunct)) return null;
      left.add(conjunct);
    }
    return Trees.filter(left, child);
  }

  private boolean addCalls(BaseEvalPython python) {
    for (PythonUDF udf : ScalaLists.toJava(python.udfs())) if (!SqlFunctions.isRegistered(udf.name())) return false;
    for (Attribute column : ScalaLists.toJava(python.resultAttrs())) calls.add(column.exprId());
    return true;
  }

  private boolean usesCalls(scala.collection.Seq<Attribute> columns) {
    for (Attribute column : ScalaLists.toJava(columns)) if (calls.contains(column.exprId())) return true;
    return false;
  }

  private boolean isFoldable(Expression expression) {
    return expression.deterministic() && !SubqueryExpression.hasSubquery(expression) && isSpark(expression)
        && !usesCalls(expression.references().toSeq());
  }

  /** Whether Spark itself evaluates all of it, one row at a time. */
  private static boolean isSpark(Expression expression) {
    if (expression instanceof UserDefinedExpression || expression instanceof Unevaluable && !(expression instanceof Attribute)) return false;
    for (Expression child : ScalaLists.toJava(expression.children())) if (!isSpark(child)) return false;
    return true;
  }

  /** How many calls the scan was told of by a condition that is nothing but a mark: Python takes rows out by those. */
  private int marks() {
    int marks = 0;
    for (Expression filter : scan.filters()) if (SqlFunctions.isMark(filter)) marks++;
    return marks;
  }
}
