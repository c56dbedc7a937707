package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Takes the filters that wait for keys off our scans in WITH RECURSIVE.
 *
 * Spark optimizes the plans of its steps once, and again before each step, when it knows the rows of the step before. In between
 * it analyzes them, and refuses such a filter, but for those in subqueries. What is taken off here comes again with the rows.
 */
public class RecursionRule<P extends TreeNode<?>> extends SafeRule<P> {
  public static class WithoutWaiting extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      boolean isRecursion = Versions.isRecursion((LogicalPlan) node);
      return isRecursion ? ((LogicalPlan) node).transformDown(new DropWaiting()) : null;
    }
  }

  public static class DropWaiting extends DropConjuncts {
    protected boolean drops(Expression conjunct, Filter filter) {
      return conjunct instanceof DynamicPruningSubquery && FuseScan.below(filter.child()) != null;
    }
  }

  public RecursionRule() { super("a recursive query may not run"); }

  protected LogicalPlan improve(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new WithoutWaiting()); }
}
