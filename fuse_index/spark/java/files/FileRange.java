package fuse_index.spark.java.files;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction0;

/** Bytes of a file to read. Parquet's reader takes the row groups whose middle lies in them. */
public class FileRange {
  /** The largest first, which Spark packs best. */
  public static class LargestFirst implements Comparator<Object> {
    public int compare(Object one, Object other) { return Long.compare(((FileRange) other).length, ((FileRange) one).length); }
  }

  /** The files that one task reads, and what they cost it: their bytes, and the opening of each. */
  public static class Load implements Comparable<Object> {
    private final int number;
    private final List<PartitionedFile> files = new ArrayList<PartitionedFile>();
    private long cost;

    public Load(int number) { this.number = number; }

    private void add(PartitionedFile file, long openCost) {
      files.add(file);
      cost += file.length() + openCost;
    }

    public int compareTo(Object other) {
      int byCost = Long.compare(cost, ((Load) other).cost);
      return byCost != 0 ? byCost : Integer.compare(number, ((Load) other).number);
    }
  }

  /** An argument of `maxSplitBytes`, which wants to know how much there is to read. */
  public static class Total extends AbstractFunction0<Object> {
    private final long bytes;

    public Total(long bytes) { this.bytes = bytes; }

    public Object apply() { return Long.valueOf(bytes); }
  }

  /**
   * How many times the bytes of a partition those of as many as run at once may be, with what Spark takes the opening of a file for: it
   * is done in a tenth of that, and no sooner by more tasks than run at once.
   */
  private static final int MAX_OPENING = 4;

  private final String path;
  private final long start;
  private final long length;
  private final long fileSize;
  /** Values of columns that the file does not hold itself. */
  private final Object[] constants;

  private FileRange(String path, long start, long length, long fileSize, Object[] constants) {
    this.path = path;
    this.start = start;
    this.length = length;
    this.fileSize = fileSize;
    this.constants = constants;
  }

  /** What is to be read of a file: these bytes, as first and number, or all of it where there are none; and its `constants`. */
  public static List<FileRange> of(FileListing listing, int file, List<long[]> bytes, Object[] constants) {
    String path = listing.path(file);
    long size = listing.fileSize(file);
    List<FileRange> ranges = new ArrayList<FileRange>();
    if (bytes.isEmpty()) ranges.add(new FileRange(path, 0L, size, size, constants));
    for (long[] range : bytes) ranges.add(new FileRange(path, range[0], range[1], size, constants));
    return ranges;
  }

  public long length() { return length; }

  /**
   * Partitions over these ranges: long ones are cut, short ones go together, as Spark does it with files. Spark fills one partition
   * after the other, and what is left makes one more; here the next range is that of whoever has least to do, and as many
   * partitions as run at once, or a multiple of that, are done together.
   */
  public static InputPartition[] partitions(SparkSession session, List<FileRange> ranges, FileMetadata metadata) {
    long openCost = session.sessionState().conf().filesOpenCostInBytes();
    long total = 0L;
    for (FileRange range : ranges) total += range.length + openCost;
    long most = FilePartition.maxSplitBytes(session, new Total(total));
    List<PartitionedFile> files = files(session, ranges, most, metadata);
    if (files.isEmpty()) return new InputPartition[0];
    int byBytes = FilePartition.getFilePartitions(session, ScalaLists.toScala(files), most).length();
    int atOnce = tasksAtOnce(session);
    if (byBytes > atOnce && total / atOnce <= MAX_OPENING * most) {
      FilePartition[] few = balanced(files, atOnce, openCost);
      if (bytes(few[0]) <= session.sessionState().conf().filesMaxPartitionBytes()) return few;
    }
    int rounds = (byBytes + atOnce - 1) / atOnce;
    return balanced(files, byBytes <= atOnce ? byBytes : Math.min(rounds * atOnce, files.size()), openCost);
  }

  /** How many tasks of a scan Spark plans to run at once. */
  public static int tasksAtOnce(SparkSession session) {
    scala.Option<Object> wanted = session.sessionState().conf().filesMinPartitionNum();
    return Math.max(1, wanted.isDefined() ? ((Integer) wanted.get()).intValue() : session.leafNodeDefaultParallelism());
  }

  /** Makes files of ranges, as Spark's reader wants them, the largest first, none of more than so many bytes. */
  public static List<PartitionedFile> files(SparkSession session, List<FileRange> ranges, long most, FileMetadata metadata) {
    List<FileRange> parts = new ArrayList<FileRange>();
    for (FileRange range : ranges) {
      for (long from = 0L; from < range.length; from += most) {
        parts.add(new FileRange(range.path, range.start + from, Math.min(most, range.length - from), range.fileSize, range.constants));
      }
    }
    Collections.sort(parts, new LargestFirst());
    List<PartitionedFile> files = new ArrayList<PartitionedFile>();
    java.util.Map<String, Long> times = Collections.<String, Long>emptyMap();
    if (metadata.asksWhenWritten()) {
      Set<String> paths = new LinkedHashSet<String>();
      for (FileRange part : parts) paths.add(part.path);
      times = FileMetadata.modificationTimes(session.sessionState().newHadoopConf(), paths);
    }
    for (FileRange part : parts) files.add(part.partitionedFile(metadata, (Long) times.get(part.path)));
    return files;
  }

  private static long bytes(FilePartition partition) {
    long bytes = 0L;
    for (PartitionedFile file : partition.files()) bytes += file.length();
    return bytes;
  }

  /** So many partitions over these files, the largest of which come first: of the partitions, too, so that none is begun late. */
  private static FilePartition[] balanced(List<PartitionedFile> files, int count, long openCost) {
    PriorityQueue<Object> loads = new PriorityQueue<Object>();
    for (int i = 0; i < count; i++) loads.add(new Load(i));
    for (PartitionedFile file : files) {
      Load least = (Load) loads.poll();
      least.add(file, openCost);
      loads.add(least);
    }
    FilePartition[] partitions = new FilePartition[count];
    for (int i = count - 1; i >= 0; i--) {
      partitions[i] = new FilePartition(i, (PartitionedFile[]) ((Load) loads.poll()).files.toArray(new PartitionedFile[0]));
    }
    return partitions;
  }

  private PartitionedFile partitionedFile(FileMetadata metadata, Long modified) {
    Map<String, Object> noMetadata = Map$.MODULE$.empty();
    SparkPath file = SparkPath.fromPath(new Path(path));
    return new PartitionedFile(
        metadata.values(file.urlEncoded(), start, length, fileSize, modified, constants), file, start, length, new String[0], 0L, fileSize, noMetadata);
  }
}
