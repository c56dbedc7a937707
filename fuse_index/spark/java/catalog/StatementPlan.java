package fuse_index.spark.java.catalog;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.internal.SessionState;

/** What a DELETE, UPDATE or MERGE would do to one of our tables, found in its optimized plan; nothing is done. */
public class StatementPlan {
  private final FuseWrite write;
  private final Dataset<Row> rows;
  private final MergeKeys keys;

  private StatementPlan(FuseWrite write, Dataset<Row> rows) {
    this.write = write;
    this.rows = rows;
    this.keys = write.statement.isMerge() ? MergeKeys.of(write.statement.table, rows) : null;
  }

  /** The plan of a statement's text; null if it is another, or changes no table of ours. */
  public static StatementPlan of(SparkSession session, String text) throws ParseException {
    SessionState state = session.sessionState();
    LogicalPlan parsed = state.sqlParser().parsePlan(text);
    if (!(parsed instanceof DeleteFromTable || parsed instanceof UpdateTable || parsed instanceof MergeIntoTable)) return null;
    LogicalPlan plan = state.executePlan(parsed, CommandExecutionMode.SKIP()).optimizedPlan();
    FuseWrite write = RowStatementRule.writeOf(plan);
    if (write == null || !(plan instanceof V2WriteCommand)) return null;
    LogicalPlan query = ((V2WriteCommand) plan).query();
    query.setAnalyzed(); // it is, and optimised
    return new StatementPlan(write, (Dataset<Row>) Dataset$.MODULE$.ofRows(session, query));
  }

  /** What Python would be asked for, and a list of the keys that are known only when the statement runs, as JSON. */
  public String[] described() {
    List<String> awaited = new ArrayList<String>();
    if (keys != null && !keys.areAtHand()) for (String key : keys.conditions()) awaited.add(new Json().text(key).toString());
    return new String[] {write.statement.request(write.condition).key("rows").text("").close('}').toString(), Json.list(awaited)};
  }

  /** The rows that it would change or add, told the keys of a MERGE's source where they are at hand. */
  public Dataset<Row> rows() { return keys == null || !keys.areAtHand() ? rows : keys.knownRows(); }
}
