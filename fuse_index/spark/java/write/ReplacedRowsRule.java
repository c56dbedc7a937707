package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Gives INSERT … REPLACE WHERE its write before Spark does, which would have the condition as filters of sources, and fail where there
 * are none: Python gets Catalyst's own, and says in a sentence what it does not know.
 */
public class ReplacedRowsRule<P extends TreeNode<?>> extends PlanRule<P> {
  /** Makes the rule of a session; the type variables are there for NodeRewrite's reason. */
  public static class Rules<S, R> extends AbstractFunction1<S, R> {
    @SuppressWarnings("unchecked")
    public R apply(S session) { return (R) new ReplacedRowsRule<LogicalPlan>(); }
  }

  public static class Overwrites extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      if (!(node instanceof OverwriteByExpression)) return null;
      OverwriteByExpression overwrite = (OverwriteByExpression) node;
      FuseTable table = FuseTable.of(overwrite.productElement(0));
      if (table == null || overwrite.write().isDefined() || SubqueryExpression.hasSubquery(overwrite.deleteExpr())) return null;
      Map<String, String> options = new HashMap<String, String>(((DataSourceV2Relation) overwrite.productElement(0)).options());
      options.putAll(CollectionConverters.asJava(overwrite.writeOptions()));
      RowStatement statement = new RowStatement(table, Protocol.OVERWRITE, new CaseInsensitiveStringMap(options));
      Object[] arguments = Versions.arguments(overwrite);
      arguments[arguments.length - 2] = Option.apply(new FuseWrite(statement, overwrite.deleteExpr()));
      return overwrite.makeCopy(arguments);
    }
  }

  /** Gives all sessions that share extensions the rule, once: optimizers ask these for rules each time. */
  public static void install(SparkSession session) {
    SparkSessionExtensions extensions = session.extensions();
    for (Object rule : ScalaLists.toJava(extensions.buildOptimizerRules(session))) if (rule instanceof ReplacedRowsRule) return;
    extensions.injectOptimizerRule(new Rules<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>>());
  }

  protected LogicalPlan rewrite(LogicalPlan plan) { return (LogicalPlan) plan.transformDown(new Overwrites()); }
}
