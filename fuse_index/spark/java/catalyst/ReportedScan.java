package fuse_index.spark.java.catalyst;

/** A node of an executed plan that tells what its votes left out. */
public interface ReportedScan {
  /** An element of the list of what is reported of a plan. */
  String reportLine();
}
