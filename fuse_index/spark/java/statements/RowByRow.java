package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Refuses what looks at several rows, or makes several, in the clauses of UPDATE, DELETE and MERGE: each is about a row by itself.
 * Spark's analyzer makes a query of some of them, where it means something else.
 */
final class RowByRow {
  private RowByRow() {}

  /** Looks at what a statement says itself. */
  static void checkClauses(LogicalPlan statement, String verb, String table) {
    for (Object each : ScalaLists.toJava(statement.expressions())) check((Expression) each, verb, table);
  }

  /** Looks at the query that Spark made of a statement; of a MERGE as far as the join of its source, which may have all of that. */
  static void checkQuery(LogicalPlan query, String verb, String table) {
    checkClauses(query, verb, table);
    if (query instanceof Join) return;
    for (LogicalPlan child : ScalaLists.toJava(query.children())) checkQuery(child, verb, table);
  }

  private static void check(Expression expression, String verb, String table) {
    String found = null;
    if (expression instanceof WindowExpression) found = "a window";
    if (expression instanceof AggregateExpression) found = "an aggregate";
    if (expression instanceof Generator) found = "a generator";
    if (found != null) {
      throw StatementError.invalidInput(verb + " " + table + " has " + found + ", " + expression.sql() + ", and looks at each row by itself: "
          + "say MERGE INTO with a query that has it as the source");
    }
    for (Object child : ScalaLists.toJava(expression.children())) check((Expression) child, verb, table);
  }
}
