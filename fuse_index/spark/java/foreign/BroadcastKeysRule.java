package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.adaptive.AdaptiveRulesHolder;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Filters a scan of a source by the keys of a join, where the join's other side was broadcast while adaptive execution had not begun the
 * scan. The join takes the same rows away; before it does, votes leave out files that hold none of the keys.
 */
public class BroadcastKeysRule<P extends TreeNode<?>> extends SafeRule<P> {
  private final SourceIndexes indexes;

  public BroadcastKeysRule(SourceIndexes indexes) {
    super("keys of joins do not reach indexes of sources");
    this.indexes = indexes;
  }

  /** Adds a rule to those that a session's adaptive execution applies whenever it plans the rest of a query anew: it has no method for that. */
  public static void install(SparkSession session, SourceIndexes indexes) throws ReflectiveOperationException {
    AdaptiveRulesHolder holder = session.sessionState().adaptiveRulesHolder();
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(holder.runtimeOptimizerRules()));
    rules.add(new BroadcastKeysRule<LogicalPlan>(indexes));
    Reflection.set(holder, holder.getClass(), "runtimeOptimizerRules", ScalaLists.toScala(rules));
  }

  public static class FilterSides extends NodeRewrite<LogicalPlan> {
    private final SourceIndexes indexes;

    public FilterSides(SourceIndexes indexes) { this.indexes = indexes; }

    protected Object rewrite(Object node) {
      if (!(node instanceof Join)) return null;
      Join join = (Join) node;
      if (!BroadcastSide.isBroadcast(join.left()) && !BroadcastSide.isBroadcast(join.right())) return null;
      EquiJoin keys = EquiJoin.of(join);
      if (keys == null) return null;
      LogicalPlan left = keys.prunesLeft() ? filtered(join.left(), keys.leftKeys, BroadcastSide.of(join.right(), keys.rightKeys)) : join.left();
      LogicalPlan right = keys.prunesRight() ? filtered(join.right(), keys.rightKeys, BroadcastSide.of(join.left(), keys.leftKeys)) : join.right();
      return left == join.left() && right == join.right() ? null : new Join(left, right, join.joinType(), join.condition(), join.hint());
    }

    private LogicalPlan filtered(LogicalPlan side, scala.collection.immutable.Seq<Expression> keys, BroadcastSide other) {
      LogicalPlan filtered = side;
      for (int i = 0; other != null && i < keys.length(); i++) {
        LogicalPlan more = overScan(filtered, (Expression) keys.apply(i), other, i);
        if (more != null) filtered = more;
      }
      return filtered;
    }

    /** The plan with a filter right over the scan of a source that gives `key`; null where there is none that it helps. */
    private LogicalPlan overScan(LogicalPlan plan, Expression key, BroadcastSide other, int number) {
      if (!EquiJoin.gives(plan, key)) return null;
      if (plan.children().isEmpty()) return overLeaf(plan, null, key, other, number);
      if (plan instanceof Filter && Trees.child(plan).children().isEmpty()) return overLeaf(Trees.child(plan), (Filter) plan, key, other, number);
      for (LogicalPlan child : ScalaLists.toJava(plan.children())) {
        if (!EquiJoin.passesRows(plan, child)) continue;
        Expression below = plan instanceof Project ? Trees.inline((Project) plan, key) : key;
        LogicalPlan filtered = overScan(child, below, other, number);
        if (filtered != null) return Trees.replaceChild(plan, child, filtered);
      }
      return null;
    }

    private LogicalPlan overLeaf(LogicalPlan leaf, Filter filter, Expression key, BroadcastSide other, int number) {
      List<Expression> conditions = filter == null ? new ArrayList<Expression>() : Trees.conjuncts(filter.condition());
      for (Expression condition : conditions) if (isMembership(condition, key)) return null;
      if (!indexes.mayPruneByKeys(leaf, key)) return null;
      Set<Object> values = other.values(number, Protocol.MAX_KEYS);
      if (values == null) return null;
      conditions.add(new InSet(key, CollectionConverters.asScala(values).toSet()));
      return Trees.filter(conditions, leaf);
    }

    /** Spark asks rules again and again. */
    private static boolean isMembership(Expression condition, Expression key) {
      return condition instanceof InSet && ((InSet) condition).child().semanticEquals(key);
    }
  }

  protected LogicalPlan improve(LogicalPlan plan) { return indexes.isOn() ? (LogicalPlan) plan.transformDown(new FilterSides(indexes)) : plan; }
}
