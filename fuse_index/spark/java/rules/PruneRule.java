package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Tells scans of our tables the conditions right above them, as Catalyst's own expressions: those of
 * DataSource V2 know less. Before that, it lets through to the scan what conditions on Python UDFs imply. The conditions stay
 * where they are, so a plan on which this fails reads every block.
 */
public class PruneRule<P extends TreeNode<?>> extends SafeRule<P> {
  public static class TellScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseScan scan = node instanceof Filter ? FuseScan.below(((Filter) node).child()) : null;
      return scan == null ? null : tell((Filter) node, scan);
    }
  }

  private static LogicalPlan tellScans(LogicalPlan plan) {
    LogicalPlan implied = (LogicalPlan) plan.transformDown(new ImpliedFilter());
    return (LogicalPlan) implied.transformDown(new TellScans());
  }

  /**
   * The plans of dynamic pruning, which are to be the same as the broadcast sides of joins, and which no other rule visits; and
   * those of subqueries, whose scans Spark has made again where it merged them.
   */
  public static class TellSubqueries extends NodeRewrite<Expression> {
    protected Object rewrite(Object node) {
      if (!(node instanceof SubqueryExpression)) return null;
      LogicalPlan plan = (LogicalPlan) ((SubqueryExpression) node).plan();
      LogicalPlan told = tellAll(plan);
      return told == plan ? null : ((SubqueryExpression) node).withNewPlan(told);
    }
  }

  private static LogicalPlan tellAll(LogicalPlan plan) {
    LogicalPlan told = (LogicalPlan) tellScans(plan).transformAllExpressions(new TellSubqueries());
    LogicalPlan flat = (LogicalPlan) told.transformDown(new FlattenScans());
    // What changes rows asks its table for more than scans.
    return flat instanceof Command ? flat : (LogicalPlan) flat.transformDown(new MergeableTable.MarkScans());
  }

  /** After the others, because conditions are no longer right above a scan then. */
  public static class FlattenScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseScan scan = FuseScan.below(node);
      return scan == null || scan.flat() == scan ? null : FlatScan.flatten((LogicalPlan) node, scan.flat());
    }
  }

  public PruneRule() { super("every block is read, because the conditions did not reach the scan"); }

  protected LogicalPlan improve(LogicalPlan plan) { return tellAll(plan); }

  protected LogicalPlan improveStream(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new FlattenScans()); }

  private static LogicalPlan tell(Filter filter, FuseScan scan) {
    // What decides on single rows alone: deterministic, and without subqueries, which are not planned yet.
    List<Expression> conditions = new ArrayList<Expression>();
    for (Expression conjunct : Trees.conjuncts(filter.condition())) {
      if (conjunct.deterministic() && !SubqueryExpression.hasSubquery(conjunct)) conditions.add(conjunct);
    }
    FuseScan told = scan.withFilters(conditions);
    return told == scan ? filter : new Filter(filter.condition(), told.replaceIn(filter.child()));
  }
}
