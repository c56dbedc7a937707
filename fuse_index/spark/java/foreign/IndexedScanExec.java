package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A scan that its own connector has planned and reads, of which votes leave out files, and row groups of others.
 *
 * The scan is a child, so that all rules of Spark and of others see it as it is. One that they have put something else in place of
 * reads everything. Executors do not know this class: written out, it is its child.
 */
public class IndexedScanExec extends SparkPlan implements ReportedScan {
  private static final long serialVersionUID = 1L;

  private final SparkPlan child;
  private final transient ScanPruning pruning;

  public IndexedScanExec(SparkPlan child, ScanPruning pruning) {
    this.child = child;
    this.pruning = pruning;
  }

  public Map<String, SQLMetric> metrics() { return pruning.metrics; }

  public Seq<Attribute> output() { return child.output(); }

  public Partitioning outputPartitioning() { return child.outputPartitioning(); }

  public Seq<SortOrder> outputOrdering() { return child.outputOrdering(); }

  public boolean supportsColumnar() { return child.supportsColumnar(); }

  public boolean supportsRowBased() { return child.supportsRowBased(); }

  public scala.Option<Seq<String>> vectorTypes() { return child.vectorTypes(); }

  /** First the child plans what it reads, once its own subqueries are known; until an action asks for partitions, files can go. */
  public RDD<InternalRow> doExecute() {
    RDD<InternalRow> rows = inUnsafeRows().execute();
    pruning.leaveOut(child);
    return rows;
  }

  /**
   * Rows that any operator takes. A source may give others, and Spark has a projection over each that does; but it takes away one that
   * changes no column, where it does not see such a scan right below.
   */
  private SparkPlan inUnsafeRows() {
    if (!(child instanceof DataSourceV2ScanExecBase) || child.supportsColumnar()) return child;
    return new ProjectExec(ScalaLists.toScala(new ArrayList<NamedExpression>(ScalaLists.toJava(child.output()))), child);
  }

  public RDD<ColumnarBatch> doExecuteColumnar() {
    RDD<ColumnarBatch> batches = child.executeColumnar();
    pruning.leaveOut(child);
    return batches;
  }

  public String reportLine() {
    pruning.leaveOut(child);
    return pruning.reportLine();
  }

  public String nodeName() { return "FuseIndexedScan"; }

  public String simpleString(int maxFields) { return nodeName() + " " + pruning; }

  public String verboseString(int maxFields) { return simpleString(maxFields); }

  /** Canonical are the child and what is asked: by other votes, other rows of the scan are left out. */
  public SparkPlan doCanonicalize() { return new IndexedScanExec((SparkPlan) child.canonicalized(), pruning); }

  public Seq<SparkPlan> children() { return ScalaLists.of(child); }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) { return new IndexedScanExec((SparkPlan) children.apply(0), pruning); }

  public Seq<Object> otherCopyArgs() { return ScalaLists.toScala(Collections.<Object>singletonList(pruning)); }

  public int productArity() { return 1; }

  public Object productElement(int number) { return child; }

  public boolean canEqual(Object other) { return other instanceof IndexedScanExec; }

  public boolean equals(Object other) {
    if (!(other instanceof IndexedScanExec)) return false;
    IndexedScanExec that = (IndexedScanExec) other;
    return child.equals(that.child) && pruning.question.equals(that.pruning.question);
  }

  public int hashCode() { return Objects.hash(new Object[] {child, pruning.question}); }

  /** Not private: Janino would give it another name. */
  protected Object writeReplace() { return child; }
}
