package fuse_index.spark.java.catalog;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.report.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.sql.internal.SessionState;

/**
 * What a statement would do to one of our tables, found in its optimized plan; nothing is done. Of one that writes rows to another's
 * table, or makes a table of them, there is their query alone.
 */
public class StatementPlan {
  private final FuseWrite write;
  private final Dataset<Row> rows;
  private final MergeKeys keys;
  private final LogicalPlan analyzed;

  private StatementPlan(LogicalPlan analyzed, FuseWrite write, Dataset<Row> rows) {
    this.analyzed = analyzed;
    this.write = write;
    this.rows = rows;
    this.keys = write != null && write.statement.isMerge() ? MergeKeys.of(write.statement.table, rows) : null;
  }

  /** The plan of a statement's text; null if it changes or writes no rows. */
  public static StatementPlan of(SparkSession session, String text) throws ParseException {
    SessionState state = session.sessionState();
    LogicalPlan parsed = state.sqlParser().parsePlan(text);
    if (!isStatement(parsed instanceof UnresolvedWith ? Trees.child(parsed) : parsed)) return null;
    QueryExecution execution = state.executePlan(parsed, CommandExecutionMode.SKIP());
    LogicalPlan plan = execution.optimizedPlan();
    LogicalPlan query = queryOf(plan);
    if (query == null) return null;
    query.setAnalyzed(); // it is, and optimised
    return new StatementPlan(execution.analyzed(), RowStatementRule.writeOf(plan), (Dataset<Row>) Dataset$.MODULE$.ofRows(session, query));
  }

  private static boolean isStatement(LogicalPlan parsed) {
    boolean writes = parsed instanceof InsertIntoStatement || parsed instanceof V2WriteCommand || parsed instanceof V2CreateTableAsSelectPlan;
    return writes || parsed instanceof DeleteFromTable || parsed instanceof UpdateTable || parsed instanceof MergeIntoTable;
  }

  private static LogicalPlan queryOf(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand) return ((V2WriteCommand) plan).query();
    if (plan instanceof V2CreateTableAsSelectPlan) return ((V2CreateTableAsSelectPlan) plan).query();
    LogicalPlan query = plan instanceof DataWritingCommand ? ((DataWritingCommand) plan).query() : null;
    return query instanceof WriteFiles ? Trees.child(query) : query;
  }

  /** What Python would be asked for, and a list of the keys that are known only when the statement runs, as JSON; null where it is not asked. */
  public String[] described() {
    if (write == null) return null;
    List<String> awaited = new ArrayList<String>();
    if (keys != null && !keys.areAtHand()) for (String key : keys.conditions()) awaited.add(new Json().text(key).toString());
    return new String[] {write.statement.request(write.condition).key("rows").text("").close('}').toString(), Json.list(awaited)};
  }

  /** Reports the scans of a plan of its rows, as `Bridge.scans`; but what was written is the statement, and not the query that was made of it. */
  public String scans(Object execution) { return ScanReport.of((QueryExecution) execution, analyzed); }

  /** The rows that it would change or add, told the keys of a MERGE's source where they are at hand. */
  public Dataset<Row> rows() { return keys == null || !keys.areAtHand() ? rows : keys.knownRows(); }
}
