package fuse_index.spark.java.catalyst;

import java.util.*;
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
    List<Expression> left = new ArrayList<Expression>();
    List<Expression> conjuncts = Trees.conjuncts(filter.condition());
    for (Expression conjunct : conjuncts) if (!drops(conjunct, filter)) left.add(conjunct);
    return left.size() == conjuncts.size() ? null : Trees.filter(left, filter.child());
  }
}
