package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.runtime.AbstractFunction1;

/**
 * Hands the rows which DELETE, UPDATE and MERGE change to Python, right before Spark plans the scans of their query.
 *
 * It comes before Spark makes joins of subqueries: such a join reads the table once more for what a subquery takes from it, and
 * since 4.1 Spark then no longer knows of which of both scans the rows of a statement are.
 */
public class ChangedRowsRule<P extends TreeNode<?>> extends PlanRule<P> {
  /** Makes the rule of a session; the type variables are there for NodeRewrite's reason. */
  public static class Rules<S, R> extends AbstractFunction1<S, R> {
    @SuppressWarnings("unchecked")
    public R apply(S session) { return (R) new ChangedRowsRule<LogicalPlan>(); }
  }

  public static class Queries extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      if (!(node instanceof WriteDelta)) return null;
      WriteDelta delta = (WriteDelta) node;
      return delta.operation() instanceof FuseRowOperation ? changedRows(delta, ((FuseRowOperation) delta.operation()).statement) : null;
    }
  }

  /** Gives all sessions that share extensions the rule, once: optimizers ask these for rules each time. Spark 4.0 need not have it so early. */
  public static void install(SparkSession session) {
    if (Versions.SCHEMA_EVOLUTION == null) return;
    SparkSessionExtensions extensions = session.extensions();
    for (Object rule : ScalaLists.toJava(extensions.buildPreCBORules(session))) if (rule instanceof ChangedRowsRule) return;
    extensions.injectPreCBORule(new Rules<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>>());
  }

  protected LogicalPlan rewrite(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new Queries()); }

  /** Hands over a column for what happens to a row, where it lies (NULL for new ones), and its columns as they will be, if it stays. */
  private static LogicalPlan changedRows(WriteDelta delta, RowStatement statement) {
    List<Attribute> output = ScalaLists.toJava(delta.query().output());
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    columns.add(Trees.alias((Expression) output.get(0), "operation"));
    Integer place = (Integer) delta.projections().rowIdProjection().colOrdinals().apply(0);
    Expression metadata = (Expression) output.get(place.intValue());
    columns.add(Trees.alias(member(metadata, "file_path"), "block"));
    columns.add(Trees.alias(member(metadata, "row_index"), "row"));
    if (delta.projections().rowProjection().isDefined()) {
      ProjectingInternalRow row = (ProjectingInternalRow) delta.projections().rowProjection().get();
      // A statement that asks for metadata has it behind the columns of the rows, which are all that is written.
      int count = Math.min(row.colOrdinals().length(), statement.table.schema().length());
      for (int i = 0; i < count; i++) {
        columns.add(Trees.alias((Expression) output.get(((Integer) row.colOrdinals().apply(i)).intValue()), "c" + i));
      }
    }
    // The condition of a MERGE is about columns of two tables, which may be called alike: MergeKeys knows what follows from it.
    Expression condition = statement.isMerge() ? null : delta.condition();
    Project rows = new Project(ScalaLists.toScala(columns), delta.query());
    return RowStatementRule.handOver(new FuseWrite(statement, condition), rows, delta.productElement(0));
  }

  private static Expression member(Expression struct, String name) {
    return new GetStructField(struct, ((StructType) struct.dataType()).fieldIndex(name), Option.apply(name));
  }
}
