package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Tells a scan of one of our tables how many rows are wanted of it, where a LIMIT, or a LIMIT of an ORDER BY, is over it with
 * nothing but projections and conditions that the scan knows in between. Spark still sorts and counts.
 */
public class TopRule<P extends TreeNode<?>> extends SafeRule<P> {
  public static class TellLimits extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) { return node instanceof GlobalLimit ? limited((GlobalLimit) node) : null; }
  }

  public TopRule() { super("a LIMIT did not reach the scan"); }

  protected LogicalPlan improve(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new TellLimits()); }

  /** The limit, over a scan that knows of it; null if nothing changes. */
  private static LogicalPlan limited(GlobalLimit limit) {
    OrderedLimit wanted = OrderedLimit.of(limit);
    if (wanted == null) return null;
    LogicalPlan told = tell(wanted.rows, wanted, wanted.order == null ? null : wanted.order.child());
    return told == null ? null : Trees.replace(limit, wanted.rows, told);
  }

  /** `rows` over a scan that knows how many are wanted; `key` is what they are ordered by in terms of this plan's columns. */
  private static LogicalPlan tell(LogicalPlan rows, OrderedLimit wanted, Expression value) {
    Expression key = value == null ? null : SqlFunctions.valueMark(value);
    FuseScan scan = FuseScan.below(rows);
    if (scan != null) {
      FuseScan told = scan.withTop(top(scan, wanted, key));
      return told == scan ? null : told.replaceIn(rows);
    }
    if (rows instanceof Filter && !knows(FuseScan.below(((Filter) rows).child()), ((Filter) rows).condition())) return null;
    // A call of a Python function beside each row makes no row, and is no key that anybody below knows.
    if (!(rows instanceof Filter) && !(rows instanceof Project) && !(rows instanceof BaseEvalPython)) return null;
    LogicalPlan child = Trees.child(rows);
    Expression below = rows instanceof Project && key != null ? OrderedLimit.below((Project) rows, key) : key;
    if (key != null && (below == null || rows instanceof BaseEvalPython && !below.references().subsetOf(child.outputSet()))) return null;
    LogicalPlan told = tell(child, wanted, below);
    return told == null ? null : Trees.replace(rows, child, told);
  }

  /** Whether a scan was told of every part of a condition right above it: rows that it is sure of are then all wanted. */
  private static boolean knows(FuseScan scan, Expression condition) {
    if (scan == null) return false;
    for (Expression conjunct : Trees.conjuncts(condition)) {
      boolean told = false;
      for (Expression filter : scan.filters()) told |= filter.semanticEquals(conjunct);
      if (!told) return false;
    }
    return true;
  }

  private static String top(FuseScan scan, OrderedLimit wanted, Expression key) {
    Json question = OrderedLimit.question(wanted.order, key, wanted.count, scan.snapshot.columns());
    return (wanted.order == null ? question : question.key("alone").bool(wanted.alone)).close('}').toString();
  }
}
