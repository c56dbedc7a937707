/** What Spark's trees of plans and expressions need of us: walks, rewrites, and what differs between its versions. */
package fuse_index.spark.java.catalyst;
