package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.write.*;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.RefreshTableCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

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
    for (LogicalPlan leaf : ScalaLists.toJava(((LogicalPlan) view.get()).collectLeaves())) {
      boolean ours = leaf instanceof DataSourceV2Relation && ((DataSourceV2Relation) leaf).table() instanceof FuseTable;
      if (ours) ((FuseTable) ((DataSourceV2Relation) leaf).table()).refresh();
    }
    return plan;
  }
}
