package fuse_index.spark.java.catalyst;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An optimizer rule that only makes plans faster: one on which it fails stays as it was, and so does one of a stream. */
public abstract class SafeRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  /** What a query lacks where the rule fails. */
  private final String consequence;

  protected SafeRule(String consequence) { this.consequence = consequence; }

  protected abstract LogicalPlan improve(LogicalPlan plan);

  protected LogicalPlan improveStream(LogicalPlan plan) { return plan; }

  /** A thread that was interrupted stays so where its failure is caught: whatever waits next ends, as whoever cancelled it wants. */
  public static void restoreInterrupt(Throwable failure) {
    for (Throwable each = failure; each != null; each = each.getCause()) if (each instanceof InterruptedException) Thread.currentThread().interrupt();
  }

  protected LogicalPlan rewrite(LogicalPlan plan) {
    try {
      return plan.isStreaming() ? improveStream(plan) : improve(plan);
    } catch (Throwable failure) { // Spark asserts what it takes for granted
      restoreInterrupt(failure);
      LOG.warn(consequence + ": " + failure);
      return plan;
    }
  }
}
