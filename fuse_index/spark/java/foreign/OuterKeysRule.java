package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.sources.*;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Of joins that keep all rows of their small side, and so cannot broadcast it, the large side, a source with an index, is joined with the
 * keys of the small one first: that side of a semi join is broadcast, and then its keys reach the index. Rows that it takes away are those
 * that match nothing.
 */
public class OuterKeysRule<P extends TreeNode<?>> extends SafeRule<P> {
  private static final TreeNodeTag<Boolean> NARROWED = new TreeNodeTag<Boolean>("fuse_index.narrowed");
  private final SourceIndexes indexes;

  public OuterKeysRule(SourceIndexes indexes) {
    super("keys of outer joins do not reach indexes of sources");
    this.indexes = indexes;
  }

  public static class NarrowSides extends NodeRewrite<LogicalPlan> {
    private final SourceIndexes indexes;

    public NarrowSides(SourceIndexes indexes) { this.indexes = indexes; }

    protected Object rewrite(Object node) {
      if (!(node instanceof Join) || ((Join) node).getTagValue(NARROWED).isDefined()) return null; // Spark asks rules again and again
      Join join = (Join) node;
      JoinType type = join.joinType();
      boolean isRight = type == LeftOuter$.MODULE$ || type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$;
      if (!isRight && type != RightOuter$.MODULE$) return null;
      LogicalPlan large = isRight ? join.right() : join.left();
      LogicalPlan few = isRight ? join.left() : join.right();
      if (!isSmall(few) || isSmall(large)) return null;
      EquiJoin keys = EquiJoin.of(join);
      if (keys == null) return null;
      LogicalPlan narrowed = narrowed(large, isRight ? keys.rightKeys : keys.leftKeys, few, isRight ? keys.leftKeys : keys.rightKeys);
      if (narrowed == null) return null;
      Join other = new Join(isRight ? few : narrowed, isRight ? narrowed : few, type, join.condition(), join.hint());
      other.setTagValue(NARROWED, Boolean.TRUE);
      return other;
    }

    private static boolean isSmall(LogicalPlan side) {
      return side.stats().sizeInBytes().compare(scala.math.BigInt.apply(SQLConf.get().autoBroadcastJoinThreshold())) <= 0;
    }

    private LogicalPlan narrowed(LogicalPlan large, Seq<Expression> keys, LogicalPlan few, Seq<Expression> fewKeys) {
      for (int i = 0; i < keys.length(); i++) {
        Expression key = (Expression) keys.apply(i);
        Expression fewKey = (Expression) fewKeys.apply(i);
        if (!fewKey.deterministic() || SubqueryExpression.hasSubquery(fewKey)) continue;
        LogicalPlan leaf = indexed(large, key);
        if (leaf == null || !SecondRun.isWorthIt(few, leaf) || !isSameAgain(few)) continue;
        Alias value = Trees.alias(fewKey, "key");
        LogicalPlan values = new Project(ScalaLists.<NamedExpression>of(value), (LogicalPlan) few.clone());
        return new Join(large, values, LeftSemi$.MODULE$, scala.Option.<Expression>apply(new EqualTo(key, value.toAttribute())), JoinHint.NONE());
      }
      return null;
    }

    /** Whether all that a plan reads are values, or a table of files that stays at its version: not what a server may give otherwise next time. */
    private static boolean isSameAgain(LogicalPlan few) {
      for (LogicalPlan leaf : ScalaLists.toJava(few.collectLeaves())) {
        if (!(leaf instanceof LocalRelation) && !(leaf instanceof Range) && Connector.of(leaf) == null) return false;
      }
      return true;
    }

    /** The leaf that gives `key` and whose index may leave out files by its values; null if there is none. */
    private LogicalPlan indexed(LogicalPlan plan, Expression key) {
      if (!EquiJoin.gives(plan, key)) return null;
      if (plan.children().isEmpty()) return indexes.mayPruneByKeys(plan, key) ? plan : null;
      for (LogicalPlan child : ScalaLists.toJava(plan.children())) {
        if (!EquiJoin.passesRows(plan, child)) continue;
        LogicalPlan leaf = indexed(child, plan instanceof Project ? Trees.inline((Project) plan, key) : key);
        if (leaf != null) return leaf;
      }
      return null;
    }
  }

  protected LogicalPlan improve(LogicalPlan plan) {
    boolean may = indexes.isOn() && SQLConf.get().adaptiveExecutionEnabled();
    return may ? (LogicalPlan) plan.transformUp(new NarrowSides(indexes)) : plan;
  }
}
