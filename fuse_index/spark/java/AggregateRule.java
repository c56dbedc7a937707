import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * An optimizer rule that answers aggregates of our tables from what indexes keep of blocks. Whatever cannot be answered, or goes
 * wrong on the way, leaves the plan as it was.
 */
public class AggregateRule extends Rule {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  public static class Step extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return AggregateQuery.of(node) != null; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      AggregateQuery grouped = AggregateQuery.of(node);
      return grouped == null ? otherwise.apply(node) : answered(grouped);
    }
  }

  public TreeNode apply(TreeNode plan) {
    try {
      return ((LogicalPlan) plan).isStreaming() ? plan : ((LogicalPlan) plan).transformDown(new Step());
    } catch (Throwable failure) {
      LOG.warn("no aggregate is answered by indexes: " + failure);
      return plan;
    }
  }

  private static LogicalPlan answered(AggregateQuery asked) {
    try {
      FuseIndex.Head head = asked.index.head();
      for (AggregateQuery grouped = asked; grouped != null; grouped = grouped.derived ? null : grouped.byColumns()) {
        String request = grouped.request(head);
        byte[] reply = PythonCallback.ask(grouped.index.voter(), request);
        if (reply[0] == 0) continue;
        LogicalPlan made = new AggregateStates(grouped, head, reply).plan();
        made.setTagValue(AggregateStates.TAG, AggregateReport.line(grouped, request, true));
        return made;
      }
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
    } catch (Throwable failure) {
      LOG.warn("an aggregate is left to Spark, because indexes could not be asked: " + failure);
    }
    return asked.plan;
  }
}
