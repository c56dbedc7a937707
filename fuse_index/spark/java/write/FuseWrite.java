package fuse_index.spark.java.write;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.sources.InsertableRelation;

/** Rows on their way into a table: Spark hands over their Dataset, which Python runs, since executors know no class of ours. */
public class FuseWrite implements V1Write, InsertableRelation {
  public final RowStatement statement;
  /** On which rows of the table it depends; null: on all, or none. */
  public final Expression condition;
  /** The scans of the query of its rows, by what is said of them. */
  private volatile Map<String, FuseScan> scans = Collections.emptyMap();

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

  /** Told the query of its rows when that is planned, so that Spark's own account says which blocks are read for it. */
  void planned(LogicalPlan query) {
    Map<String, FuseScan> found = new LinkedHashMap<String, FuseScan>();
    if (statement.isOverwrite() && condition != null && !SubqueryExpression.hasSubquery(condition)) {
      FuseScan all = new FuseScan(statement.table.session, new ScanRequest(statement.table.snapshot(), statement.table.schema()));
      found.put("replaces rows of", all.withFilters(Trees.conjuncts(condition)));
    }
    List<LogicalPlan> plans = new ArrayList<LogicalPlan>(ScalaLists.toJava(query.subqueriesAll()));
    plans.add(0, query);
    for (LogicalPlan plan : plans) {
      for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) {
        if (FuseScan.below(leaf) == null) continue;
        String table = "reads " + ((DataSourceV2ScanRelation) leaf).relation().table().name();
        found.put(found.containsKey(table) ? table + " again (" + found.size() + ")" : table, FuseScan.below(leaf));
      }
    }
    scans = found;
  }

  public String description() {
    StringBuilder told = new StringBuilder("fuse " + statement.operation + " " + statement.table.name());
    for (Map.Entry<String, FuseScan> scan : scans.entrySet()) {
      told.append("; ").append((String) scan.getKey()).append(' ').append(((FuseScan) scan.getValue()).reading());
    }
    if (statement.isMerge() && !scans.isEmpty()) told.append(", before the keys of its source are known");
    return told.toString();
  }

  public String toString() { return description(); }
}
