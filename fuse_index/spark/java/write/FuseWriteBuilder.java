package fuse_index.spark.java.write;

import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** What becomes of the rows that are there: they stay, unless Spark says otherwise. */
public class FuseWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final RowStatement append;
  /** What becomes of the rows that are there. */
  private String operation = Protocol.APPEND;

  public FuseWriteBuilder(RowStatement append) { this.append = append; }

  public WriteBuilder truncate() { return replacing(Protocol.OVERWRITE); }

  /** The statement's own condition says which rows go, and RowStatementRule finds it: these predicates know less. */
  public WriteBuilder overwrite(Predicate[] predicates) { return replacing(Protocol.OVERWRITE); }

  /** In a table without partitions all rows are of one. */
  public WriteBuilder overwriteDynamicPartitions() { return replacing(Protocol.OVERWRITE_PARTITIONS); }

  private WriteBuilder replacing(String rows) {
    operation = rows;
    return this;
  }

  public Write build() { return new FuseWrite(operation.equals(Protocol.APPEND) ? append : append.as(operation), null); }
}
