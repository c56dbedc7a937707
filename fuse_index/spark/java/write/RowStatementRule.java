package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Puts writes that hand their rows to Python in the place of those that Spark would have executors do, with classes that they do
 * not know: the rows which DELETE, UPDATE and MERGE change, and those of overwrites. Where rows go by a condition, it is
 * Catalyst's own.
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
      FuseScan scan = FuseScan.below(node);
      boolean ours = scan != null && scan.snapshot.url.equals(url) && scan.snapshot.id.equals(from) && !scan.asked.metadata().isEmpty();
      return ours && !scan.asked.isRestricted() ? scan.at(scan.snapshot.withHead(to, files)).replaceIn((LogicalPlan) node) : null;
    }
  }

  protected LogicalPlan rewrite(LogicalPlan plan) {
    if (plan instanceof WriteDelta) {
      WriteDelta delta = (WriteDelta) plan;
      boolean ours = delta.write().isDefined() && delta.write().get() instanceof FuseRowOperation.Delta;
      return ours ? changedRows(delta, ((FuseRowOperation.Delta) delta.write().get()).statement) : plan;
    }
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
    return handOver(new FuseWrite(statement, condition), new Project(ScalaLists.toScala(columns), (LogicalPlan) delta.query().transformDown(new FilterScans())), delta.productElement(0));
  }

  private static Expression member(Expression struct, String name) {
    return new GetStructField(struct, ((StructType) struct.dataType()).fieldIndex(name), Option.apply(name));
  }

  /** An append of rows to a table that takes any. `named`: the relation by whose name Spark finds, when it is done, what it has cached. */
  private static LogicalPlan handOver(FuseWrite write, LogicalPlan query, Object named) {
    DataSourceV2Relation table = (DataSourceV2Relation) named;
    LogicalPlan to = DataSourceV2Relation$.MODULE$.create(new ChangedRows(write.statement.table), table.catalog(), table.identifier());
    query.setAnalyzed(); // it is, and optimised; what the optimizer made of it, the analyzer need not understand
    return Versions.append(to, query, write);
  }
}
