package fuse_index.spark.java.catalyst;

import fuse_index.spark.java.rules.*;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Takes conditions out of filters; a filter of which none is left goes, too. */
public abstract class DropConjuncts extends NodeRewrite<LogicalPlan> {
  /** Whether to take out one of the terms of a filter's AND. */
  protected abstract boolean drops(Expression conjunct, Filter filter);

  protected Object rewrite(Object node) {
    if (!(node instanceof Filter)) return null;
    Filter filter = (Filter) node;
    Expression left = null;
    boolean any = false;
    for (Expression conjunct : ImpliedFilter.conjuncts(filter.condition())) {
      if (drops(conjunct, filter)) any = true;
      else left = left == null ? conjunct : new And(left, conjunct);
    }
    return !any ? null : left == null ? filter.child() : new Filter(left, filter.child());
  }
}
