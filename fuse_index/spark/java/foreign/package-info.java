/** Which files of somebody else's scan can hold an answer? Scans that Parquet's, Delta's and Iceberg's own connectors have planned. */
package fuse_index.spark.java.foreign;
