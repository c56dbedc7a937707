package fuse_index.spark.java.catalyst;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Product;
import scala.collection.immutable.Seq;

/** A join that compares keys of its sides, and which rows of them it leaves out. */
public class EquiJoin {
  public final Join join;
  /** What is compared, in pairs. */
  public final Seq<Expression> leftKeys;
  public final Seq<Expression> rightKeys;

  @SuppressWarnings("unchecked")
  private EquiJoin(Join join, Product parts) {
    this.join = join;
    this.leftKeys = (Seq<Expression>) parts.productElement(1);
    this.rightKeys = (Seq<Expression>) parts.productElement(2);
  }

  /** The join, as Spark takes it apart; null of one that compares no keys. */
  public static EquiJoin of(Join join) {
    scala.Option<?> parts = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    return parts.isEmpty() ? null : new EquiJoin(join, (Product) parts.get());
  }

  /** Whether rows of the left side are left out that no row of the right side matches. */
  public boolean prunesLeft() {
    JoinType type = join.joinType();
    return type == Inner$.MODULE$ || type == LeftSemi$.MODULE$ || type == RightOuter$.MODULE$;
  }

  /** Whether rows of the right side are, likewise: not by a semi join, which has no row of it. */
  public boolean prunesRight() { return join.joinType() == Inner$.MODULE$ || join.joinType() == LeftOuter$.MODULE$; }

  /** Whether a plan has each time the same value of `key` in each row, by its columns alone. */
  public static boolean gives(LogicalPlan plan, Expression key) {
    boolean isFixed = key.deterministic() && !SubqueryExpression.hasSubquery(key);
    return isFixed && !key.references().isEmpty() && key.references().subsetOf(plan.outputSet());
  }

  /** Whether leaving out rows of `child` leaves out rows of `plan`, and changes no other. */
  public static boolean passesRows(LogicalPlan plan, LogicalPlan child) {
    // What numbers rows, or draws for each, gives others where some are left out.
    if (!Trees.isDeterministic(plan)) return false;
    if (plan instanceof Project || plan instanceof Filter) return true;
    if (!(plan instanceof Join)) return false;
    Join join = (Join) plan;
    JoinType type = join.joinType();
    if (type == Inner$.MODULE$) return true;
    return child == join.left() ? type == LeftSemi$.MODULE$ || type == LeftOuter$.MODULE$ : type == RightOuter$.MODULE$;
  }
}
