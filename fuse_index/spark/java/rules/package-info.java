/** What are scans told? The rules and the strategy that Spark's optimizer and planner get. */
package fuse_index.spark.java.rules;
