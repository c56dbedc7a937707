package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * A table as one scan knows it, that Spark may scan once for subqueries that scan it alike. Only scans that our rules have seen are
 * of one: Spark merges subqueries after these, so that what stored states answer is no scan any more, and nothing is read for it.
 */
public class MergeableTable extends FuseTable {
  private MergeableTable(FuseTable table, TableSnapshot snapshot) { super(table.session, table.name(), snapshot); }

  public static class MarkScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseScan scan = Versions.SCAN_MERGING == null ? null : FuseScan.below(node);
      // Of some blocks alone no other scan may take the place.
      if (scan == null || scan.asked.isRestricted()) return null;
      DataSourceV2Relation relation = ((DataSourceV2ScanRelation) node).relation();
      if (!(relation.table() instanceof FuseTable) || relation.table() instanceof MergeableTable) return null;
      MergeableTable table = new MergeableTable((FuseTable) relation.table(), scan.snapshot);
      return Versions.copy((LogicalPlan) node, relation, Versions.copy(relation, relation.table(), table));
    }
  }

  protected boolean isMergeable() { return true; }

  public Set<TableCapability> capabilities() {
    Set<TableCapability> capabilities = new HashSet<TableCapability>(super.capabilities());
    capabilities.add(Versions.SCAN_MERGING);
    return capabilities;
  }
}
