package fuse_index.spark.java.sources;

import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;

/** A leaf of a plan that reads a table of somebody else's, through its own connector: one of those that we know by their exact names. */
public abstract class Connector {
  /** Whether an option of a read, or the session, switches votes off. */
  public static final String SWITCH = "spark.fuse.index.transparent";

  protected final LogicalPlan leaf;

  protected Connector(LogicalPlan leaf) { this.leaf = leaf; }

  /** The connector of a leaf; null of one that is not known, or whose rows are not those of a query: a stream's, or a statement's. */
  public static Connector of(LogicalPlan leaf) {
    if (leaf.isStreaming()) return null;
    Connector files = FileConnector.of(leaf);
    return files == null ? IcebergConnector.of(leaf) : files;
  }

  /** What the source's format is called in `attach`. */
  public abstract String format();

  /** Where the source is: any of these. */
  public abstract List<String> locations();

  /** The options of the read. */
  protected abstract Map<String, String> options();

  /** Which columns of the leaf are which of the index. */
  public abstract SourceColumns columns(SourceIndex index) throws ReflectiveOperationException;

  /** Whether a node of a physical plan is what reads the leaf's files. */
  public abstract boolean reads(SparkPlan node);

  /** Tells which files such a node is about to read. */
  public abstract void list(SparkPlan scan, FileVotes files) throws Exception;

  /** Whether it says of each file that it reads whether rows of it are left out: what is known of some releases alone. */
  public abstract boolean tellsDeletedRows();

  /** By what files are looked at once more that may be written anew. */
  public abstract Configuration hadoop();

  /**
   * Takes from what such a node is about to read, which nobody has begun to, the files that votes leave out and, where it `mayCut` files,
   * row groups of others. Unless it `mayRenumber` partitions, those without files stay, and the others have the numbers that they had.
   */
  public abstract void leaveOut(SparkPlan scan, FileVotes votes, boolean mayCut, boolean mayRenumber) throws Exception;

  public boolean isSwitchedOff() {
    for (Map.Entry<String, String> option : options().entrySet()) {
      String name = (String) option.getKey();
      if (name.indexOf('.') > 0 && SWITCH.endsWith("." + name.toLowerCase()) && !Boolean.parseBoolean((String) option.getValue())) return true;
    }
    return false;
  }

  /** The RDD of one of Spark's own classes that another was made from, by one parent after the other; null if there is none. */
  protected static RDD<?> source(RDD<?> rdd, Class<?> type) {
    RDD<?> found = rdd;
    while (!type.isInstance(found)) {
      if (found.dependencies().length() != 1) return null;
      found = ((org.apache.spark.Dependency<?>) found.dependencies().head()).rdd();
    }
    return found;
  }
}
