package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import java.util.*;

/** Tasks of an Iceberg scan: each reads a piece of a data file, and leaves out what its deletes say. */
public class IcebergTasks {
  private static final String TASK = "org.apache.iceberg.BaseFileScanTask";

  public static void add(Object task, FileVotes votes) throws ReflectiveOperationException {
    if (whole(task) == null) return;
    Object file = Reflection.call(task, "file");
    boolean isWhole = ((Collection<?>) Reflection.call(whole(task), "deletes")).isEmpty();
    votes.add((String) Reflection.call(file, "location"), number(file, "fileSizeInBytes"), -1L, isWhole);
  }

  /** The pieces of a task that may hold an answer: none, some row groups of it, or the task itself. */
  public static List<Object> pieces(Object task, FileVotes votes, boolean mayCut) throws ReflectiveOperationException {
    Object whole = whole(task);
    if (whole == null) return Collections.singletonList(task);
    Object file = Reflection.call(task, "file");
    String path = (String) Reflection.call(file, "location");
    long start = number(task, "start");
    long length = number(task, "length");
    if (votes.leavesOut(path)) {
      votes.skipped(length);
      return Collections.emptyList();
    }
    List<long[]> ranges = mayCut && Reflection.call(file, "splitOffsets") != null ? votes.ranges(path) : Collections.<long[]>emptyList();
    if (ranges.isEmpty()) {
      votes.read(path, length, true);
      return Collections.singletonList(task);
    }
    List<Object> left = new ArrayList<Object>();
    long read = 0L;
    for (Object piece : split(whole)) {
      long first = number(piece, "start");
      if (first < start || first >= start + length || !overlaps(first, number(piece, "length"), ranges)) continue;
      left.add(piece);
      read += number(piece, "length");
    }
    votes.read(path, read, false);
    votes.skipped(length - read);
    return left;
  }

  private static long number(Object object, String name) throws ReflectiveOperationException { return ((Long) Reflection.call(object, name)).longValue(); }

  /** The task of a whole file, which alone can be split; null of a task that is not known. */
  private static Object whole(Object task) throws ReflectiveOperationException {
    String name = task.getClass().getName();
    if (name.equals(TASK)) return task;
    return name.equals(TASK + "$SplitScanTask") ? Reflection.get(task, "fileScanTask") : null;
  }

  /** A file's row groups: the pieces of a size that none is below. */
  private static Iterable<?> split(Object whole) throws ReflectiveOperationException {
    return (Iterable<?>) Reflection.method(whole.getClass(), "split", new Class<?>[] {long.class}).invoke(whole, new Object[] {Long.valueOf(1L)});
  }

  private static boolean overlaps(long first, long bytes, List<long[]> ranges) {
    for (long[] range : ranges) if (range[0] < first + bytes && first < range[0] + range[1]) return true;
    return false;
  }
}
