package fuse_index.spark.java.sources;

import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;

/** What votes say of files that a scan is about to read, and what came of it. Each file counts once, in however many pieces it is read. */
public class FileVotes {
  /** Beyond so many files nobody looks at each once more, to promise its rows. */
  private static final int MAX_PROMISED = 10000;

  private final SourceIndex index;
  private String request;
  private BlockMask mask;
  /** The block that a file is, by its path; -1 of one that is not known. */
  private final Map<String, Integer> blocks = new HashMap<String, Integer>();
  /** Files of which all rows count, as far as their connector knows: none of them was deleted. */
  private final Set<String> whole = new LinkedHashSet<String>();
  private final Set<String> leftOut = new HashSet<String>();
  /** Files of which row groups may be left out. */
  private final Set<String> cut = new HashSet<String>();
  private final Set<String> inPart = new HashSet<String>();
  private int unknown;
  private long bytesRead;
  private long bytesSkipped;

  public FileVotes(SourceIndex index) { this.index = index; }

  /**
   * A file that is about to be read. `size` is that of all of it, `modifiedMillis` when it was written as it was listed; `isWhole`:
   * the connector leaves out none of its rows.
   */
  public void add(String path, long size, long modifiedMillis, boolean isWhole) {
    if (isWhole && !blocks.containsKey(path)) whole.add(path);
    if (!isWhole) whole.remove(path);
    if (!blocks.containsKey(path)) blocks.put(path, Integer.valueOf(index.block(path, size, modifiedMillis)));
  }

  /** Asks which of the files may hold rows; why nobody votes, or null. `hadoop`: null where files never change. */
  public String ask(VoteQuestion question, Configuration hadoop) throws ExecutionException, InterruptedException {
    request = question.text(question.hasTop() ? promised(hadoop) : Collections.<Integer>emptyList());
    mask = index.ask(request);
    if (mask.refusal() != null) return mask.refusal();
    for (Map.Entry<String, Integer> file : blocks.entrySet()) {
      int block = ((Integer) file.getValue()).intValue();
      if (block < 0) unknown++;
      else if (!mask.mustRead(block)) leftOut.add((String) file.getKey());
      else if (!mask.ranges(block).isEmpty()) cut.add((String) file.getKey());
    }
    Set<String> voted = new HashSet<String>(leftOut);
    voted.addAll(cut);
    Set<String> changed = changed(voted, hadoop);
    leftOut.removeAll(changed);
    cut.removeAll(changed);
    return null;
  }

  /** The blocks that known files are, of which all rows count. */
  private List<Integer> promised(Configuration hadoop) throws ExecutionException, InterruptedException {
    List<String> paths = new ArrayList<String>();
    for (String path : whole) if (((Integer) blocks.get(path)).intValue() >= 0) paths.add(path);
    if (paths.size() > MAX_PROMISED) return Collections.<Integer>emptyList();
    paths.removeAll(changed(paths, hadoop));
    List<Integer> promised = new ArrayList<Integer>();
    for (String path : paths) promised.add((Integer) blocks.get(path));
    return promised;
  }

  /**
   * Looks once more at files that may have been written anew since they were listed, and tells which were: Spark remembers listings. In an
   * object store that would be a request a file, and the listing's word is taken.
   */
  private Set<String> changed(Collection<String> files, Configuration hadoop) throws ExecutionException, InterruptedException {
    Set<String> changed = new HashSet<String>();
    if (!index.mayChange()) return changed;
    List<String> paths = new ArrayList<String>();
    List<Callable<Object>> checks = new ArrayList<Callable<Object>>();
    for (String path : files) {
      if (!path.startsWith("file:") && !path.startsWith("hdfs:")) continue;
      int block = ((Integer) blocks.get(path)).intValue();
      FileListing known = index.snapshot.listing;
      paths.add(path);
      checks.add(new BlockSeals.ForeignCheck(hadoop, path, known.fileSize(block), known.modified(block), known.etag(block)));
    }
    List<Object> problems = StoreRequests.answers(checks);
    for (int i = 0; i < problems.size(); i++) if (problems.get(i) != null) changed.add(paths.get(i));
    return changed;
  }

  /** What was asked, by which the reply is remembered. */
  public String request() { return request; }

  public boolean leavesOut(String path) { return leftOut.contains(path); }

  /** Ranges of a file outside of which no row can match, each its first byte and number of bytes; none where that is not known. */
  public List<long[]> ranges(String path) {
    return cut.contains(path) ? mask.ranges(((Integer) blocks.get(path)).intValue()) : Collections.<long[]>emptyList();
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
