import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An optimizer rule that prunes scans before joins are planned, so that Spark knows the size of what is left: the one block of a
 * lookup is broadcast. Before that, it lets through to the scan what conditions on Python UDFs imply. A plan on which this fails
 * stays as it was.
 */
public class EarlyPruneRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  public static class PruneScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseIndex index = node instanceof Filter ? FuseIndex.below(((Filter) node).child()) : null;
      return index == null ? null : pruneScan((Filter) node, index);
    }
  }

  protected LogicalPlan rewrite(LogicalPlan plan) {
    try {
      if (plan.isStreaming()) return plan;
      LogicalPlan implied = (LogicalPlan) plan.transformDown(new ImpliedFilter());
      return (LogicalPlan) implied.transformDown(new PruneScans());
    } catch (Exception failure) {
      LOG.warn("indexes vote when the query runs, not before: " + failure);
      return plan;
    }
  }

  private static LogicalPlan pruneScan(Filter filter, FuseIndex index) {
    // Only what the scan will be asked with too: deterministic, and without subqueries, which are not planned yet.
    List<Expression> filters = new ArrayList<Expression>();
    for (Expression conjunct : ImpliedFilter.conjuncts(filter.condition())) {
      if (conjunct.deterministic() && !SubqueryExpression.hasSubquery(conjunct)) filters.add(conjunct);
    }
    FuseIndex pruned = index.withPrunedSize(ScalaLists.toScala(filters));
    if (pruned == index) return filter;
    return new Filter(filter.condition(), withFileIndex((LogicalRelation) filter.child(), pruned));
  }

  /** The same scan, over the files that `index` lists. */
  public static LogicalPlan withFileIndex(LogicalRelation scan, FuseIndex index) {
    HadoopFsRelation old = (HadoopFsRelation) scan.relation();
    HadoopFsRelation relation = new HadoopFsRelation(
        index, old.partitionSchema(), old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options(), old.sparkSession());
    // By position, because LogicalRelation gained parameters between versions of Spark: the relation is its first.
    Object[] arguments = new Object[scan.productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = i == 0 ? relation : scan.productElement(i);
    return (LogicalPlan) scan.makeCopy(arguments);
  }
}
