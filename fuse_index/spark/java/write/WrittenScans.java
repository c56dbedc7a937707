package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;

/** Plans nothing: it shows each write of ours the query of its rows, as Spark has optimised it, so that EXPLAIN can tell of blocks. */
public class WrittenScans extends SparkStrategy {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    try {
      FuseWrite write = plan instanceof V2WriteCommand ? RowStatementRule.writeOf(plan) : null;
      if (write != null) write.planned(((V2WriteCommand) plan).query());
    } catch (Throwable failure) { // an account is no reason to fail
      SafeRule.restoreInterrupt(failure);
      LOG.warn("Spark's EXPLAIN tells no blocks of a statement: " + failure);
    }
    return ScalaLists.<SparkPlan>of();
  }
}
