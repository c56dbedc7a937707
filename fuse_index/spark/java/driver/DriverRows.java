package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Map;

/**
 * The rows of a plan that scans one of our tables, with nothing but projections and conditions over the scan. Python reads what
 * votes left, and Spark's own optimizer, which folds such plans over constant rows, does the rest.
 */
public class DriverRows {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  private final RowsPlan plan;
  private final RowLimits limits;
  private final SparkContext context;
  public final Map<String, SQLMetric> metrics;
  private UnsafeRow[] rows;
  /** Why there are none; null where there are, or where nobody has asked yet. */
  private String refusal;

  public DriverRows(RowsPlan plan, RowLimits limits, SparkContext context) {
    this.plan = plan;
    this.limits = limits;
    this.context = context;
    this.metrics = ScanMetrics.ofNode(context);
  }

  /** The rows, read when they are asked for first; null if they could not be had within the limits. */
  public synchronized UnsafeRow[] rows() {
    if (rows != null || refusal != null) return rows;
    try {
      rows = evaluated(plan.scan.rows(limits, plan.leavesCallsToPython));
      ScanMetrics.post(context, metrics, plan.scan.reportDriverMetrics());
    } catch (RowLimits.Exceeded more) {
      refusal = more.getMessage();
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      refusal = "the query was cancelled";
    } catch (Throwable failure) { // a condition may raise, as it will on the executors then
      refusal = failure.toString();
      LOG.warn("executors read rows that the driver could not: " + failure);
    }
    return rows;
  }

  private UnsafeRow[] evaluated(List<InternalRow> read) {
    LocalRelation constant = new LocalRelation(plan.relation.output(), ScalaLists.toScala(read), false, scala.Option.empty());
    LogicalPlan folded = Trees.replace(plan.foldable, plan.relation, constant);
    LogicalPlan before = null;
    while (folded != before && !(folded instanceof LocalRelation)) { // one node at a time, from below
      before = folded;
      folded = ConvertToLocalRelation$.MODULE$.apply(folded);
    }
    if (!(folded instanceof LocalRelation)) throw new IllegalStateException("Spark does not fold " + folded.nodeName());
    List<InternalRow> found = ScalaLists.toJava(((LocalRelation) folded).data());
    DataType[] types = new DataType[plan.foldable.output().length()];
    for (int i = 0; i < types.length; i++) types[i] = ((Expression) plan.foldable.output().apply(i)).dataType();
    UnsafeProjection unsafe = UnsafeProjection$.MODULE$.create(types);
    List<UnsafeRow> copies = new ArrayList<UnsafeRow>();
    for (InternalRow row : found) copies.add(((UnsafeRow) unsafe.apply(row)).copy());
    return (UnsafeRow[]) copies.toArray(new UnsafeRow[0]);
  }

  /** What became of it, for whoever explains a query. */
  public synchronized String state() {
    if (rows != null) return rows.length + " rows on the driver";
    return refusal == null ? "rows on the driver" : "by executors, because " + refusal;
  }
}
