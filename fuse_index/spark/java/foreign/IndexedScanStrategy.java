package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;

/**
 * Has everybody else plan a scan of a source, by its own connector, and puts over it what leaves out files by votes.
 *
 * The logical plan stays as it is: from it connectors tell which rows of a file were deleted, and which statements change it.
 */
public class IndexedScanStrategy extends SparkStrategy {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** Set while a thread has a plan planned by others. */
  private static final ThreadLocal<Boolean> BY_OTHERS = new ThreadLocal<Boolean>();

  public static class OverReader extends NodeRewrite<SparkPlan> {
    private final Connector connector;
    private final ScanPruning pruning;

    public OverReader(Connector connector, ScanPruning pruning) {
      this.connector = connector;
      this.pruning = pruning;
    }

    protected Object rewrite(Object node) { return connector.reads((SparkPlan) node) ? new IndexedScanExec((SparkPlan) node, pruning) : null; }
  }

  private final SparkSession session;
  public final SourceIndexes indexes;
  private final SourceSizes sizes;

  public IndexedScanStrategy(SparkSession session, SourceIndexes indexes) {
    this.session = session;
    this.indexes = indexes;
    this.sizes = new SourceSizes(indexes);
  }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (BY_OTHERS.get() != null || !indexes.isOn()) return ScalaLists.<SparkPlan>of();
    try {
      if (plan instanceof Join) sizes.tell((Join) plan);
      // First the leaf, which is somebody else's in most plans: those of Delta's over its log have conditions of hundreds of terms.
      LogicalPlan leaf = WantedRows.leafBelow(plan);
      Connector connector = leaf == null ? null : Connector.of(leaf);
      WantedRows wanted = connector == null ? null : WantedRows.of(plan);
      SparkPlan planned = wanted == null ? null : planned(plan, connector, wanted);
      if (planned != null) return ScalaLists.of(planned);
    } catch (Throwable failure) { // another release of the connector, or of Spark
      SafeRule.restoreInterrupt(failure);
      LOG.warn("every file is read: " + failure);
    }
    return ScalaLists.<SparkPlan>of();
  }

  private SparkPlan planned(LogicalPlan plan, Connector connector, WantedRows wanted) throws ReflectiveOperationException {
    if (wanted.conditions.isEmpty() && !wanted.isFirst()) return null;
    SourceIndex index = connector.isSwitchedOff() ? null : indexes.find(connector);
    ScanPruning pruning = index == null ? null : ScanPruning.of(connector, index, wanted, session.sparkContext());
    if (pruning == null) return null;
    return (SparkPlan) plannedByOthers(plan).transformUp(new OverReader(connector, pruning));
  }

  private SparkPlan plannedByOthers(LogicalPlan plan) {
    BY_OTHERS.set(Boolean.TRUE);
    try {
      return (SparkPlan) session.sessionState().planner().plan(plan).next();
    } finally {
      BY_OTHERS.remove();
    }
  }
}
