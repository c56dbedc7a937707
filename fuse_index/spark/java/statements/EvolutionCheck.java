package fuse_index.spark.java.statements;

import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.write.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Refuses MERGE WITH SCHEMA EVOLUTION before 4.1, where Spark reads the words and leaves out the columns that a table lacks: of all
 * that is asked while a statement is analysed, StatementRule alone sees them.
 */
final class EvolutionCheck {
  private EvolutionCheck() {}

  static void check(MergeIntoTable merge, FuseTable table) {
    if (merge.withSchemaEvolution() && merge.sourceTable().resolved()) check(table, merge.sourceTable().schema());
  }

  private static void check(FuseTable table, StructType source) {
    List<String> others = new ArrayList<String>();
    for (StructField column : source.fields()) if (!has(table.schema(), column)) others.add(column.name());
    if (others.isEmpty()) return;
    throw StatementError.invalidInput("this Spark knows the words WITH SCHEMA EVOLUTION alone, 4.1 is the first to do it, and "
        + table.name() + " has not these columns of the source, or of another type: " + String.join(", ", others)
        + ". Add or widen them by ALTER TABLE before, or say fuse_index.spark.merge(…, merge_schema=True)");
  }

  private static boolean has(StructType table, StructField column) {
    for (StructField known : table.fields()) {
      if (known.name().equalsIgnoreCase(column.name())) return Cast.canUpCast(column.dataType().asNullable(), known.dataType().asNullable());
    }
    return false;
  }
}
