package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Lets scans of our tables wait for what the rest of a query finds out: the keys of a join's small side, and the value of a scalar
 * subquery.
 *
 * Spark does so by itself only for partitions, and so only where the small side has a filter. Where an index knows the key, any
 * side that is small enough to be broadcast will do. What is added takes rows away that the join or the comparison would.
 */
public class RuntimePruneRule<P extends TreeNode<?>> extends SafeRule<P> {
  public static class PruneJoins extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) { return node instanceof Join ? pruneSides((Join) node) : null; }
  }

  public static class PruneComparisons extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      boolean overScan = node instanceof Filter && FuseScan.below(((Filter) node).child()) != null;
      return overScan ? pruneByValues((Filter) node) : null;
    }
  }

  public RuntimePruneRule() { super("keys of joins do not reach indexes"); }

  protected LogicalPlan improve(LogicalPlan plan) {
    if (!SQLConf.get().dynamicPartitionPruningEnabled()) return plan;
    LogicalPlan joined = (LogicalPlan) plan.transformUp(new PruneJoins());
    return Versions.PASSES_VALUES_TO_SCANS ? joined : (LogicalPlan) joined.transformDown(new PruneComparisons());
  }

  /** The join, with a filter on its sides' scans by each other's keys; null if there is nothing to add. */
  private static LogicalPlan pruneSides(Join join) {
    EquiJoin keys = EquiJoin.of(join);
    if (keys == null) return null;
    // One of them alone, the larger if possible: the other's keys are had from its broadcast, which must be as it is here.
    boolean leftFirst = !keys.prunesRight() || join.left().stats().sizeInBytes().compare(join.right().stats().sizeInBytes()) >= 0;
    for (int attempt = 0; attempt < 2; attempt++) {
      boolean isLeft = leftFirst == (attempt == 0);
      if (isLeft ? !keys.prunesLeft() : !keys.prunesRight()) continue;
      LogicalPlan side = isLeft ? join.left() : join.right();
      LogicalPlan other = isLeft ? join.right() : join.left();
      scala.Option<HintInfo> hint = isLeft ? join.hint().rightHint() : join.hint().leftHint();
      KeySource source = new KeySource(other, hint);
      if (source.size() != null) continue;
      LogicalPlan pruned = prune(side, isLeft ? keys.leftKeys : keys.rightKeys, source, other, isLeft ? keys.rightKeys : keys.leftKeys);
      if (pruned != side) return new Join(isLeft ? pruned : other, isLeft ? other : pruned, join.joinType(), join.condition(), join.hint());
      if (isPrunedBy(side, other)) return null;
    }
    return null;
  }

  /** Whether a filter waits for this plan already: Spark asks rules again and again. */
  private static boolean isPrunedBy(LogicalPlan side, LogicalPlan other) {
    for (Expression expression : ScalaLists.toJava(side.expressions())) {
      for (Expression conjunct : Trees.conjuncts(expression)) {
        LogicalPlan waited = conjunct instanceof DynamicPruningSubquery ? ((DynamicPruningSubquery) conjunct).buildQuery() : null;
        if (waited == other || waited != null && waited.sameResult(other)) return true;
      }
    }
    for (LogicalPlan child : ScalaLists.toJava(side.children())) if (isPrunedBy(child, other)) return true;
    return false;
  }

  private static LogicalPlan prune(LogicalPlan side, Seq<Expression> keys, KeySource source, LogicalPlan other, Seq<Expression> otherKeys) {
    LogicalPlan pruned = side;
    if (source.chain() != null) return side;
    for (int i = 0; i < keys.length(); i++) {
      Expression key = KeySource.withoutNormalization((Expression) keys.apply(i));
      if (!mayAsk(key) || source.count((Expression) otherKeys.apply(i)) != null) continue;
      LogicalPlan more = pruneScan(pruned, key, other, otherKeys, i);
      if (more != null) pruned = more;
    }
    return pruned;
  }

  /** Whether a scan can be told of keys for it: of a column; or, where adaptive execution knows them before it plans the scan, of a term. */
  private static boolean mayAsk(Expression key) {
    if (key instanceof Attribute) return true;
    return SQLConf.get().adaptiveExecutionEnabled() && key.deterministic() && !SubqueryExpression.hasSubquery(key) && !key.references().isEmpty();
  }

  /** What the term is, in the columns below a projection; null if it cannot be moved there. */
  private static Expression below(Project project, Expression term) {
    Expression moved = Trees.inline(project, term);
    return mayAsk(moved) ? moved : null;
  }

  /** The plan, with a filter right over the scan that gives `key`; null if there is none whose rows come through, or it has one as good. */
  private static LogicalPlan pruneScan(LogicalPlan plan, Expression key, LogicalPlan values, Seq<Expression> valueKeys, int number) {
    if (!key.references().subsetOf(plan.outputSet())) return null;
    if (FuseScan.below(plan) != null && FuseScan.below(plan).refusalOfKeys(key) != null) return null;
    if (FuseScan.below(plan) != null) return new Filter(Versions.dynamicPruning(key, values, valueKeys, number, !mayRunTwice(key, values, plan)), plan);
    if (plan instanceof Filter && FuseScan.below(((Filter) plan).child()) != null) {
      if (FuseScan.below(((Filter) plan).child()).refusalOfKeys(key) != null) return null;
      boolean onlyInBroadcast = !mayRunTwice(key, values, ((Filter) plan).child());
      List<Expression> conditions = new ArrayList<Expression>();
      for (Expression conjunct : Trees.conjuncts(((Filter) plan).condition())) {
        if (!isMembership(conjunct, key)) conditions.add(conjunct);
        else if (onlyInBroadcast || !((DynamicPruningSubquery) conjunct).onlyInBroadcast()) return null;
      }
      Expression condition = Versions.dynamicPruning(key, values, valueKeys, number, onlyInBroadcast);
      for (int i = conditions.size() - 1; i >= 0; i--) condition = new And((Expression) conditions.get(i), condition);
      return new Filter(condition, ((Filter) plan).child());
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) {
      if (!EquiJoin.passesRows(plan, child)) continue;
      Expression term = plan instanceof Project ? below((Project) plan, key) : key;
      LogicalPlan pruned = term == null ? null : pruneScan(child, term, values, valueKeys, number);
      if (pruned != null) return Trees.replaceChild(plan, child, pruned);
    }
    return null;
  }

  private static boolean isMembership(Expression conjunct, Expression key) {
    return conjunct instanceof DynamicPruningSubquery && ((DynamicPruningSubquery) conjunct).pruningKey().semanticEquals(key);
  }

  /** The filter, and for each `column = (scalar subquery)` in it that the column is in the subquery's one row; null if nothing is new. */
  private static LogicalPlan pruneByValues(Filter filter) {
    LogicalPlan pruned = filter;
    for (Expression conjunct : Trees.conjuncts(filter.condition())) {
      if (!(conjunct instanceof EqualTo)) continue;
      Expression left = ((EqualTo) conjunct).left();
      Expression right = ((EqualTo) conjunct).right();
      boolean turned = left instanceof ScalarSubquery;
      LogicalPlan more = pruneByValue((Filter) pruned, turned ? right : left, turned ? left : right);
      if (more != null) pruned = more;
    }
    return pruned == filter ? null : pruned;
  }

  private static LogicalPlan pruneByValue(Filter filter, Expression column, Expression value) {
    if (!(column instanceof Attribute) || !(value instanceof ScalarSubquery)) return null;
    ScalarSubquery subquery = (ScalarSubquery) value;
    if (subquery.isCorrelated() || !SecondRun.isWorthIt(subquery.plan(), filter.child())) return null;
    return pruneScan(filter, column, subquery.plan(), ScalaLists.<Expression>of((Expression) subquery.plan().output().head()), 0);
  }

  /** Spark tells a scan what a plan that runs for it alone finds only where that is of a column. */
  private static boolean mayRunTwice(Expression key, LogicalPlan values, LogicalPlan scan) {
    return key instanceof Attribute && SecondRun.isWorthIt(values, scan);
  }
}
