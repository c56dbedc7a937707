/** What is a scan asked, what do votes leave of it, and what does that cost? The scan of DataSource V2. */
package fuse_index.spark.java.read;
