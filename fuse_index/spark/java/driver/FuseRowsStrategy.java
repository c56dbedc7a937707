package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;

/**
 * Plans what the driver may evaluate, over scans of which votes leave little, as rows that it reads by itself; and over scans of which
 * keys are known by now that they waited for, what executors read by these.
 */
public class FuseRowsStrategy extends SparkStrategy {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** Set while a thread plans what executors do where the driver cannot. */
  private static final ThreadLocal<Boolean> FOR_EXECUTORS = new ThreadLocal<Boolean>();

  /**
   * On the relation of a scan that the driver was to read: adaptive execution, which plans a query again and again, knows none of the
   * subqueries that were left out for it, and so must not find anything else.
   */
  private static final TreeNodeTag<Boolean> CHOSEN = new TreeNodeTag<Boolean>("fuse_index.rows_on_driver");

  private final SparkSession session;

  public FuseRowsStrategy(SparkSession session) { this.session = session; }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    try {
      if (plan instanceof ReturnAnswer) BroadcastKeys.find(plan);
      SparkPlan rows = FOR_EXECUTORS.get() == null ? planned(plan) : null;
      if (rows != null) return ScalaLists.of(rows);
    } catch (Throwable failure) { // Spark asserts what it takes for granted
      SafeRule.restoreInterrupt(failure);
      LOG.warn("executors read what the driver might: " + failure);
    }
    return ScalaLists.<SparkPlan>of();
  }

  private SparkPlan planned(LogicalPlan plan) {
    SparkPlan onDriver = plannedOnDriver(plan);
    LogicalPlan told = onDriver == null ? BroadcastKeys.told(plan) : null;
    return told == null ? onDriver : forExecutors(told);
  }

  private SparkPlan plannedOnDriver(LogicalPlan plan) {
    RowsPlan rows = RowsPlan.of(plan);
    if (rows == null) return null;
    RowLimits limits = RowLimits.ofSession();
    LogicalPlan relation = RowsPlan.relationBelow(plan);
    if (relation.getTagValue(CHOSEN).isEmpty() && !rows.scan.fits(limits)) return null;
    relation.setTagValue(CHOSEN, Boolean.TRUE);
    return new FuseRowsExec(forExecutors(rows.plan), new DriverRows(rows, limits, session.sparkContext()));
  }

  private SparkPlan forExecutors(LogicalPlan plan) {
    FOR_EXECUTORS.set(Boolean.TRUE);
    try {
      return (SparkPlan) session.sessionState().planner().plan(plan).next();
    } finally {
      FOR_EXECUTORS.remove();
    }
  }
}
