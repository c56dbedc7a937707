import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.BatchEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * What a condition on Python UDFs implies of the rows below them. Spark pushes down whole conjuncts alone, so of
 * `(udf1 AND mark1) OR (udf2 AND mark2)` the scan would learn nothing; `mark1 OR mark2` follows from it.
 */
public class ImpliedFilter extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) { return below(node) != null; }

  public Object applyOrElse(Object node, Function1 otherwise) {
    Expression implied = below(node);
    if (implied == null) return otherwise.apply(node);
    Filter filter = (Filter) node;
    LogicalPlan python = filter.child();
    LogicalPlan narrowed = new Filter(implied, (LogicalPlan) python.children().head());
    return new Filter(filter.condition(), (LogicalPlan) python.withNewChildren(scala.collection.immutable.Nil$.MODULE$.$colon$colon(narrowed)));
  }

  /** What to add below; null if there is nothing new. */
  private static Expression below(Object node) {
    if (!(node instanceof Filter)) return null;
    LogicalPlan python = ((Filter) node).child();
    if (!(python instanceof ArrowEvalPython) && !(python instanceof BatchEvalPython)) return null;
    LogicalPlan child = (LogicalPlan) python.children().head();
    if (!readsOurs(child)) return null;
    Expression implied = of(((Filter) node).condition(), child.outputSet());
    return implied == null || child.constraints().contains(implied) || has(child, implied) ? null : implied;
  }

  /** Plans of others stay as they are. */
  private static boolean readsOurs(LogicalPlan plan) {
    scala.collection.Iterator leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) if (AggregateQuery.index(leaves.next()) != null) return true;
    return false;
  }

  private static boolean has(LogicalPlan child, Expression implied) {
    return child instanceof Filter && ((Filter) child).condition().semanticEquals(implied);
  }

  /** The strongest condition on these columns alone that is TRUE wherever `condition` is; null if there is none. */
  public static Expression of(Expression condition, AttributeSet columns) {
    if (condition instanceof And) {
      Expression left = of(((And) condition).left(), columns);
      Expression right = of(((And) condition).right(), columns);
      return left == null ? right : right == null ? left : new And(left, right);
    }
    if (condition instanceof Or) {
      Expression left = of(((Or) condition).left(), columns);
      Expression right = of(((Or) condition).right(), columns);
      return left == null || right == null ? null : new Or(left, right);
    }
    boolean possible = condition.deterministic() && !SubqueryExpression.hasSubquery(condition);
    return possible && condition.references().subsetOf(columns) ? condition : null;
  }
}
