package fuse_index.spark.java.report;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;

/** Why scans are not told the keys that joins of a query compare: by the optimized plan, in which these stand with both their sides. */
public class UntoldKeys {
  private final List<EquiJoin> joins = new ArrayList<EquiJoin>();

  public UntoldKeys(LogicalPlan optimized) { add(optimized); }

  private void add(LogicalPlan plan) {
    EquiJoin join = plan instanceof Join ? EquiJoin.of((Join) plan) : null;
    if (join != null) joins.add(join);
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) add(child);
    for (LogicalPlan query : ScalaLists.toJava(plan.subqueries())) add(query);
  }

  /** Why a scan is not told the keys of a join that compares them so; empty where nothing is known to stand against it. */
  public String refusal(EqualTo compared, BatchScanExec scan) {
    boolean isLeft = isTerm(compared.left(), scan);
    if (isLeft == isTerm(compared.right(), scan)) return "";
    Expression term = isLeft ? compared.left() : compared.right();
    String refusal = ((FuseScan) scan.scan()).refusalOfKeys(term);
    if (refusal == null) refusal = ((FuseScan) scan.scan()).refusalOfFoundKeys(term);
    if (refusal == null) refusal = refusal(term, isLeft ? compared.right() : compared.left());
    if (refusal != null) return refusal;
    return term instanceof Attribute ? "" : "its keys are asked about if they are known before this scan is planned: the other side is broadcast, and nothing shuffles this one";
  }

  private static boolean isTerm(Expression side, BatchScanExec scan) { return !side.references().isEmpty() && side.references().subsetOf(scan.outputSet()); }

  private String refusal(Expression term, Expression other) {
    for (EquiJoin join : joins) {
      for (int i = 0; i < join.leftKeys.length(); i++) {
        Expression left = (Expression) join.leftKeys.apply(i);
        Expression right = (Expression) join.rightKeys.apply(i);
        if (left.semanticEquals(term) && right.semanticEquals(other)) return refusal(join, i, true);
        if (right.semanticEquals(term) && left.semanticEquals(other)) return refusal(join, i, false);
      }
    }
    return null;
  }

  private static String refusal(EquiJoin keys, int number, boolean isLeft) {
    if (!(isLeft ? keys.prunesLeft() : keys.prunesRight())) return "the join keeps rows of this side that match none of the other";
    LogicalPlan side = isLeft ? keys.join.right() : keys.join.left();
    KeySource source = new KeySource(side, isLeft ? keys.join.hint().rightHint() : keys.join.hint().leftHint());
    String refusal = source.size() == null ? source.chain() : source.size();
    return refusal != null ? refusal : source.count((Expression) (isLeft ? keys.rightKeys : keys.leftKeys).apply(number));
  }
}
