package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
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
   * Takes out filters that Spark put over scans by itself: those that know no reason to wait, and those whose plan waits itself for
   * others that wait.
   */
  public static class DropPruning extends DropConjuncts {
    private final Map<LogicalPlan, LogicalPlan> told;

    public DropPruning(Map<LogicalPlan, LogicalPlan> told) { this.told = told; }

    protected boolean drops(Expression conjunct, Filter filter) {
      FuseScan scan = conjunct instanceof DynamicPruningSubquery ? FuseScan.below(filter.child()) : null;
      if (scan == null) return false;
      DynamicPruningSubquery pruning = (DynamicPruningSubquery) conjunct;
      return scan.refusalOfKeys(pruning.pruningKey()) != null || KeySource.nesting(tellAll(pruning.buildQuery(), told)) >= KeySource.MAX_NESTING;
    }
  }

  /**
   * The plans of dynamic pruning, which are to be the same as the broadcast sides of joins, and which no other rule visits; and
   * those of subqueries, whose scans Spark has made again where it merged them.
   */
  public static class TellSubqueries extends NodeRewrite<Expression> {
    private final Map<LogicalPlan, LogicalPlan> told;

    public TellSubqueries(Map<LogicalPlan, LogicalPlan> told) { this.told = told; }

    protected Object rewrite(Object node) {
      if (!(node instanceof SubqueryExpression)) return null;
      LogicalPlan plan = (LogicalPlan) ((SubqueryExpression) node).plan();
      LogicalPlan after = tellAll(plan, told);
      return after == plan ? null : ((SubqueryExpression) node).withNewPlan(after);
    }
  }

  /**
   * `told`: by identity, what became of plans. Of a chain of joins each side waits for the next, so that the plan of the last is in
   * all filters before it, in each of the plans of these, and so on: twice as often with each join.
   */
  private static LogicalPlan tellAll(LogicalPlan plan, Map<LogicalPlan, LogicalPlan> told) {
    LogicalPlan known = (LogicalPlan) told.get(plan);
    if (known != null) return known;
    LogicalPlan flat = (LogicalPlan) tellScans(plan).transformDown(new FlattenScans());
    LogicalPlan pruned = (LogicalPlan) flat.transformDown(new DropPruning(told));
    LogicalPlan after = (LogicalPlan) pruned.transformAllExpressions(new TellSubqueries(told));
    // What changes rows asks its table for more than scans.
    if (!(after instanceof Command)) after = (LogicalPlan) after.transformDown(new MergeableTable.MarkScans());
    told.put(plan, after);
    return after;
  }

  /** After the others, because conditions are no longer right above a scan then. */
  public static class FlattenScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseScan scan = FuseScan.below(node);
      return scan == null || scan.flat() == scan ? null : FlatScan.flatten((LogicalPlan) node, scan.flat());
    }
  }

  public PruneRule() { super("every block is read, because the conditions did not reach the scan"); }

  protected LogicalPlan improve(LogicalPlan plan) { return tellAll(plan, new IdentityHashMap<LogicalPlan, LogicalPlan>()); }

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
