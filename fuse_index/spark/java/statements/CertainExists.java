package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/**
 * Makes TRUE of an EXISTS whose query always has its one row: an aggregate of all rows, were there none. Spark would read the table
 * once more for it, and then does not know of which of both the rows of a statement are.
 */
public class CertainExists<N> extends NodeRewrite<N> {
  protected Object rewrite(Object node) {
    return node instanceof Exists && hasOneRow((LogicalPlan) ((Exists) node).plan()) ? Literal.TrueLiteral() : null;
  }

  private static boolean hasOneRow(LogicalPlan plan) {
    if (plan instanceof Aggregate) return ((Aggregate) plan).groupingExpressions().isEmpty();
    boolean keepsRows = plan instanceof Project || plan instanceof SubqueryAlias;
    return keepsRows && hasOneRow(Trees.child(plan));
  }
}
