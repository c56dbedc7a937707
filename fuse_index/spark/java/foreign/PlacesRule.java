package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/**
 * Marks the sources of a query in which something hangs on where rows lie: in which piece of a file, or in the partition of which number.
 * Who plans a scan sees no more of the query than what lies right above it, and that may stand above a join, or a LATERAL VIEW.
 */
public class PlacesRule<P extends TreeNode<?>> extends SafeRule<P> {
  private static final TreeNodeTag<Boolean> PIECES = new TreeNodeTag<Boolean>("fuse_index.pieces");
  private static final TreeNodeTag<Boolean> PARTITIONS = new TreeNodeTag<Boolean>("fuse_index.partitions");

  public PlacesRule() { super("row groups and partitions are left out of a query that may ask which those of its rows are"); }

  /** Whether row groups may be left out of files of a source. */
  static boolean mayCut(LogicalPlan leaf) { return leaf.getTagValue(PIECES).isEmpty(); }

  /** Whether partitions without a row may go, so that the next have other numbers: seeds, ids of rows and samples are by these. */
  static boolean mayRenumber(LogicalPlan leaf) { return leaf.getTagValue(PARTITIONS).isEmpty(); }

  protected LogicalPlan improve(LogicalPlan plan) {
    if (!isByPartition(plan)) return plan;
    boolean byPiece = isByPiece(plan);
    for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) {
      leaf.setTagValue(PARTITIONS, Boolean.TRUE);
      if (byPiece) leaf.setTagValue(PIECES, Boolean.TRUE);
    }
    return plan;
  }

  protected LogicalPlan improveStream(LogicalPlan plan) { return improve(plan); }

  private static boolean isByPartition(LogicalPlan plan) {
    if (plan instanceof Sample || !Trees.isDeterministic(plan)) return true;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (isByPartition(child)) return true;
    return false;
  }

  private static boolean isByPiece(LogicalPlan plan) {
    if (WantedRows.tellsPieces(plan)) return true;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (isByPiece(child)) return true;
    return false;
  }
}
