/** How do scans that other connectors have planned ask our indexes? The strategy and the node that take files out, and what goes with them. */
package fuse_index.spark.java.foreign;
