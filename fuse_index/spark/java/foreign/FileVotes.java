package fuse_index.spark.java.foreign;

import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;

/** What votes say of files that a scan is about to read, and what came of it. Each file counts once, in however many pieces it is read. */
public class FileVotes {
  private final SourceIndex index;
  private final BlockMask mask;
  /** The block that a file is, by its path; -1 of one that is not known. */
  private final Map<String, Integer> blocks = new HashMap<String, Integer>();
  private final Set<String> leftOut = new HashSet<String>();
  private final Set<String> inPart = new HashSet<String>();
  private int unknown;
  private long bytesRead;
  private long bytesSkipped;

  public FileVotes(SourceIndex index, BlockMask mask) {
    this.index = index;
    this.mask = mask;
  }

  /** A file that is about to be read. `size` is that of all of it, `modifiedMillis` when it was written as it was listed. */
  public void add(String path, long size, long modifiedMillis) {
    if (blocks.containsKey(path)) return;
    int block = index.block(path, size, modifiedMillis);
    blocks.put(path, Integer.valueOf(block));
    if (block < 0) unknown++;
    else if (!mask.mustRead(block)) leftOut.add(path);
  }

  /**
   * Looks once more at files that may have been written anew since they were listed: Spark remembers listings. In an object store that would
   * be a request a file, and the listing's word is taken.
   */
  public void settle(Configuration hadoop) throws ExecutionException, InterruptedException {
    if (!index.mayChange()) return;
    List<String> paths = new ArrayList<String>();
    List<Callable<Object>> checks = new ArrayList<Callable<Object>>();
    for (String path : leftOut) {
      if (!path.startsWith("file:") && !path.startsWith("hdfs:")) continue;
      int block = ((Integer) blocks.get(path)).intValue();
      FileListing known = index.snapshot.listing;
      paths.add(path);
      checks.add(new BlockSeals.ForeignCheck(hadoop, path, known.fileSize(block), known.modified(block), known.etag(block)));
    }
    List<Object> problems = StoreRequests.answers(checks);
    for (int i = 0; i < problems.size(); i++) if (problems.get(i) != null) leftOut.remove(paths.get(i));
  }

  public boolean leavesOut(String path) { return leftOut.contains(path); }

  /** Ranges of a file outside of which no row can match, each its first byte and number of bytes; none where that is not known. */
  public List<long[]> ranges(String path) {
    int block = ((Integer) blocks.get(path)).intValue();
    return block < 0 || !mask.mustRead(block) ? Collections.<long[]>emptyList() : mask.ranges(block);
  }

  public void read(String path, long bytes, boolean whole) {
    bytesRead += bytes;
    if (!whole) inPart.add(path);
  }

  public void skipped(long bytes) { bytesSkipped += bytes; }

  public int files() { return blocks.size(); }

  public int filesLeftOut() { return leftOut.size(); }

  public int filesUnknown() { return unknown; }

  public int filesInPart() { return inPart.size(); }

  public long bytesRead() { return bytesRead; }

  public long bytesSkipped() { return bytesSkipped; }

  public String toString() {
    String text = filesLeftOut() + " of " + files() + " files left out";
    if (!inPart.isEmpty()) text += ", " + inPart.size() + " read in part";
    return unknown == 0 ? text : text + ", " + unknown + " not known";
  }
}
