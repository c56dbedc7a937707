/** Which tables, namespaces and procedures have names? The catalogue of a session, and tables by name. */
package fuse_index.spark.java.catalog;
