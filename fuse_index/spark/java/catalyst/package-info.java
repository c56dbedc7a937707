/** What Spark's trees of plans and expressions need of us: walks, rewrites, and how they are written as JSON. */
package fuse_index.spark.java.catalyst;
