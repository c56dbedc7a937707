/** Which files do connectors of others read, which are known to our indexes, and which columns are which? Parquet's, Delta's and Iceberg's. */
package fuse_index.spark.java.sources;
