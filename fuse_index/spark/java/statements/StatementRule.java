package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks at UPDATE and MERGE into our tables once they are resolved. By then Spark has made queries of them, before 4.1 it is about to.
 */
public class StatementRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final String MERGE = "MERGE INTO";
  /** Where an analyzer keeps the rules that come before its own, and after. */
  private static final String FIRST_RULES = "hintResolutionRules";
  private static final String LAST_RULES = "postHocResolutionRules";

  /** Gives a session's analyzer the rule, once; it has no method for that, as the optimizer has. */
  public static void install(SparkSession session) {
    Analyzer analyzer = session.sessionState().analyzer();
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(analyzer.postHocResolutionRules()));
    for (Object rule : rules) if (rule instanceof StatementRule) return;
    rules.add(new StatementRule<LogicalPlan>());
    List<Rule<LogicalPlan>> first = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(analyzer.hintResolutionRules()));
    first.add(new FunctionCalls<LogicalPlan>(session));
    try {
      Reflection.set(analyzer, analyzer.getClass(), LAST_RULES, ScalaLists.toScala(rules));
      Reflection.set(analyzer, analyzer.getClass(), FIRST_RULES, ScalaLists.toScala(first));
    } catch (ReflectiveOperationException other) {
      LOG.warn("statements of this session are not looked at before they are planned, so that a MERGE of rows that are drawn is refused, "
          + "as are functions of SQL in DELETE, UPDATE and MERGE, and MERGE WITH SCHEMA EVOLUTION adds no columns: " + other);
    }
  }

  public static class Statements extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      if (node instanceof WriteDelta) return rewriteQuery((WriteDelta) node);
      LogicalPlan statement = (LogicalPlan) node;
      FuseTable into = Versions.isInsertOnlyMerge(statement) ? FuseTable.of(statement.productElement(0)) : null;
      if (into != null) RowByRow.checkQuery(Trees.child(statement), MERGE, into.name());
      FuseTable changed = verb(node) == null ? null : tableBelow(Trees.child(statement));
      if (changed != null) RowByRow.checkClauses(statement, verb(node), changed.name());
      if (!(node instanceof MergeIntoTable)) return null;
      MergeIntoTable merge = (MergeIntoTable) node;
      FuseTable table = tableBelow(merge.targetTable());
      if (table == null) return null;
      if (Versions.SCHEMA_EVOLUTION == null) EvolutionCheck.check(merge, table);
      return merge.resolved() ? DrawnValues.inSource(merge) : null;
    }

    private static LogicalPlan rewriteQuery(WriteDelta delta) {
      if (!(delta.operation() instanceof FuseRowOperation)) return null;
      Command command = delta.operation().command();
      RowByRow.checkQuery(delta.query(), command == Command.MERGE ? MERGE : command == Command.DELETE ? "DELETE FROM" : "UPDATE", delta.originalTable().name());
      if (command != Command.MERGE) return null;
      if (asksWhereRowsLie(delta.query())) throw placesRefused(delta.originalTable().name());
      return DrawnValues.inQuery(delta);
    }
  }

  /** Conditions of DELETE, UPDATE and MERGE, and of the queries that Spark has made of them. */
  public static class Conditions extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      boolean ours = verb(node) != null && tableBelow(Trees.child((LogicalPlan) node)) != null
          || node instanceof WriteDelta && ((WriteDelta) node).operation() instanceof FuseRowOperation;
      if (!ours) return null;
      LogicalPlan changed = (LogicalPlan) ((LogicalPlan) node).transformAllExpressions(new CertainExists<Expression>());
      if (isMerge(node)) changed = (LogicalPlan) changed.transformAllExpressions(new OneRowCalls<Expression>());
      return changed == node ? null : changed;
    }
  }

  /** What a statement begins with, before Spark makes a query of it; null for any other plan. */
  private static String verb(Object node) {
    if (node instanceof MergeIntoTable) return MERGE;
    return node instanceof DeleteFromTable ? "DELETE FROM" : node instanceof UpdateTable ? "UPDATE" : null;
  }

  private static boolean isMerge(Object node) {
    return node instanceof MergeIntoTable || node instanceof WriteDelta && ((WriteDelta) node).operation().command() == Command.MERGE;
  }

  protected LogicalPlan rewrite(LogicalPlan plan) {
    return (LogicalPlan) ((LogicalPlan) plan.transformDown(new Conditions())).transformDown(new Statements());
  }

  private static FuseTable tableBelow(LogicalPlan target) {
    for (LogicalPlan leaf : ScalaLists.toJava(target.collectLeaves())) if (FuseTable.of(leaf) != null) return FuseTable.of(leaf);
    return null;
  }

  private static RuntimeException placesRefused(String table) {
    return StatementError.invalidInput("MERGE INTO " + table + " has conditions on _metadata, of which this Spark makes a query that it "
        + "cannot run: say so in UPDATE or DELETE, or match rows by their columns");
  }

  /** Whether a query that Spark made of a MERGE joins or chooses rows by where they lie: since 4.1, its code for that is wrong. */
  private static boolean asksWhereRowsLie(LogicalPlan plan) {
    List<Expression> conditions = new ArrayList<Expression>();
    if (plan instanceof Join && ((Join) plan).condition().isDefined()) conditions.add((Expression) ((Join) plan).condition().get());
    // Spark puts what is about rows of the table alone right over its scan.
    if (plan instanceof Filter && isTarget(((Filter) plan).child())) conditions.add(((Filter) plan).condition());
    if (plan instanceof MergeRows) {
      for (Object each : ScalaLists.toJava(((MergeRows) plan).matchedInstructions())) conditions.add(((MergeRows.Instruction) each).condition());
      for (Object each : ScalaLists.toJava(((MergeRows) plan).notMatchedBySourceInstructions())) conditions.add(((MergeRows.Instruction) each).condition());
    }
    for (Expression condition : conditions) {
      for (Attribute column : ScalaLists.toJava(condition.references().toSeq())) if (column.name().equals(FileMetadata.COLUMN)) return true;
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (asksWhereRowsLie(child)) return true;
    return false;
  }

  private static boolean isTarget(LogicalPlan plan) {
    return plan instanceof DataSourceV2Relation && FuseRowOperation.of(((DataSourceV2Relation) plan).table()) != null;
  }
}
