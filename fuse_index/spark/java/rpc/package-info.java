/** How is Python asked, and what does it send? Requests, trees of expressions in them, rows, and functions whose bodies Python writes. */
package fuse_index.spark.java.rpc;
