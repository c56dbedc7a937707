package fuse_index.spark.java.write;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.sources.InsertableRelation;

/** Rows on their way into a table: Spark hands over their Dataset, which Python runs, since executors know no class of ours. */
public class FuseWrite implements V1Write, InsertableRelation {
  public final RowStatement statement;
  /** On which rows of the table it depends; null: on all, or none. */
  public final Expression condition;

  public FuseWrite(RowStatement statement, Expression condition) {
    this.statement = statement;
    this.condition = condition;
  }

  public InsertableRelation toInsertableRelation() { return this; }

  public void insert(Dataset<Row> rows, boolean overwrite) {
    MergeKeys keys = statement.isMerge() ? MergeKeys.of(statement.table, (org.apache.spark.sql.classic.Dataset<Row>) rows) : null;
    if (keys == null) statement.run(condition, rows);
    else keys.run(statement);
  }

  public String description() { return "fuse " + statement.operation + " " + statement.table.name(); }

  public String toString() { return description(); }
}
