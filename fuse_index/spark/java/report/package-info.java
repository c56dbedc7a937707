/** What did a plan that was executed ask of our tables, and why was it not asked more? */
package fuse_index.spark.java.report;
