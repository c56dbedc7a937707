import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.collection.mutable.ArrayBuffer;
import scala.runtime.AbstractPartialFunction;

/**
 * An optimizer rule that lets indexes vote early, so that Spark knows the size of what is left: a lookup of one block is
 * broadcast. Before that it lets through to the scan what conditions on Python UDFs imply. Whatever goes wrong on the way leaves
 * the plan as it was.
 */
public class EarlyPruneRule extends Rule {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  public static class Step extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return index(node) != null; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      FuseIndex index = index(node);
      return index == null ? otherwise.apply(node) : narrowed((Filter) node, index);
    }
  }

  public TreeNode apply(TreeNode plan) {
    try {
      if (((LogicalPlan) plan).isStreaming()) return plan;
      return ((LogicalPlan) ((LogicalPlan) plan).transformDown(new ImpliedFilter())).transformDown(new Step());
    } catch (Exception failure) {
      LOG.warn("indexes vote when the query runs, not before: " + failure);
      return plan;
    }
  }

  private static FuseIndex index(Object node) {
    return node instanceof Filter ? AggregateQuery.index(((Filter) node).child()) : null;
  }

  private static LogicalPlan narrowed(Filter filter, FuseIndex index) {
    ArrayBuffer conjuncts = new ArrayBuffer();
    conjuncts(filter.condition(), conjuncts);
    FuseIndex narrow = index.narrowed(conjuncts);
    if (narrow == index) return filter;
    return new Filter(filter.condition(), over((LogicalRelation) filter.child(), narrow));
  }

  /** The same scan, of what `index` lists. */
  public static LogicalPlan over(LogicalRelation scan, FuseIndex index) {
    HadoopFsRelation all = (HadoopFsRelation) scan.relation();
    HadoopFsRelation left = new HadoopFsRelation(
        index, all.partitionSchema(), all.dataSchema(), all.bucketSpec(), all.fileFormat(), all.options(), all.sparkSession());
    // By position, because LogicalRelation gained parameters between versions of Spark: the relation is its first.
    Object[] parts = new Object[scan.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = i == 0 ? left : scan.productElement(i);
    return (LogicalPlan) scan.makeCopy(parts);
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
