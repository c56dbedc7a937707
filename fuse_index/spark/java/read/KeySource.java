package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils;
import scala.math.BigInt;

/** A side of a join, as a scan on the other side has to do with it, which may wait for its keys. */
public class KeySource {
  /** Deepest chain of scans that wait for one another: each level makes Spark plan its side once more. */
  public static final int MAX_NESTING = 2;
  private static final String THRESHOLD = "spark.sql.autoBroadcastJoinThreshold";

  private final LogicalPlan side;
  private final scala.Option<HintInfo> hint;

  public KeySource(LogicalPlan side, scala.Option<HintInfo> hint) {
    this.side = side;
    this.hint = hint;
  }

  /** Why it is not taken for small enough to be broadcast; null if it is. */
  public String size() {
    if (hint.isDefined() && ((HintInfo) hint.get()).strategy().isDefined()) {
      boolean broadcast = ((HintInfo) hint.get()).strategy().get().toString().toLowerCase().contains("broadcast");
      return broadcast ? null : "a hint says how to join, and not by a broadcast";
    }
    BigInt bytes = side.stats().sizeInBytes();
    if (bytes.compare(BigInt.apply(SQLConf.get().autoBroadcastJoinThreshold())) <= 0) return null;
    String size = bytes.isValidLong() ? Utils.bytesToString(bytes.toLong()) : "more than there can be";
    return "the other side is too large to be broadcast, " + size + " by Spark's estimate (" + THRESHOLD + ")";
  }

  /** Why no scan waits for any of its keys, which waits itself for others; null if one may. */
  public String chain() { return nesting(side) < MAX_NESTING ? null : "scans of the other side wait themselves for sides that wait"; }

  /** Why no scan waits for this key of it, which has more values than a scan is told; null if one may. */
  public String count(Expression key) {
    long count = keyCount(withoutNormalization(key));
    return count < 0L ? null : tooMany("as many as " + format(count) + " keys, by its rows and their bounds,");
  }

  /** What is said of keys that are more than a scan is told. */
  public static String tooMany(String count) { return "the other side has " + count + " and a scan is told " + format(Protocol.MAX_KEYS) + " at most"; }

  public static String format(long count) { return String.format("%,d", new Object[] {Long.valueOf(count)}); }

  /**
   * How many keys there may be, if that is more than scans are told, where nothing but NULLs are left out of one of our tables: by the
   * rows that are not NULL and by how far the bounds of the values are apart. To wait for them is to collect them for nothing. Else -1.
   */
  private long keyCount(Expression key) {
    Expression term = key;
    LogicalPlan plan = side;
    Set<String> notNull = new HashSet<String>();
    while (FuseScan.below(plan) == null) {
      if (plan instanceof Project) term = Trees.inline((Project) plan, term);
      else if (!(plan instanceof Filter) || !leavesOutNulls((Filter) plan, notNull)) return -1L;
      plan = Trees.child(plan);
    }
    if (!(term instanceof Attribute)) return -1L;
    notNull.add(((Attribute) term).name());
    return FuseScan.below(plan).valueCount(((Attribute) term).name(), notNull, Protocol.MAX_KEYS);
  }

  /** Whether this is all that a filter does; then the names of the columns are added. */
  private static boolean leavesOutNulls(Filter filter, Set<String> notNull) {
    for (Expression conjunct : Trees.conjuncts(filter.condition())) {
      if (!(conjunct instanceof IsNotNull) || !(((IsNotNull) conjunct).child() instanceof Attribute)) return false;
      notNull.add(((Attribute) ((IsNotNull) conjunct).child()).name());
    }
    return true;
  }

  /** Joins take all NaN for one and -0.0 for 0.0, and indexes do anyway. */
  public static Expression withoutNormalization(Expression key) {
    Expression inner = key;
    while (inner instanceof KnownFloatingPointNormalized || inner instanceof NormalizeNaNAndZero) inner = (Expression) inner.children().head();
    return inner;
  }

  /** How deep filters that wait for other plans are nested in a plan: 1 for a filter whose plan has none. */
  public static int nesting(LogicalPlan plan) {
    int deepest = 0;
    for (Expression expression : ScalaLists.toJava(plan.expressions())) {
      for (Expression conjunct : Trees.conjuncts(expression)) {
        if (conjunct instanceof DynamicPruningSubquery) deepest = Math.max(deepest, 1 + nesting(((DynamicPruningSubquery) conjunct).buildQuery()));
      }
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) deepest = Math.max(deepest, nesting(child));
    return deepest;
  }
}
