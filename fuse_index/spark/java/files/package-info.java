/** Which files does a version of a table have, and how does Spark's own reader read them? */
package fuse_index.spark.java.files;
