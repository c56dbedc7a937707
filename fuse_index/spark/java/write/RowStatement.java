package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A statement that changes rows of a table. Python does it, all or nothing, from the snapshot that the statement was analysed on. */
public class RowStatement {
  public final FuseTable table;
  /** What is done, in the words of Protocol. */
  public final String operation;
  private final CaseInsensitiveStringMap options;

  /** Raises where the table cannot be changed. */
  public RowStatement(FuseTable table, String operation, CaseInsensitiveStringMap options) {
    table.commandKey();
    this.table = table;
    this.operation = operation;
    this.options = options;
  }

  public RowStatement as(String otherOperation) { return new RowStatement(table, otherOperation, options); }

  /** The statement on another version of its table. */
  public RowStatement at(TableSnapshot snapshot) {
    return new RowStatement(new FuseTable(table.session, table.name(), snapshot, table.commandKey()), operation, options);
  }

  public boolean isMerge() { return operation.equals(Protocol.MERGE) || operation.equals(Protocol.INSERT_UNMATCHED); }

  /** Whether rows take the place of others. */
  public boolean isOverwrite() { return operation.equals(Protocol.OVERWRITE); }

  /** What Python is asked for, without its end. `condition`: on which rows; null: on all. */
  public Json request(Expression condition) {
    TableSnapshot snapshot = table.snapshot();
    String filters = "null";
    if (condition != null && !SubqueryExpression.hasSubquery(condition)) {
      List<Expression> conjuncts = new ArrayList<Expression>(Trees.conjuncts(condition));
      filters = ExpressionJson.of(ScalaLists.toScala(conjuncts), snapshot.columns());
    }
    Json request = snapshot.openStatement(filters).key("session").text(snapshot.callbackKey);
    request.key("branch").text(snapshot.branch).key("change").text(operation).key("name").text(table.name()).key("options").open('[');
    for (Object option : options.keySet()) request.text((String) option);
    request.close(']');
    return isOverwrite() && condition != null ? request.key("condition").text(condition.sql()) : request;
  }

  /** Does it, and raises what it raises. `condition`: on which rows; null: on all. `rows`: a Dataset, or null. */
  public void run(Expression condition, Object rows) { PythonCallback.command(table.commandKey(), request(condition), rows); }
}
