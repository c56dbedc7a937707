package fuse_index.spark.java.catalyst;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** An optimizer rule; `P` is always LogicalPlan, and a type variable for the reason that NodeRewrite gives. */
public abstract class PlanRule<P extends TreeNode<?>> extends Rule<P> {
  protected abstract LogicalPlan rewrite(LogicalPlan plan);

  @SuppressWarnings("unchecked")
  public P apply(P plan) {
    TreeNode<?> any = plan;
    TreeNode<?> rewritten = rewrite((LogicalPlan) any);
    return (P) rewritten;
  }
}
