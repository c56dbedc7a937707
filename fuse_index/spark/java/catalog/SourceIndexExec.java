package fuse_index.spark.java.catalog;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;

/** A statement on an index of somebody else's table, which Python does when it is executed. It has no rows. */
public class SourceIndexExec extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final transient CatalogClient client;
  private final transient Json request;

  /** `request` is an object, still open. */
  public SourceIndexExec(CatalogClient client, Json request) {
    this.client = client;
    this.request = request;
  }

  public InternalRow[] executeCollect() {
    client.ask(request);
    return new InternalRow[0];
  }

  public RDD<InternalRow> doExecute() {
    executeCollect();
    return sparkContext().emptyRDD(ClassTag$.MODULE$.apply(InternalRow.class));
  }

  public Seq<Attribute> output() { return ScalaLists.<Attribute>of(); }

  public Seq<SparkPlan> children() { return ScalaLists.<SparkPlan>of(); }

  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) { return this; }

  public String nodeName() { return "FuseSourceIndex"; }

  public Seq<Object> otherCopyArgs() { return ScalaLists.toScala(Arrays.asList(new Object[] {client, request})); }

  public int productArity() { return 0; }

  public Object productElement(int number) { throw new IndexOutOfBoundsException(String.valueOf(number)); }

  public boolean canEqual(Object other) { return other == this; }

  public boolean equals(Object other) { return other == this; }

  public int hashCode() { return System.identityHashCode(this); }
}
