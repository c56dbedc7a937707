/** What has to be changed in statements before Spark's analyzer is done with them? */
package fuse_index.spark.java.statements;
