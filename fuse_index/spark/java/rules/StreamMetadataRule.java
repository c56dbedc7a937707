package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalog.*;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** Refuses `_metadata` of a stream of a table by name: Spark offers it as in a batch, and the rows of the stream have no such column. */
public class StreamMetadataRule<P extends TreeNode<?>> extends PlanRule<P> {
  protected LogicalPlan rewrite(LogicalPlan plan) {
    if (!plan.isStreaming()) return plan;
    for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) {
      if (!(leaf instanceof StreamingDataSourceV2ScanRelation)) continue;
      Scan scan = ((StreamingDataSourceV2ScanRelation) leaf).scan();
      StructType columns = null;
      if (scan instanceof NamedStreams.StreamableScan) columns = ((NamedStreams.StreamableScan) scan).snapshot.schema;
      if (scan instanceof NamedStreams.OptionScan) columns = scan.readSchema();
      if (columns != null && leaf.output().length() != columns.length()) {
        throw StatementError.invalidInput("a stream says not where its rows lie: leave out " + FileMetadata.COLUMN);
      }
    }
    return plan;
  }
}
