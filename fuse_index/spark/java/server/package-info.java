/** How do sessions that Spark's own servers begin for their clients get to know Python, and when are they over? */
package fuse_index.spark.java.server;
