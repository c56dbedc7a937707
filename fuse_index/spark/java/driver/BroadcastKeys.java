package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.joins.HashJoin$;
import org.apache.spark.sql.execution.joins.HashedRelation;
import org.apache.spark.sql.execution.joins.HashedRelationBroadcastMode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.Seq;

/**
 * The keys of joins that are known when adaptive execution plans the rest of a query anew: those of sides that were broadcast
 * meanwhile. A scan that waited for them can then be planned by what they leave, as if the query had listed them.
 *
 * Only filters that RuntimePruneRule, or Spark, put over a scan are looked at, so that it was seen already that the join alone
 * decides on the rows that go.
 */
public class BroadcastKeys {
  /** On the relation of a scan: what is known of the terms of which it waits for keys. Set anew whenever a whole plan is planned. */
  private static final TreeNodeTag<List<Known>> KNOWN = new TreeNodeTag<List<Known>>("fuse_index.known_keys");

  /** On the relation of a scan: what was last made of it. Adaptive execution plans a query anew after each stage, mostly by the same keys. */
  private static final TreeNodeTag<Told> TOLD = new TreeNodeTag<Told>("fuse_index.told_scan");

  /** A scan that is told of keys of joins: `scan` is `base` with `memberships`, and remembers its votes. */
  public static class Told {
    final FuseScan base;
    final List<Expression> memberships;
    final FuseScan scan;

    Told(FuseScan base, List<Expression> memberships) {
      this.base = base;
      this.memberships = memberships;
      this.scan = base.withKeys(memberships);
    }
  }

  /** What a filter over a scan waited for: `membership`, `term IN (keys)`. */
  public static class Known {
    final DynamicPruningSubquery filter;
    final Expression membership;

    Known(DynamicPruningSubquery filter, Expression membership) {
      this.filter = filter;
      this.membership = membership;
    }
  }

  /** Takes out the filters of which the keys are known: the scan is told of them. */
  public static class DropKnown extends DropConjuncts {
    private final List<Known> known;

    public DropKnown(List<Known> known) { this.known = known; }

    protected boolean drops(Expression conjunct, Filter filter) {
      for (Known each : known) if (each.filter == conjunct) return true;
      return false;
    }
  }

  /** Binds columns to the places where a plan gives them. */
  public static class Bind extends NodeRewrite<Expression> {
    private final Seq<Attribute> output;

    public Bind(Seq<Attribute> output) { this.output = output; }

    protected Object rewrite(Object node) {
      for (int i = 0; node instanceof Attribute && i < output.length(); i++) {
        Attribute column = (Attribute) output.apply(i);
        if (column.exprId().equals(((Attribute) node).exprId())) return new BoundReference(i, column.dataType(), column.nullable());
      }
      return null;
    }
  }

  /** The scan of a relation, told of the keys that are known; itself if none are. */
  public static FuseScan scanOf(LogicalPlan relation) {
    FuseScan scan = FuseScan.below(relation);
    List<Known> known = scan == null ? new ArrayList<Known>() : known(relation);
    if (known.isEmpty()) return scan;
    List<Expression> memberships = new ArrayList<Expression>();
    for (Known each : known) memberships.add(each.membership);
    scala.Option<Told> before = relation.getTagValue(TOLD);
    Told told = before.isEmpty() ? null : (Told) before.get();
    if (told == null || told.base != scan || !told.memberships.equals(memberships)) {
      told = new Told(scan, memberships);
      relation.setTagValue(TOLD, told);
    }
    return told.scan;
  }

  /** Takes out filters that wait for keys of a term that is no column: Spark tells a scan of columns alone. */
  public static class DropUntold extends DropConjuncts {
    protected boolean drops(Expression conjunct, Filter filter) {
      return conjunct instanceof DynamicPruningSubquery && !(((DynamicPruningSubquery) conjunct).pruningKey() instanceof Attribute);
    }
  }

  /**
   * A plan whose scan is told of the keys that are known, in the place of the filters that wait for them, and waits for none that it is
   * never told; null if it is as it was.
   */
  public static LogicalPlan told(LogicalPlan plan) {
    LogicalPlan relation = RowsPlan.relationBelow(plan);
    FuseScan scan = scanOf(relation);
    if (scan == null) return null;
    LogicalPlan without = (LogicalPlan) plan.transformDown(new DropKnown(known(relation)));
    LogicalPlan told = (LogicalPlan) without.transformDown(new DropUntold());
    if (told == plan) return null;
    return scan == FuseScan.below(relation) ? told : Trees.replace(told, relation, scan.replaceIn(relation));
  }

  private static List<Known> known(LogicalPlan relation) {
    scala.Option<List<Known>> known = relation.getTagValue(KNOWN);
    return known.isEmpty() ? new ArrayList<Known>() : (List<Known>) known.get();
  }

  /** Finds out, for each scan of a whole plan, which keys are known. */
  public static void find(LogicalPlan root) {
    for (LogicalPlan leaf : ScalaLists.toJava(root.collectLeaves())) if (FuseScan.below(leaf) != null) leaf.unsetTagValue(KNOWN);
    findBelow(root);
  }

  private static void findBelow(LogicalPlan plan) {
    if (plan instanceof Join) findBySides((Join) plan);
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) findBelow(child);
  }

  private static void findBySides(Join join) {
    if (broadcast(join.left()) == null && broadcast(join.right()) == null) return;
    EquiJoin keys = EquiJoin.of(join);
    if (keys == null) return;
    if (keys.prunesLeft()) tell(join.left(), broadcast(join.right()), keys.rightKeys);
    if (keys.prunesRight()) tell(join.right(), broadcast(join.left()), keys.leftKeys);
  }

  /** The side of a join, if it was broadcast by now; else null. */
  private static BroadcastQueryStageExec broadcast(LogicalPlan side) {
    if (!(side instanceof LogicalQueryStage) || !(((LogicalQueryStage) side).physicalPlan() instanceof BroadcastQueryStageExec)) return null;
    BroadcastQueryStageExec stage = (BroadcastQueryStageExec) ((LogicalQueryStage) side).physicalPlan();
    return stage.isMaterialized() ? stage : null;
  }

  /** Tells the scans in `side` that wait for these keys, those of the join's other side, what they are. */
  private static void tell(LogicalPlan side, BroadcastQueryStageExec stage, Seq<Expression> keys) {
    if (stage == null) return;
    if (side instanceof Filter && FuseScan.below(((Filter) side).child()) != null) {
      List<Known> all = new ArrayList<Known>(known(((Filter) side).child()));
      for (Expression conjunct : Trees.conjuncts(((Filter) side).condition())) {
        Expression membership = conjunct instanceof DynamicPruningSubquery ? membership((DynamicPruningSubquery) conjunct, stage, keys) : null;
        if (membership != null) all.add(new Known((DynamicPruningSubquery) conjunct, membership));
      }
      ((Filter) side).child().setTagValue(KNOWN, all);
      return;
    }
    for (LogicalPlan child : ScalaLists.toJava(side.children())) if (EquiJoin.passesRows(side, child)) tell(child, stage, keys);
  }

  /** `term IN (keys)`, if the filter waits for those of this stage, and they are few; else null. */
  private static Expression membership(DynamicPruningSubquery filter, BroadcastQueryStageExec stage, Seq<Expression> keys) {
    List<Object> numbers = ScalaLists.toJava(filter.broadcastKeyIndices());
    if (numbers.size() != 1 || !isSame(filter.buildKeys(), keys)) return null;
    HashedRelation relation = relation(stage, keys);
    int number = ((Integer) numbers.get(0)).intValue();
    List<Expression> values = relation == null ? null : values(relation, keys, number);
    return values == null ? null : new In(filter.pruningKey(), ScalaLists.toScala(values));
  }

  private static boolean isSame(Seq<Expression> some, Seq<Expression> others) {
    if (some.length() != others.length()) return false;
    for (int i = 0; i < some.length(); i++) if (!((Expression) some.apply(i)).semanticEquals((Expression) others.apply(i))) return false;
    return true;
  }

  /** What was broadcast, if it is kept by these keys; else null. */
  private static HashedRelation relation(BroadcastQueryStageExec stage, Seq<Expression> keys) {
    if (!(stage.outputPartitioning() instanceof BroadcastPartitioning)) return null;
    Object mode = ((BroadcastPartitioning) stage.outputPartitioning()).mode();
    List<Expression> bound = new ArrayList<Expression>();
    for (Expression key : ScalaLists.toJava(HashJoin$.MODULE$.rewriteKeyExpr(keys))) bound.add((Expression) key.transformUp(new Bind(stage.output())));
    HashedRelationBroadcastMode expected = new HashedRelationBroadcastMode(ScalaLists.toScala(bound), false);
    boolean byKeys = mode instanceof HashedRelationBroadcastMode && ((HashedRelationBroadcastMode) mode).canonicalized().equals(expected.canonicalized());
    Object value = byKeys ? stage.executeBroadcast().value() : null;
    return value instanceof HashedRelation ? ((HashedRelation) value).asReadOnlyCopy() : null;
  }

  /** The values of one of the keys, each once; null if they are more than is worth asking about. */
  private static List<Expression> values(HashedRelation relation, Seq<Expression> keys, int number) {
    DataType type = ((Expression) keys.apply(number)).dataType();
    boolean packed = !isSame(HashJoin$.MODULE$.rewriteKeyExpr(keys), keys); // whole numbers that fit into one of 64 bits
    Expression key = packed ? HashJoin$.MODULE$.extractKeyExprAt(keys, number) : new BoundReference(number, type, true);
    Set<Object> values = new LinkedHashSet<Object>();
    scala.collection.Iterator<InternalRow> rows = relation.keys();
    while (rows.hasNext()) {
      Object value = key.eval((InternalRow) rows.next());
      if (value != null) values.add(InternalRow.copyValue(value));
      if (values.size() > Protocol.MAX_KEYS) return null;
    }
    List<Expression> literals = new ArrayList<Expression>();
    for (Object value : values) literals.add(new Literal(value, type));
    return literals;
  }
}
