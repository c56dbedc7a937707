package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;

/**
 * Puts calls of functions that `CREATE FUNCTION … RETURN` made, in DELETE and UPDATE and in what a MERGE writes, into queries of one row:
 * Spark puts the text of such a function in the place of its call in queries alone, and refuses it elsewhere. Its optimizer then leaves
 * the text; in a MERGE, which becomes a join, OneRowCalls does.
 */
public class FunctionCalls<P extends TreeNode<?>> extends PlanRule<P> {
  /** What Spark says of such a function where it is from. */
  private static final String SQL_FUNCTION = "sql_udf";

  private final SparkSession session;

  public FunctionCalls(SparkSession session) { this.session = session; }

  /** Statements, before names in them are resolved. */
  public static class Statements extends NodeRewrite<LogicalPlan> {
    private final SparkSession session;

    public Statements(SparkSession session) { this.session = session; }

    protected Object rewrite(Object node) {
      boolean isMerge = node instanceof MergeIntoTable;
      if (!isMerge && !(node instanceof DeleteFromTable) && !(node instanceof UpdateTable)) return null;
      NodeRewrite<Expression> calls = isMerge ? (NodeRewrite<Expression>) new Values(session) : (NodeRewrite<Expression>) new Calls<Expression>(session);
      LogicalPlan changed = (LogicalPlan) ((LogicalPlan) node).transformExpressionsDown(calls);
      return changed == node ? null : changed;
    }
  }

  /** What a MERGE assigns and inserts. Its conditions Spark refuses where they have queries, before anybody else sees them resolved. */
  public static class Values extends NodeRewrite<Expression> {
    private final SparkSession session;

    public Values(SparkSession session) { this.session = session; }

    protected Object rewrite(Object node) {
      if (!(node instanceof Assignment)) return null;
      Expression value = ((Assignment) node).value();
      Expression changed = (Expression) value.transformDown(new Calls<Expression>(session));
      return changed == value ? null : new Assignment(((Assignment) node).key(), changed);
    }
  }

  public static class Calls<N> extends NodeRewrite<N> {
    private final SparkSession session;

    public Calls(SparkSession session) { this.session = session; }

    protected Object rewrite(Object node) {
      if (!(node instanceof UnresolvedFunction) || !isSql((UnresolvedFunction) node)) return null;
      NamedExpression value = new UnresolvedAlias((Expression) node, Option.empty());
      LogicalPlan query = new Project(ScalaLists.of(value), new OneRowRelation());
      return new ScalarSubquery(query, ScalaLists.<Expression>of(), NamedExpression$.MODULE$.newExprId(), ScalaLists.<Expression>of(),
          Option.<HintInfo>empty(), Option.empty(), Option.empty());
    }

    private boolean isSql(UnresolvedFunction call) {
      List<String> parts = ScalaLists.toJava(call.nameParts());
      int last = parts.size() - 1;
      if (last > 2) return false;
      Option<String> database = last > 0 ? Option.apply((String) parts.get(last - 1)) : Option.<String>empty();
      Option<String> catalog = last > 1 ? Option.apply((String) parts.get(0)) : Option.<String>empty();
      try {
        FunctionIdentifier name = new FunctionIdentifier((String) parts.get(last), database, catalog);
        return session.sessionState().catalog().lookupFunctionInfo(name).getSource().equals(SQL_FUNCTION);
      } catch (Exception unknown) { // Spark raises it in its own words
        return false;
      }
    }
  }

  protected LogicalPlan rewrite(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new Statements(session)); }
}
