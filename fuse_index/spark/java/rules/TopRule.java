package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
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
    LogicalPlan local = limit.child() instanceof Offset ? ((Offset) limit.child()).child() : limit.child();
    if (!(local instanceof LocalLimit) || !(((LocalLimit) local).limitExpr() instanceof Literal)) return null;
    int count = ((Integer) ((Literal) ((LocalLimit) local).limitExpr()).value()).intValue();
    LogicalPlan rows = ((LocalLimit) local).child();
    LogicalPlan sorted = rows; // below columns that were only to sort by
    while (sorted instanceof Project) sorted = ((Project) sorted).child();
    SortOrder order = null;
    boolean alone = false;
    if (sorted instanceof Sort) {
      if (!((Sort) sorted).global()) return null;
      order = (SortOrder) ((Sort) sorted).order().head();
      alone = ((Sort) sorted).order().size() == 1;
      rows = ((Sort) sorted).child();
    }
    LogicalPlan told = new Wanted(order, alone, count).tell(rows, order == null ? null : order.child());
    return told == null ? null : Trees.replace(limit, rows, told);
  }

  /** How many first rows by an order are wanted. */
  private static class Wanted {
    private final SortOrder order;
    /** Whether nothing else decides between equal rows. */
    private final boolean alone;
    private final int count;

    Wanted(SortOrder order, boolean alone, int count) {
      this.order = order;
      this.alone = alone;
      this.count = count;
    }

    /** `rows` over a scan that knows how many are wanted; `key` is what they are ordered by in terms of this plan's columns. */
    LogicalPlan tell(LogicalPlan rows, Expression value) {
      Expression key = value == null ? null : SqlFunctions.valueMark(value);
      FuseScan scan = FuseScan.below(rows);
      if (scan != null) {
        FuseScan told = scan.withTop(top(scan, key));
        return told == scan ? null : told.replaceIn(rows);
      }
      if (rows instanceof Filter && !knows(FuseScan.below(((Filter) rows).child()), ((Filter) rows).condition())) return null;
      // A call of a Python function beside each row makes no row, and is no key that anybody below knows.
      if (!(rows instanceof Filter) && !(rows instanceof Project) && !(rows instanceof BaseEvalPython)) return null;
      LogicalPlan child = Trees.child(rows);
      Expression below = rows instanceof Project && key != null ? origin((Project) rows, key) : key;
      if (key != null && (below == null || rows instanceof BaseEvalPython && !below.references().subsetOf(child.outputSet()))) return null;
      LogicalPlan told = tell(child, below);
      return told == null ? null : Trees.replace(rows, child, told);
    }

    private String top(FuseScan scan, Expression key) {
      Json json = new Json().open('{').key("limit").json(String.valueOf(count)).key("by");
      if (order == null) return json.json("null").close('}').toString();
      return json.json(ExpressionJson.ofOne(key, scan.snapshot.columns())).key("descending").bool(order.direction() == Descending$.MODULE$)
          .key("nulls_first").bool(order.nullOrdering() == NullsFirst$.MODULE$).key("alone").bool(alone).close('}').toString();
    }
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

  /** What rows are ordered by in terms of the columns below a projection; null if it is made by chance. */
  private static Expression origin(Project project, Expression key) {
    Expression origin = Trees.inline(project, key);
    return origin.deterministic() ? origin : null;
  }
}
