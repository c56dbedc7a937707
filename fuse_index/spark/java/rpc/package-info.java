/** How is Python asked, and what does it send? Requests, mailboxes, rows, and functions whose bodies Python writes. */
package fuse_index.spark.java.rpc;
