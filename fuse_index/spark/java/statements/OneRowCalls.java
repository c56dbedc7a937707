package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Puts the text of a function into the place of the query of one row that FunctionCalls made of its call: a MERGE is made a join, whose
 * conditions and values may have no queries about its rows.
 */
public class OneRowCalls<N> extends NodeRewrite<N> {
  /** The columns of the rows that a query is about are those of the statement. */
  public static class Outer extends NodeRewrite<Expression> {
    protected Object rewrite(Object node) {
      Object inner = node;
      while (inner instanceof OuterReference || inner instanceof SQLScalarFunction) {
        inner = inner instanceof OuterReference ? ((OuterReference) inner).e() : ((SQLScalarFunction) inner).child();
      }
      return inner == node ? null : inner;
    }
  }

  protected Object rewrite(Object node) { return node instanceof ScalarSubquery ? value((LogicalPlan) ((ScalarSubquery) node).plan()) : null; }

  /** What a query of one row says, in terms of what is outside of it; null if it reads rows, or draws values. */
  private static Expression value(LogicalPlan query) {
    Expression term = (Expression) query.output().head();
    LogicalPlan plan = query;
    while (plan instanceof Project) {
      if (!Trees.isDeterministic(plan)) return null;
      term = Trees.inline((Project) plan, term);
      plan = Trees.child(plan);
    }
    if (!(plan instanceof OneRowRelation) || SubqueryExpression.hasSubquery(term)) return null; // which may ask about this row
    return (Expression) term.transformDown(new Outer());
  }
}
