package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.write.*;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.RefreshTableCommand;

/**
 * Moves the tables below a temporary view to their heads, for REFRESH TABLE: Spark asks the nodes of the view's plan, and those
 * of DataSource V2 pass it over.
 */
public class RefreshRule<P extends TreeNode<?>> extends PlanRule<P> {
  protected LogicalPlan rewrite(LogicalPlan plan) {
    if (!(plan instanceof RefreshTableCommand)) return plan;
    TableIdentifier name = ((RefreshTableCommand) plan).tableIdent();
    scala.Option<?> view = SparkSession.active().sessionState().catalog().getLocalOrGlobalTempView(name);
    if (view.isEmpty()) return plan;
    for (LogicalPlan leaf : ScalaLists.toJava(((LogicalPlan) view.get()).collectLeaves())) if (FuseTable.of(leaf) != null) FuseTable.of(leaf).refresh();
    return plan;
  }
}
