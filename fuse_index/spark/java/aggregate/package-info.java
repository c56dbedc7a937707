/** Which aggregates do stored states answer? */
package fuse_index.spark.java.aggregate;
