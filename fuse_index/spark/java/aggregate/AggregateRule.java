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
  private static final int CERTAIN = 1;

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
        byte[] reply = answer(query.scan.snapshot.callbackKey, request);
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

  /** What is known, asked once: the optimizer comes by again and again, and once more for each subquery. */
  private static byte[] answer(String key, String request) throws Exception {
    byte[] known = ReplyMemo.get(key, request);
    if (known != null) return known;
    byte[] reply = PythonCallback.send(key, request);
    // A reply that a fault has spoiled says so, or why there is none.
    if (reply[0] == CERTAIN || reply[0] == 0 && reply.length == 1) ReplyMemo.put(key, request, reply);
    return reply;
  }
}
