package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Tells Spark that scans are partitioned, where a join, an aggregate or a window over them goes by columns of which each file has one
 * value: it then shuffles nothing for it. A scan that nothing of that kind is over keeps its tasks of equal size.
 */
public class PartitionedScanRule<P extends TreeNode<?>> extends SafeRule<P> {
  /** The relations of scans, and the columns that they are to be partitioned by. */
  public static class Choice extends NodeRewrite<LogicalPlan> {
    private final Map<LogicalPlan, List<Attribute>> chosen = new IdentityHashMap<LogicalPlan, List<Attribute>>();

    protected Object rewrite(Object node) {
      List<Attribute> keys = (List<Attribute>) chosen.get((LogicalPlan) node);
      return keys == null ? null : FuseScan.below(node).keyedIn((LogicalPlan) node, keys);
    }

    /** Below first: what a join has of its sides is as good for what is over it. */
    private void choose(LogicalPlan plan) {
      for (LogicalPlan child : ScalaLists.toJava(plan.children())) choose(child);
      if (plan instanceof Join) chooseSides((Join) plan);
      if (plan instanceof Aggregate) chooseFor(plan, ((Aggregate) plan).groupingExpressions());
      if (plan instanceof Window) chooseFor(plan, ((Window) plan).partitionSpec());
    }

    private void chooseFor(LogicalPlan plan, Seq<Expression> by) {
      LogicalPlan rows = Trees.child(plan);
      LogicalPlan relation = null;
      List<Attribute> keys = new ArrayList<Attribute>();
      for (Expression key : ScalaLists.toJava(by)) {
        LogicalPlan origin = origin(rows, key);
        if (origin == null || relation != null && origin != relation) continue;
        relation = origin;
        keys.add(own(origin, key));
      }
      if (relation != null && mayChoose(relation, keys)) chosen.put(relation, keys);
    }

    private void chooseSides(Join join) {
      EquiJoin keys = isSmall(join.left()) || isSmall(join.right()) ? null : EquiJoin.of(join);
      if (keys == null) return;
      LogicalPlan left = null;
      LogicalPlan right = null;
      List<Attribute> leftKeys = new ArrayList<Attribute>();
      List<Attribute> rightKeys = new ArrayList<Attribute>();
      for (int i = 0; i < keys.leftKeys.length(); i++) {
        LogicalPlan leftOrigin = origin(join.left(), (Expression) keys.leftKeys.apply(i));
        LogicalPlan rightOrigin = origin(join.right(), (Expression) keys.rightKeys.apply(i));
        if (leftOrigin == null || rightOrigin == null || left != null && (left != leftOrigin || right != rightOrigin)) continue;
        left = leftOrigin;
        right = rightOrigin;
        leftKeys.add(own(left, (Expression) keys.leftKeys.apply(i)));
        rightKeys.add(own(right, (Expression) keys.rightKeys.apply(i)));
      }
      if (left == null || leftKeys.size() < keys.leftKeys.length() && needsAllKeys()) return;
      if (!mayChoose(left, leftKeys) || !mayChoose(right, rightKeys)) return;
      chosen.put(left, leftKeys);
      chosen.put(right, rightKeys);
    }

    /** Whether nobody wants it partitioned by other columns, and it makes as many tasks as run at once, and no more than a shuffle would. */
    private boolean mayChoose(LogicalPlan relation, List<Attribute> keys) {
      if (chosen.containsKey(relation)) return isSame((List<Attribute>) chosen.get(relation), keys);
      FuseScan scan = FuseScan.below(relation);
      int count = scan.asked.isKeyed() ? 0 : scan.partitionCount(keys);
      return count >= scan.tasksAtOnce() && count <= SQLConf.get().numShufflePartitions();
    }
  }

  public PartitionedScanRule() { super("rows are shuffled, because it could not be told how they are partitioned"); }

  protected LogicalPlan improve(LogicalPlan plan) {
    if (!SQLConf.get().v2BucketingEnabled()) return plan;
    Choice choice = new Choice();
    choice.choose(plan);
    return choice.chosen.isEmpty() ? plan : (LogicalPlan) plan.transformDown(choice);
  }

  /** The relation of a scan that gives this column, of which each of its files has one value; null if there is none. */
  private static LogicalPlan origin(LogicalPlan plan, Expression column) {
    if (!(column instanceof Attribute)) return null;
    FuseScan scan = FuseScan.below(plan);
    if (scan != null) return plan.outputSet().contains((Attribute) column) && scan.isPartitionedBy(own(plan, column).name()) ? plan : null;
    boolean keepsRowsTogether = plan instanceof Project || plan instanceof Filter || plan instanceof Join || plan instanceof Aggregate || plan instanceof Window;
    if (!keepsRowsTogether) return null;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (child.outputSet().contains((Attribute) column)) return origin(child, column);
    return null;
  }

  /** A column of this relation by the name that the table has for it: a statement may write it in other letters. */
  private static Attribute own(LogicalPlan relation, Expression column) {
    for (Attribute known : ScalaLists.toJava(relation.output())) if (known.exprId().equals(((Attribute) column).exprId())) return known;
    throw new IllegalStateException(column + " is no column of " + relation);
  }

  private static boolean isSame(List<Attribute> some, List<Attribute> others) {
    if (some.size() != others.size()) return false;
    for (int i = 0; i < some.size(); i++) if (!((Attribute) some.get(i)).exprId().equals(((Attribute) others.get(i)).exprId())) return false;
    return true;
  }

  /** Whether Spark broadcasts it, and shuffles neither side. */
  private static boolean isSmall(LogicalPlan side) {
    return side.stats().sizeInBytes().$less$eq(scala.math.BigInt.apply(SQLConf.get().autoBroadcastJoinThreshold()));
  }

  /** Whether Spark joins partitions only where they are told apart by all of the join's keys. */
  private static boolean needsAllKeys() {
    return Boolean.parseBoolean(SQLConf.get().getConfString("spark.sql.requireAllClusterKeysForCoPartition", "true"));
  }
}
