import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.mutable.ArrayBuffer;
import scala.runtime.AbstractPartialFunction;

/** An optimizer rule that lets indexes vote early, so that Spark knows the size of what is left: a lookup of one block is broadcast. */
public class Narrow extends Rule {
  public static class Step extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return index(node) != null; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      FuseIndex index = index(node);
      return index == null ? otherwise.apply(node) : narrowed((Filter) node, index);
    }
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).isStreaming() ? plan : ((LogicalPlan) plan).transformDown(new Step());
  }

  private static FuseIndex index(Object node) {
    if (!(node instanceof Filter) || !(((Filter) node).child() instanceof LogicalRelation)) return null;
    Object relation = ((LogicalRelation) ((Filter) node).child()).relation();
    if (!(relation instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) relation).location();
    return location instanceof FuseIndex ? (FuseIndex) location : null;
  }

  private static LogicalPlan narrowed(Filter filter, FuseIndex index) {
    ArrayBuffer conjuncts = new ArrayBuffer();
    conjuncts(filter.condition(), conjuncts);
    FuseIndex narrow = index.narrowed(conjuncts);
    if (narrow == index) return filter;
    LogicalRelation scan = (LogicalRelation) filter.child();
    HadoopFsRelation all = (HadoopFsRelation) scan.relation();
    HadoopFsRelation left = new HadoopFsRelation(
        narrow, all.partitionSchema(), all.dataSchema(), all.bucketSpec(), all.fileFormat(), all.options(), all.sparkSession());
    // By position, because LogicalRelation gained parameters between versions of Spark: the relation is its first.
    Object[] parts = new Object[scan.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = i == 0 ? left : scan.productElement(i);
    return new Filter(filter.condition(), (LogicalPlan) scan.makeCopy(parts));
  }

  /** Only what the scan will be asked with too: deterministic, and without subqueries, which are not planned yet. */
  private static void conjuncts(Expression condition, ArrayBuffer found) {
    if (condition instanceof And) {
      conjuncts(((And) condition).left(), found);
      conjuncts(((And) condition).right(), found);
    } else if (condition.deterministic() && !org.apache.spark.sql.catalyst.expressions.SubqueryExpression.hasSubquery(condition)) {
      found.addOne(condition);
    }
  }
}
