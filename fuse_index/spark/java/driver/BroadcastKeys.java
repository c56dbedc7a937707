package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import scala.jdk.javaapi.CollectionConverters;

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
    if (!BroadcastSide.isBroadcast(join.left()) && !BroadcastSide.isBroadcast(join.right())) return;
    EquiJoin keys = EquiJoin.of(join);
    if (keys == null) return;
    if (keys.prunesLeft()) tell(join.left(), BroadcastSide.of(join.right(), keys.rightKeys));
    if (keys.prunesRight()) tell(join.right(), BroadcastSide.of(join.left(), keys.leftKeys));
  }

  /** Tells the scans in `side` that wait for the keys of the join's other side what they are. */
  private static void tell(LogicalPlan side, BroadcastSide other) {
    if (other == null) return;
    if (side instanceof Filter && FuseScan.below(((Filter) side).child()) != null) {
      List<Known> all = new ArrayList<Known>(known(((Filter) side).child()));
      for (Expression conjunct : Trees.conjuncts(((Filter) side).condition())) {
        Expression membership = conjunct instanceof DynamicPruningSubquery ? membership((DynamicPruningSubquery) conjunct, other, FuseScan.below(((Filter) side).child())) : null;
        if (membership != null) all.add(new Known((DynamicPruningSubquery) conjunct, membership));
      }
      ((Filter) side).child().setTagValue(KNOWN, all);
      return;
    }
    for (LogicalPlan child : ScalaLists.toJava(side.children())) if (EquiJoin.passesRows(side, child)) tell(child, other);
  }

  /** `term IN (keys)`, if the filter waits for those of this side, and they are few; else null, and the scan knows if they are many. */
  private static Expression membership(DynamicPruningSubquery filter, BroadcastSide side, FuseScan scan) {
    List<Object> numbers = ScalaLists.toJava(filter.broadcastKeyIndices());
    if (numbers.size() != 1 || !BroadcastSide.isSame(filter.buildKeys(), side.keys)) return null;
    int number = ((Integer) numbers.get(0)).intValue();
    Set<Object> values = side.values(number, Protocol.MAX_KEYS);
    if (values == null && side.keepsKeys()) scan.addUntold(filter.pruningKey(), -1L);
    if (values == null) return null;
    Expression term = filter.pruningKey();
    if (term.dataType().equals(side.type(number))) return new InSet(term, CollectionConverters.asScala(values).toSet()); // a sixth of the text
    List<Expression> literals = new ArrayList<Expression>();
    for (Object value : values) literals.add(new Literal(value, side.type(number)));
    return new In(term, ScalaLists.toScala(literals));
  }
}
