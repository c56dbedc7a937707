package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Takes what the clauses of a MERGE draw (`uuid()`, `rand()`) out of them, to be columns of the rows below, where Spark's analyzer lets
 * it be. MergeKeys sees to it that a source is evaluated once.
 */
public class DrawnValues extends NodeRewrite<Expression> {
  private final LogicalPlan rows;
  private final List<NamedExpression> columns = new ArrayList<NamedExpression>();

  private DrawnValues(LogicalPlan rows) { this.rows = rows; }

  /** A MERGE before Spark makes a query of it; null where its clauses draw nothing that its source could hold. */
  static LogicalPlan inSource(MergeIntoTable merge) {
    if (merge.matchedActions().isEmpty() && merge.notMatchedBySourceActions().isEmpty()) return null; // an append, where all is allowed
    DrawnValues drawn = new DrawnValues(merge.sourceTable());
    Object[] arguments = Versions.arguments(merge);
    for (int i = 0; i < arguments.length; i++) {
      boolean hasSource = arguments[i] == merge.matchedActions() || arguments[i] == merge.notMatchedActions();
      if (hasSource) arguments[i] = drawn.outOf((Seq<?>) arguments[i]);
    }
    if (drawn.columns.isEmpty()) return null;
    return Versions.copy((LogicalPlan) merge.makeCopy(arguments), merge.sourceTable(), drawn.rowsWithColumns());
  }

  /**
   * The query that Spark made of a MERGE; null where it is well. Spark adds what must hold of a table's groups of rows, that a row of
   * the source exists for them: it is of no use to us, since MergeKeys knows more, and is refused where the source draws, or reads
   * where rows of the table lie.
   */
  static LogicalPlan inQuery(WriteDelta delta) {
    LogicalPlan query = (LogicalPlan) delta.query().transformDown(new OfRows());
    boolean changed = query != delta.query();
    Object[] arguments = Versions.arguments(delta);
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i] == delta.query()) arguments[i] = query;
      if (!isCondition(arguments[i])) continue;
      arguments[i] = Option.empty();
      changed = true;
    }
    return changed ? (LogicalPlan) delta.makeCopy(arguments) : null;
  }

  private static boolean isCondition(Object argument) {
    return argument instanceof Option && ((Option<?>) argument).isDefined() && ((Option<?>) argument).get() instanceof Expression;
  }

  public static class OfRows extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      if (!(node instanceof MergeRows)) return null;
      MergeRows merge = (MergeRows) node;
      DrawnValues drawn = new DrawnValues(merge.child());
      LogicalPlan clauses = (LogicalPlan) merge.transformExpressionsDown(drawn);
      if (drawn.columns.isEmpty()) return null;
      return Versions.copy(clauses, merge.child(), drawn.rowsWithColumns());
    }
  }

  protected Object rewrite(Object node) {
    Expression expression = (Expression) node;
    if (expression.deterministic() || !expression.resolved() || !expression.references().subsetOf(rows.outputSet())) return null;
    for (Expression child : ScalaLists.toJava(expression.children())) if (!child.deterministic()) return null;
    NamedExpression column = Trees.alias(expression, "drawn" + columns.size());
    columns.add(column);
    return column.toAttribute();
  }

  private Seq<?> outOf(Seq<?> actions) {
    List<Object> changed = new ArrayList<Object>();
    for (Object action : ScalaLists.toJava(actions)) changed.add(((Expression) action).transformDown(this));
    return ScalaLists.toScala(changed);
  }

  private LogicalPlan rowsWithColumns() {
    List<NamedExpression> all = new ArrayList<NamedExpression>();
    for (Object column : ScalaLists.toJava(rows.output())) all.add((NamedExpression) column);
    all.addAll(columns);
    return new Project(ScalaLists.toScala(all), rows);
  }
}
