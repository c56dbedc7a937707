/** Which rows does the driver read by itself, and which keys are known by the time that a scan is planned? */
package fuse_index.spark.java.driver;
