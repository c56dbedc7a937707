package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;

/** Rows that Python sent as an Arrow stream, for a scan that reads no file. */
public class LocalRows implements LocalScan {
  private final StructType schema;
  private final List<InternalRow> rows = new ArrayList<InternalRow>();

  public LocalRows(byte[] stream) {
    scala.Tuple2<scala.collection.Iterator<InternalRow>, StructType> batches = ArrowConverters$.MODULE$.fromBatchWithSchemaIterator(
        ScalaLists.of(stream).iterator(), null);
    scala.collection.Iterator<InternalRow> each = (scala.collection.Iterator<InternalRow>) batches._1();
    schema = (StructType) batches._2();
    // Written out by a projection: what Spark's columnar rows copy of lists with NULL in them fails.
    UnsafeProjection written = schema == null ? null : UnsafeProjection$.MODULE$.create(schema);
    while (each.hasNext()) rows.add(((UnsafeRow) written.apply((InternalRow) each.next())).copy());
  }

  public StructType readSchema() { return schema; }

  public List<InternalRow> list() { return rows; }

  public InternalRow[] rows() { return (InternalRow[]) rows.toArray(new InternalRow[0]); }
}
