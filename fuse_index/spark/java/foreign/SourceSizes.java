package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.math.BigInt;

/**
 * Tells the sides of a join how much of a source votes leave, before Spark chooses which side is broadcast: it takes a filter to let
 * everything through. A side of few rows is then broadcast at once, and its keys reach the index of the other side.
 */
public class SourceSizes {
  private static final TreeNodeTag<BigInt> LEFT = new TreeNodeTag<BigInt>("fuse_index.bytes_left");

  private final SourceIndexes indexes;

  public SourceSizes(SourceIndexes indexes) { this.indexes = indexes; }

  public void tell(Join join) throws ReflectiveOperationException {
    List<LogicalPlan> filters = new ArrayList<LogicalPlan>();
    collect(join, filters);
    boolean isNew = false;
    for (LogicalPlan filter : filters) isNew |= !filter.stats().sizeInBytes().equals(filter.getTagValue(LEFT).get());
    if (!isNew) return;
    join.invalidateStatsCache(); // what is above these filters was reckoned from their former sizes
    for (LogicalPlan filter : filters) {
      Statistics all = filter.stats();
      filter.statsCache_$eq(Option.apply(new Statistics((BigInt) filter.getTagValue(LEFT).get(), all.rowCount(), all.attributeStats(), all.isRuntime())));
    }
  }

  /** The filters over sources of which votes are known to leave less than Spark reckons with. */
  private void collect(LogicalPlan plan, List<LogicalPlan> filters) throws ReflectiveOperationException {
    if (plan instanceof Filter && Trees.child(plan).children().isEmpty()) {
      if (plan.getTagValue(LEFT).isEmpty()) plan.setTagValue(LEFT, bytesLeft(plan));
      if (((BigInt) plan.getTagValue(LEFT).get()).compare(plan.stats().sizeInBytes()) <= 0) filters.add(plan);
      return;
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) collect(child, filters);
  }

  /** What a filtered source is to be taken for: no more than Spark reckons with. Only one that is too large to be broadcast is asked about. */
  private BigInt bytesLeft(LogicalPlan filter) throws ReflectiveOperationException {
    BigInt reckoned = filter.stats().sizeInBytes();
    long threshold = SQLConf.get().autoBroadcastJoinThreshold();
    Connector connector = threshold < 0L || reckoned.compare(BigInt.apply(threshold)) <= 0 ? null : Connector.of(Trees.child(filter));
    SourceIndex index = connector == null || connector.isSwitchedOff() ? null : indexes.find(connector);
    if (index == null) return reckoned;
    List<Expression> asked = new ArrayList<Expression>();
    boolean worthAsking = connector.columns(index).translateAll(WantedRows.of(filter).conditions, asked, new HashMap<String, String>());
    BlockMask mask = worthAsking ? index.ask(index.question(asked, null).text(Collections.<Integer>emptyList())) : BlockMask.readAll("");
    if (mask.refusal() != null) return reckoned;
    long[] bytes = index.bytes(mask);
    // Files that are not known are read, whatever is left of the others.
    BigInt left = Trees.child(filter).stats().sizeInBytes().$minus(BigInt.apply(bytes[1])).max(BigInt.apply(0)).$plus(BigInt.apply(bytes[0]));
    return left.min(reckoned);
  }
}
