package fuse_index.spark.java.aggregate;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts stored aggregate states in the place of an aggregate over one of our tables. An aggregate that cannot be answered so, or fails
 * on the way, stays as it was.
 */
public class AggregateRule<P extends TreeNode<?>> extends SafeRule<P> {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  public static class AnswerAggregates extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      AggregateQuery query = AggregateQuery.of(node);
      return query == null ? null : tryAnswer(query);
    }
  }

  public AggregateRule() { super("no aggregate is answered by indexes"); }

  protected LogicalPlan improve(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new AnswerAggregates()); }

  /** Asks for the groups as they are, and then for columns of which Spark makes them. */
  private static LogicalPlan tryAnswer(AggregateQuery original) {
    try {
      for (AggregateQuery query = original; query != null; query = query.groupsFromKeys ? null : query.groupedByColumns()) {
        String request = query.request();
        byte[] reply = PythonCallback.send(query.scan.snapshot.callbackKey, request);
        if (reply[0] == 0) continue;
        LogicalPlan plan = new AggregateStates(query, reply).plan();
        plan.setTagValue(AggregateStates.REPORT_TAG, AggregateReport.jsonLine(query, request, true));
        return plan;
      }
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
    } catch (Throwable failure) {
      LOG.warn("an aggregate is left to Spark, because indexes could not be asked: " + failure);
    }
    return original.plan;
  }
}
