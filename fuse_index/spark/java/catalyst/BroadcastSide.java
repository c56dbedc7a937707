package fuse_index.spark.java.catalyst;

import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.BroadcastPartitioning;
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.joins.HashJoin$;
import org.apache.spark.sql.execution.joins.HashedRelation;
import org.apache.spark.sql.execution.joins.HashedRelationBroadcastMode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.Seq;

/** A side of a join that adaptive execution has broadcast by now, by its keys: their values are known before the rest is planned. */
public class BroadcastSide {
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

  private final BroadcastQueryStageExec stage;
  /** What the join compares, in terms of this side. */
  public final Seq<Expression> keys;

  private BroadcastSide(BroadcastQueryStageExec stage, Seq<Expression> keys) {
    this.stage = stage;
    this.keys = keys;
  }

  /** A side of a join; null of one that was not broadcast by now. */
  public static BroadcastSide of(LogicalPlan side, Seq<Expression> keys) { return isBroadcast(side) ? new BroadcastSide(stage(side), keys) : null; }

  public static boolean isBroadcast(LogicalPlan side) { return stage(side) != null && stage(side).isMaterialized(); }

  private static BroadcastQueryStageExec stage(LogicalPlan side) {
    boolean isStage = side instanceof LogicalQueryStage && ((LogicalQueryStage) side).physicalPlan() instanceof BroadcastQueryStageExec;
    return isStage ? (BroadcastQueryStageExec) ((LogicalQueryStage) side).physicalPlan() : null;
  }

  public static boolean isSame(Seq<Expression> some, Seq<Expression> others) {
    if (some.length() != others.length()) return false;
    for (int i = 0; i < some.length(); i++) if (!((Expression) some.apply(i)).semanticEquals((Expression) others.apply(i))) return false;
    return true;
  }

  public DataType type(int number) { return ((Expression) keys.apply(number)).dataType(); }

  /** The values of one of the keys, each once and none NULL; null if they are more than `most`, or are not kept by these keys. */
  public Set<Object> values(int number, int most) {
    HashedRelation relation = relation();
    if (relation == null) return null;
    boolean packed = !isSame(HashJoin$.MODULE$.rewriteKeyExpr(keys), keys); // whole numbers that fit into one of 64 bits
    Expression key = packed ? HashJoin$.MODULE$.extractKeyExprAt(keys, number) : new BoundReference(number, type(number), true);
    Set<Object> values = new LinkedHashSet<Object>();
    scala.collection.Iterator<InternalRow> rows = relation.keys();
    while (rows.hasNext()) {
      Object value = key.eval((InternalRow) rows.next());
      if (value != null) values.add(InternalRow.copyValue(value));
      if (values.size() > most) return null;
    }
    return values;
  }

  /** Whether it is kept by these keys. */
  public boolean keepsKeys() { return relation() != null; }

  /** What was broadcast, if it is kept by these keys; else null. */
  private HashedRelation relation() {
    if (!(stage.outputPartitioning() instanceof BroadcastPartitioning)) return null;
    Object mode = ((BroadcastPartitioning) stage.outputPartitioning()).mode();
    List<Expression> bound = new ArrayList<Expression>();
    for (Expression key : ScalaLists.toJava(HashJoin$.MODULE$.rewriteKeyExpr(keys))) bound.add((Expression) key.transformUp(new Bind(stage.output())));
    HashedRelationBroadcastMode expected = new HashedRelationBroadcastMode(ScalaLists.toScala(bound), false);
    boolean byKeys = mode instanceof HashedRelationBroadcastMode && ((HashedRelationBroadcastMode) mode).canonicalized().equals(expected.canonicalized());
    Object value = byKeys ? stage.executeBroadcast().value() : null;
    return value instanceof HashedRelation ? ((HashedRelation) value).asReadOnlyCopy() : null;
  }
}
