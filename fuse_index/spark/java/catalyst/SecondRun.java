package fuse_index.spark.java.catalyst;

import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.internal.SQLConf;
import scala.math.BigInt;

/** Whether part of a plan may be run once more, for a scan alone that it tells what to leave out. */
public class SecondRun {
  /** Only if the scan reads at least so many bytes: a job costs some tenths of a second. */
  private static final String LEAST_BYTES = "spark.fuse.index.subquery.minScanBytes";
  private static final String DEFAULT_LEAST_BYTES = "67108864";

  /** Whether it reads less than the scan may spare: a join above it may seem far larger. */
  public static boolean isWorthIt(LogicalPlan plan, LogicalPlan scan) {
    if (!isRepeatable(plan)) return false;
    BigInt least = BigInt.apply(SQLConf.get().getConfString(LEAST_BYTES, DEFAULT_LEAST_BYTES));
    if (scan.stats().sizeInBytes().compare(least) < 0) return false;
    BigInt read = BigInt.apply(0);
    for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) read = read.$plus(leaf.stats().sizeInBytes());
    return read.$times(BigInt.apply(2)).compare(scan.stats().sizeInBytes()) < 0;
  }

  /** Whether a plan has the same rows when it runs once more: not where they are random, or any of them will do. */
  private static boolean isRepeatable(LogicalPlan plan) {
    if (!Trees.isDeterministic(plan) || plan instanceof LocalLimit || plan instanceof GlobalLimit || plan instanceof Offset || plan instanceof Sample) return false;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (!isRepeatable(child)) return false;
    return true;
  }
}
