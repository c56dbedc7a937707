package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.BatchEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Adds, below the evaluation of Python UDFs, the filter that a condition on them implies. Spark pushes down whole conjuncts alone,
 * so of `(udf1 AND mark1) OR (udf2 AND mark2)` the scan would learn nothing; `mark1 OR mark2` follows from it.
 */
public class ImpliedFilter extends NodeRewrite<LogicalPlan> {
  protected Object rewrite(Object node) {
    Expression implied = newFilterBelow(node);
    if (implied == null) return null;
    Filter filter = (Filter) node;
    LogicalPlan python = filter.child();
    LogicalPlan child = Trees.child(python);
    // One filter, since a scan is told of what is right above it alone.
    LogicalPlan filtered = isFilter(child) ? new Filter(new And(((Filter) child).condition(), implied), Trees.child(child)) : new Filter(implied, child);
    return new Filter(filter.condition(), (LogicalPlan) python.withNewChildren(ScalaLists.of(filtered)));
  }

  /** The filter to add below `node`; null if there is nothing new, or the table is not ours. */
  private static Expression newFilterBelow(Object node) {
    if (!(node instanceof Filter)) return null;
    LogicalPlan python = ((Filter) node).child();
    if (!(python instanceof ArrowEvalPython) && !(python instanceof BatchEvalPython)) return null;
    LogicalPlan child = Trees.child(python);
    if (!readsFuseTable(child) && !(callsFunctions(python) && readsSource(child))) return null;
    Expression condition = new CallConditions(python, child.outputSet()).marked(((Filter) node).condition());
    Expression implied = Trees.impliedBy(condition, child.outputSet());
    if (implied == null) return null;
    List<Expression> added = new ArrayList<Expression>();
    for (Expression conjunct : Trees.conjuncts(implied)) {
      if (!child.constraints().contains(conjunct) && !isFilteredBy(child, conjunct)) added.add(conjunct);
    }
    return added.isEmpty() ? null : Trees.and(added);
  }

  private static boolean readsFuseTable(LogicalPlan plan) {
    for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) if (FuseScan.below(leaf) != null) return true;
    return false;
  }

  /** Whether a function of a plugin is among what is evaluated: its mark tells indexes of the call. */
  private static boolean callsFunctions(LogicalPlan python) {
    for (Expression expression : ScalaLists.toJava(python.expressions())) {
      if (expression instanceof PythonUDF && SqlFunctions.isRegistered(((PythonUDF) expression).name())) return true;
    }
    return false;
  }

  private static boolean readsSource(LogicalPlan plan) {
    for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) if (Connector.of(leaf) != null) return true;
    return false;
  }

  private static boolean isFilter(LogicalPlan plan) { return plan instanceof Filter && ((Filter) plan).condition().deterministic(); }

  private static boolean isFilteredBy(LogicalPlan child, Expression implied) {
    if (!(child instanceof Filter)) return false;
    for (Expression conjunct : Trees.conjuncts(((Filter) child).condition())) if (conjunct.semanticEquals(implied)) return true;
    return false;
  }
}
