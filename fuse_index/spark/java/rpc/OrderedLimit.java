package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;

/** The first rows of a plan, by an order or by none: a LIMIT, and the ORDER BY below it. */
public class OrderedLimit {
  /** What the rows are of, below the sort. */
  public final LogicalPlan rows;
  /** By what they are ordered first; null where any will do. */
  public final SortOrder order;
  /** Whether nothing else decides between rows that are equal by that. */
  public final boolean alone;
  /** How many are wanted, those that an OFFSET passes over included. */
  public final int count;

  private OrderedLimit(LogicalPlan rows, SortOrder order, boolean alone, int count) {
    this.rows = rows;
    this.order = order;
    this.alone = alone;
    this.count = count;
  }

  /** What a limit is of; null where its number is no constant, or its rows are sorted within partitions alone. */
  public static OrderedLimit of(GlobalLimit limit) {
    LogicalPlan local = limit.child() instanceof Offset ? ((Offset) limit.child()).child() : limit.child();
    if (!(local instanceof LocalLimit) || !(((LocalLimit) local).limitExpr() instanceof Literal)) return null;
    int count = ((Integer) ((Literal) ((LocalLimit) local).limitExpr()).value()).intValue();
    LogicalPlan rows = ((LocalLimit) local).child();
    LogicalPlan sorted = rows; // below columns that were only to sort by
    while (sorted instanceof Project) sorted = ((Project) sorted).child();
    if (!(sorted instanceof Sort)) return new OrderedLimit(rows, null, false, count);
    Sort sort = (Sort) sorted;
    return sort.global() ? new OrderedLimit(sort.child(), (SortOrder) sort.order().head(), sort.order().size() == 1, count) : null;
  }

  /** What Python is told of it, still open. `key`: what rows are ordered by, in terms of these columns of ours. */
  public static Json question(SortOrder order, Expression key, int count, Set<String> columns) {
    Json json = new Json().open('{').key("limit").json(String.valueOf(count)).key("by");
    if (order == null) return json.json("null");
    return json.json(ExpressionJson.ofOne(key, columns)).key("descending").bool(order.direction() == Descending$.MODULE$)
        .key("nulls_first").bool(order.nullOrdering() == NullsFirst$.MODULE$);
  }

  /** What rows are ordered by in terms of the columns below a projection; null if it is made by chance. */
  public static Expression below(Project project, Expression key) {
    Expression origin = Trees.inline(project, key);
    return origin.deterministic() ? origin : null;
  }
}
