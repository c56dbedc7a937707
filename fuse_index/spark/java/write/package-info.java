/** What does a statement change? Writes, row-level operations, and what the analyzer and the optimizer make of them. */
package fuse_index.spark.java.write;
