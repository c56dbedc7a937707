package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;

/** How much there is to read of what votes left, for Spark, for the driver, and for joins that might have it wait. */
public class ScanCost {
  /** A zone has about so many pages, of which the one is read that has the row that is sought. */
  private static final double PAGES_OF_ZONE = 8.0;

  private final ScanRequest asked;
  private final BlockMask votes;
  public final int blockCount;
  /** Bytes of zones, of all columns. */
  public final long zoneBytes;
  /** The rows of the blocks that are read; of one that is read in part as many as it has bytes of it. */
  public final long rows;
  /** Files without a seal are others', of which only Spark's reader is known to read what Spark does. */
  private final boolean allSealed;

  public ScanCost(ScanRequest asked, BlockMask votes) {
    FileListing listing = asked.snapshot.listing;
    List<Integer> blocks = asked.blocks(votes);
    long allBytes = 0L;
    double allRows = 0.0;
    boolean sealed = true;
    for (Integer block : blocks) {
      int file = block.intValue();
      long bytes = 0L;
      for (long[] range : votes.ranges(file)) bytes += range[1];
      double share = bytes == 0L ? 1.0 : Math.min(1.0, (double) bytes / listing.fileSize(file));
      allBytes += bytes == 0L ? listing.fileSize(file) : bytes;
      allRows += listing.rows(file) * share;
      sealed &= listing.seal(file) != 0L;
    }
    this.asked = asked;
    this.votes = votes;
    this.blockCount = blocks.size();
    this.zoneBytes = allBytes;
    this.rows = Math.round(allRows);
    this.allSealed = sealed;
  }

  /** Bytes of the columns that are read. */
  public long bytes() { return bytesOf(asked.columns.defaultSize()); }

  /** Bytes, with what Spark takes the opening of a file for. */
  public long bytesWithOpening() { return bytes() + blockCount * SQLConf.get().filesOpenCostInBytes(); }

  /** What the driver reads: of a zone's pages one; all of columns of conditions, unless votes name rows. */
  public long driverBytes() {
    double pages = Math.min(1.0, Math.max(1.0, votes.namedRows / Math.max(1.0, votes.zonesRead)) / PAGES_OF_ZONE);
    if (pages < 1.0) return (long) (bytes() * pages);
    Set<String> known = new HashSet<String>();
    for (Expression filter : asked.filters().expressions) for (Attribute column : ScalaLists.toJava(filter.references().toSeq())) known.add(column.name());
    double width = 0.0;
    for (StructField field : asked.columns.fields()) width += field.dataType().defaultSize() / (known.contains(field.name()) ? 1.0 : PAGES_OF_ZONE);
    return bytesOf(width);
  }

  /** Bytes of columns of this width, by Spark's guess, as for its own files; a row has 8 bytes besides. */
  private long bytesOf(double width) { return (long) (zoneBytes * (width + 8.0) / (asked.snapshot.schema.defaultSize() + 8.0)); }

  /** Whether this is so little that the driver reads it by itself. */
  public boolean fits(RowLimits limits) {
    long least = votes.certainRows * 8L * (1 + asked.columns.length());
    return allSealed && votes.refusal() == null && least <= limits.maxCertainBytes && limits.allow(votes, driverBytes());
  }
}
