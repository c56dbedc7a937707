package fuse_index.spark.java.driver;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;
import scala.reflect.ClassTag;

/**
 * Rows that the driver has read by itself, without a job; or, where it could not, those of its child, which executors read.
 *
 * One partition in either case, so that an aggregate or a sort above needs no exchange. Executors do not know this class: written
 * out, it is its child.
 */
public class FuseRowsExec extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final SparkPlan child;
  private final transient DriverRows source;

  public FuseRowsExec(SparkPlan child, DriverRows source) {
    this.child = child;
    this.source = source;
  }

  public DriverRows source() { return source; }

  public Map<String, SQLMetric> metrics() { return source.metrics; }

  public Seq<Attribute> output() { return child.output(); }

  public Partitioning outputPartitioning() { return SinglePartition$.MODULE$; }

  public RDD<InternalRow> doExecute() {
    UnsafeRow[] rows = source.rows();
    if (rows != null) return parallelize(rows);
    RDD<InternalRow> read = child.execute();
    if (read.getNumPartitions() == 0) return parallelize(new UnsafeRow[0]);
    return read.coalesce(1, false, scala.Option.empty(), null);
  }

  private RDD<InternalRow> parallelize(UnsafeRow[] rows) {
    ClassTag<InternalRow> tag = ClassTag$.MODULE$.apply(InternalRow.class);
    List<InternalRow> list = new ArrayList<InternalRow>(Arrays.asList(rows));
    return sparkContext().parallelize(ScalaLists.toScala(list), 1, tag);
  }

  public InternalRow[] executeCollect() { return executeTake(Integer.MAX_VALUE); }

  public InternalRow[] executeTake(int count) {
    UnsafeRow[] rows = source.rows();
    if (rows == null) return count == Integer.MAX_VALUE ? super.executeCollect() : super.executeTake(count);
    return (InternalRow[]) Arrays.copyOfRange(rows, 0, Math.min(Math.max(count, 0), rows.length), InternalRow[].class);
  }

  public InternalRow[] executeTail(int count) {
    UnsafeRow[] rows = source.rows();
    if (rows == null) return super.executeTail(count);
    return (InternalRow[]) Arrays.copyOfRange(rows, Math.max(rows.length - Math.max(count, 0), 0), rows.length, InternalRow[].class);
  }

  /** For broadcasts. */
  public Tuple2<Object, scala.collection.Iterator<InternalRow>> executeCollectIterator() {
    UnsafeRow[] rows = source.rows();
    if (rows == null) return super.executeCollectIterator();
    List<InternalRow> list = new ArrayList<InternalRow>(Arrays.asList(rows));
    return new Tuple2<Object, scala.collection.Iterator<InternalRow>>(Long.valueOf(rows.length), ScalaLists.toScala(list).iterator());
  }

  public scala.collection.Iterator<InternalRow> executeToIterator() {
    return source.rows() == null ? super.executeToIterator() : (scala.collection.Iterator<InternalRow>) executeCollectIterator()._2();
  }

  public String nodeName() { return "FuseRows"; }

  public String simpleString(int maxFields) { return "FuseRows " + source.state(); }

  public String verboseString(int maxFields) { return simpleString(maxFields); }

  /** Canonical is the child alone, which gives the same rows. */
  public SparkPlan doCanonicalize() { return (SparkPlan) child.canonicalized(); }

  public Seq<SparkPlan> children() { return ScalaLists.of(child); }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) { return new FuseRowsExec((SparkPlan) children.apply(0), source); }

  public Seq<Object> otherCopyArgs() { return ScalaLists.toScala(Collections.<Object>singletonList(source)); }

  public int productArity() { return 1; }

  public Object productElement(int number) { return child; }

  public boolean canEqual(Object other) { return other instanceof FuseRowsExec; }

  public boolean equals(Object other) { return other instanceof FuseRowsExec && child.equals(((FuseRowsExec) other).child); }

  public int hashCode() { return child.hashCode(); }

  /** Not private: Janino would give it another name. */
  protected Object writeReplace() { return child; }
}
