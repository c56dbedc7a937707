package org.apache.spark.sql.connector.catalog;

/** What Spark has since 4.3, for those before it: the first class of this name that is found is the one that counts. */
public interface SupportsSchemaEvolution extends Table {
  boolean supportsColumnChange(TableChange.ColumnChange change);
}
