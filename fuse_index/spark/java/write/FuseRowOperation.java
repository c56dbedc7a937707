package fuse_index.spark.java.write;

import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE or MERGE as Spark resolves them: a query that gives each row which changes, with where it lies, by `_metadata`.
 * ChangedRowsRule hands that query to Python.
 */
public class FuseRowOperation implements RowLevelOperationBuilder, SupportsDelta {
  /** Spark asks for one, and never comes to write by it. */
  public static class Delta implements DeltaWriteBuilder, DeltaWrite {
    public DeltaWrite build() { return this; }
  }

  /**
   * A scan that no filter reaches while a query runs: since 4.1 Spark would make one of the condition, over all columns, by reading
   * the table a second time, and it fails where only some fields of a struct are read. A query of its own, as `RowStatementRule`
   * makes one, has the keys of joins reach it.
   */
  public static class UnfilteredScan extends FuseScan {
    private final SparkSession session;

    public UnfilteredScan(SparkSession session, FuseScan scan) {
      super(session, new ScanRequest(scan.snapshot, scan.readSchema()));
      this.session = session;
    }

    public NamedReference[] filterAttributes() { return new NamedReference[0]; }

    public FuseScan filtered() { return new FuseScan(session, new ScanRequest(snapshot, readSchema())); }
  }

  public static class UnfilteredScanBuilder extends FuseScanBuilder {
    private final SparkSession session;

    public UnfilteredScanBuilder(SparkSession session, TableSnapshot snapshot) {
      super(session, snapshot);
      this.session = session;
    }

    public Scan build() { return new UnfilteredScan(session, (FuseScan) super.build()); }
  }

  public final RowStatement statement;
  private final RowLevelOperation.Command command;

  public FuseRowOperation(RowStatement statement, RowLevelOperation.Command command) {
    this.statement = statement;
    this.command = command;
  }

  /** The operation of a table in which rows change; null of any other table. */
  public static FuseRowOperation of(Object table) {
    Object operation = table instanceof RowLevelOperationTable ? ((RowLevelOperationTable) table).operation() : null;
    return operation instanceof FuseRowOperation ? (FuseRowOperation) operation : null;
  }

  /** Gives the operation on another version of the table. */
  public FuseRowOperation at(TableSnapshot snapshot) { return new FuseRowOperation(statement.at(snapshot), command); }

  /** The table as the query of the rows reads it. */
  public RowLevelOperationTable table() { return new RowLevelOperationTable(statement.table, this); }

  public RowLevelOperation build() { return this; }

  public RowLevelOperation.Command command() { return command; }

  public String description() { return "fuse " + statement.operation; }

  public NamedReference[] rowId() { return new NamedReference[] {Expressions.column(FileMetadata.COLUMN)}; }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new UnfilteredScanBuilder(statement.table.session, statement.table.snapshot());
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new Delta(); }
}
