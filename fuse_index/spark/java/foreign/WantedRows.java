package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Sort;

/** Which rows of a leaf a fragment of a plan wants: projections and filters over it and, above them, perhaps the first rows of an order. */
public class WantedRows {
  /** Conditions that rows must meet before anything numbers them or draws for them, in terms of the leaf. */
  public final List<Expression> conditions;
  /** Whether row groups may be left out of files that are read: not where a query asks for the pieces that a file is read in. */
  public final boolean mayCut;
  /** Whether partitions may have other numbers than without votes. */
  public final boolean mayRenumber;
  private final OrderedLimit first;
  /** What rows are ordered by, in terms of the leaf; null of all rows, in no order. */
  private final Expression key;

  private WantedRows(List<Expression> conditions, boolean mayCut, LogicalPlan leaf, OrderedLimit first, Expression key) {
    this.conditions = conditions;
    this.mayCut = mayCut && PlacesRule.mayCut(leaf);
    this.mayRenumber = PlacesRule.mayRenumber(leaf);
    this.first = first;
    this.key = key;
  }

  /** The leaf of a plan that may be such a fragment, without a look at any of its expressions; null of any other. */
  static LogicalPlan leafBelow(LogicalPlan plan) {
    LogicalPlan node = plan;
    while (node instanceof Project || node instanceof Filter || node instanceof Sort || node instanceof GlobalLimit || node instanceof LocalLimit
        || node instanceof Offset || node instanceof ReturnAnswer) node = Trees.child(node);
    return node.children().isEmpty() ? node : null;
  }

  /** What a plan wants that is such a fragment; null of any other. */
  public static WantedRows of(LogicalPlan plan) {
    LogicalPlan limit = plan instanceof ReturnAnswer ? Trees.child(plan) : plan;
    OrderedLimit first = limit instanceof GlobalLimit ? OrderedLimit.of((GlobalLimit) limit) : null;
    if (first != null && first.order != null) return of(limit, first);
    return plan instanceof Project || plan instanceof Filter ? of(plan, null) : null;
  }

  private static WantedRows of(LogicalPlan plan, OrderedLimit first) {
    List<Expression> conditions = new ArrayList<Expression>();
    LogicalPlan node = first == null ? plan : first.rows;
    Expression key = first == null ? null : first.order.child();
    boolean mayCut = first == null || !tellsPieces(plan, node);
    while (node instanceof Project || node instanceof Filter) {
      boolean deterministic = Trees.isDeterministic(node);
      if (first != null && !deterministic) return null; // which of the rows are the first is chance
      mayCut &= !tellsPieces(node);
      if (!deterministic) conditions.clear();
      else if (node instanceof Filter) conditions.addAll(Trees.conjuncts(((Filter) node).condition()));
      else conditions = inlined((Project) node, conditions);
      if (node instanceof Project && key != null) key = OrderedLimit.below((Project) node, key);
      if (first != null && key == null) return null;
      node = Trees.child(node);
    }
    return node.children().isEmpty() ? new WantedRows(conditions, mayCut, node, first, key) : null;
  }

  public boolean isFirst() { return first != null; }

  /** Which rows are the first, as Python is told it, still open; null where the order is by nothing that an index knows. */
  public Json top(SourceColumns columns, SourceIndex index) {
    Expression ours = columns.translate(key);
    return ours == null ? null : OrderedLimit.question(first.order, ours, first.count, index.snapshot.columns());
  }

  private static List<Expression> inlined(Project project, List<Expression> conditions) {
    List<Expression> inlined = new ArrayList<Expression>();
    for (Expression condition : conditions) inlined.add(Trees.inline(project, condition));
    return inlined;
  }

  /** Whether a query asks, above some node, where in a file its piece begins, or how long it is. */
  private static boolean tellsPieces(LogicalPlan plan, LogicalPlan above) {
    return plan != above && (tellsPieces(plan) || tellsPieces(Trees.child(plan), above));
  }

  static boolean tellsPieces(LogicalPlan node) {
    for (Expression expression : ScalaLists.toJava(node.expressions())) if (tellsPieces(expression)) return true;
    return false;
  }

  private static boolean tellsPieces(Expression expression) {
    if (expression instanceof InputFileBlockStart || expression instanceof InputFileBlockLength) return true;
    for (Expression child : ScalaLists.toJava(expression.children())) if (tellsPieces(child)) return true;
    return false;
  }
}
