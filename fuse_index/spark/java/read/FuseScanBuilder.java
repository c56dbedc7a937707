package fuse_index.spark.java.read;

import fuse_index.spark.java.files.*;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;

/** Chooses the columns that a scan reads. Its filters come later, by PruneRule, as Catalyst's own expressions. */
public class FuseScanBuilder implements SupportsPushDownRequiredColumns {
  private final SparkSession session;
  private final TableSnapshot snapshot;
  private StructType columns;

  public FuseScanBuilder(SparkSession session, TableSnapshot snapshot) {
    this.session = session;
    this.snapshot = snapshot;
    this.columns = snapshot.schema;
  }

  public void pruneColumns(StructType required) { columns = snapshot.readSchema(required); }

  public Scan build() { return new FuseScan(session, new ScanRequest(snapshot, columns)); }
}
