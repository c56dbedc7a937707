package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery$;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;

/**
 * Puts writes that hand their rows to Python in the place of those that Spark would have executors do, with classes that they do
 * not know: those of overwrites and of rows that a MERGE adds. Where rows go by a condition, it is Catalyst's own. The queries of
 * rows that change, which ChangedRowsRule hands over, get what they need to run by themselves.
 */
public class RowStatementRule<P extends TreeNode<?>> extends PlanRule<P> {
  /** Takes rows of any columns: those that change come with where they lie. */
  public static class ChangedRows extends FuseTable {
    public ChangedRows(FuseTable table) { super(table.session, table.name(), table.snapshot(), table.commandKey()); }

    public Set<TableCapability> capabilities() {
      Set<TableCapability> capabilities = new HashSet<TableCapability>(super.capabilities());
      capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
      return capabilities;
    }
  }

  public static class AntiJoins<N> extends NodeRewrite<N> {
    protected Object rewrite(Object node) { return node instanceof Join && ((Join) node).joinType() == LeftAnti$.MODULE$ ? node : null; }
  }

  public static class FilterScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      FuseScan scan = FuseScan.below(node);
      boolean unfiltered = scan instanceof FuseRowOperation.UnfilteredScan;
      return unfiltered ? ((FuseRowOperation.UnfilteredScan) scan).filtered().replaceIn((LogicalPlan) node) : null;
    }
  }

  /** Reads where rows lie, and their values with it, of another version of the table; what else the query reads of it stays. */
  public static class MovedScans extends NodeRewrite<LogicalPlan> {
    private final String url;
    private final String from;
    private final String to;
    private final FileListing files;

    public MovedScans(String url, String from, String to, FileListing files) {
      this.url = url;
      this.from = from;
      this.to = to;
      this.files = files;
    }

    protected Object rewrite(Object node) {
      if (node instanceof DataSourceV2Relation) return rewriteUnplanned((DataSourceV2Relation) node);
      FuseScan scan = FuseScan.below(node);
      boolean ours = scan != null && scan.snapshot.url.equals(url) && scan.snapshot.id.equals(from) && !scan.asked.metadata().isEmpty();
      return ours && !scan.asked.isRestricted() ? scan.at(scan.snapshot.withHead(to, files)).replaceIn((LogicalPlan) node) : null;
    }

    /** The table of a statement whose scan Spark has not planned yet. */
    private LogicalPlan rewriteUnplanned(DataSourceV2Relation relation) {
      FuseRowOperation operation = FuseRowOperation.of(relation.table());
      TableSnapshot snapshot = operation == null ? null : operation.statement.table.snapshot();
      boolean ours = snapshot != null && snapshot.url.equals(url) && snapshot.id.equals(from);
      return ours ? Versions.copy(relation, relation.table(), operation.at(snapshot.withHead(to, files)).table()) : null;
    }
  }

  /** Statements whose rows are found by queries of their own, in which keys of joins may reach the scans. */
  public static class OwnQueries extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) {
      boolean ours = node instanceof AppendData && FuseTable.of(((LogicalPlan) node).productElement(0)) instanceof ChangedRows;
      if (!ours) return null;
      LogicalPlan query = ((AppendData) node).query();
      LogicalPlan filtered = (LogicalPlan) query.transformDown(new FilterScans());
      filtered.setAnalyzed(); // it is; what the optimizer makes of it, the analyzer need not understand
      return filtered == query ? null : Versions.copy((LogicalPlan) node, query, filtered);
    }
  }

  protected LogicalPlan rewrite(LogicalPlan original) {
    LogicalPlan plan = (LogicalPlan) original.transformDown(new OwnQueries());
    if (Versions.appends(plan)) {
      FuseWrite write = writeOf(plan);
      boolean insertsUnmatched = write != null && write.statement.operation.equals(Protocol.APPEND)
          && (!(plan instanceof AppendData) || isMergeInto(write.statement.table, ((AppendData) plan).query()));
      return insertsUnmatched ? replaced(plan, write, new FuseWrite(write.statement.as(Protocol.INSERT_UNMATCHED), null)) : plan;
    }
    if (plan instanceof OverwriteByExpression) {
      OverwriteByExpression overwrite = (OverwriteByExpression) plan;
      FuseWrite write = writeOf(plan);
      if (write == null || write.condition == overwrite.deleteExpr()) return plan;
      return replaced(plan, write, new FuseWrite(write.statement, overwrite.deleteExpr()));
    }
    if (plan instanceof OverwritePartitionsDynamic) {
      OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) plan;
      FuseWrite write = writeOf(plan);
      return write == null ? plan : handOver(write, overwrite.query(), overwrite.productElement(0));
    }
    return plan;
  }

  /** How a plan writes to one of our tables; null if it does not. */
  public static FuseWrite writeOf(LogicalPlan plan) {
    for (int i = 0; i < plan.productArity(); i++) {
      Object part = plan.productElement(i);
      boolean ours = part instanceof Option && ((Option<?>) part).isDefined() && ((Option<?>) part).get() instanceof FuseWrite;
      if (ours) return (FuseWrite) ((Option<?>) part).get();
    }
    return null;
  }

  /** Whether these are the rows that this table lacks: before 4.1 Spark makes an append of a MERGE that only inserts, by the same relation. */
  private static boolean isMergeInto(FuseTable table, LogicalPlan query) {
    for (LogicalPlan join : ScalaLists.toJava(query.collect(new AntiJoins<LogicalPlan>()))) {
      for (LogicalPlan leaf : ScalaLists.toJava(((Join) join).right().collectLeaves())) {
        if (leaf instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) leaf).relation().table() == table) return true;
      }
    }
    return false;
  }

  private static LogicalPlan replaced(LogicalPlan plan, FuseWrite write, FuseWrite other) {
    LogicalPlan copy = plan;
    for (Object part : Versions.arguments(plan)) {
      if (part instanceof Option && ((Option<?>) part).isDefined() && ((Option<?>) part).get() == write) copy = Versions.copy(copy, part, Option.apply(other));
    }
    return copy;
  }

  /** An append of rows to a table that takes any. `named`: the relation by whose name Spark finds, when it is done, what it has cached. */
  static LogicalPlan handOver(FuseWrite write, LogicalPlan query, Object named) {
    DataSourceV2Relation table = (DataSourceV2Relation) named;
    LogicalPlan to = DataSourceV2Relation$.MODULE$.create(new ChangedRows(write.statement.table), table.catalog(), table.identifier());
    LogicalPlan rows = readsTwice(query) ? RewritePredicateSubquery$.MODULE$.apply(query) : query;
    rows.setAnalyzed();
    return Versions.append(to, rows, write);
  }

  /**
   * Whether a query reads something once more for a subquery. A Dataset over it gives what is read twice columns of its own, but not in
   * conditions of other subqueries: these have to be joins by then.
   */
  private static boolean readsTwice(LogicalPlan query) {
    Set<Object> found = new HashSet<Object>();
    List<LogicalPlan> plans = new ArrayList<LogicalPlan>(ScalaLists.toJava(query.subqueriesAll()));
    plans.add(query);
    for (LogicalPlan plan : plans) {
      for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) {
        for (Attribute column : ScalaLists.toJava(leaf.output())) if (!found.add(column.exprId())) return true;
      }
    }
    return false;
  }
}
