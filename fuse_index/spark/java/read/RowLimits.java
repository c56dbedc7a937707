package fuse_index.spark.java.read;

import fuse_index.spark.java.rpc.*;
import java.util.*;
import java.util.concurrent.TimeoutException;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** How much the driver reads by itself where votes leave few rows: beyond, executors are sooner done. */
public class RowLimits {
  private static final String MAX_BYTES = "spark.fuse.index.rows.maxBytes";
  private static final String DEFAULT_MAX_BYTES = "1m";
  private static final String MAX_SCAN_BYTES = "spark.fuse.index.rows.maxScanBytes";
  private static final String DEFAULT_MAX_SCAN_BYTES = "16m";
  private static final String DEADLINE = "spark.fuse.index.rows.deadline";
  private static final String DEFAULT_DEADLINE = "3s";
  /** Each zone takes the driver some milliseconds, whatever is in it. */
  private static final int MAX_ZONES = 128;
  /** More than these only where votes left out as many: a condition that leaves out little is likely true on much. */
  private static final int FEW_ZONES = 4;
  /** Or where votes name so few rows that pages are read and not zones. */
  private static final int MAX_NAMED_ROWS = 10000;

  /** The rows are too many, or take too long. */
  public static class Exceeded extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public Exceeded(String message) { super(message); }
  }

  /** Bytes of rows, once they are read and filtered. */
  public final long maxBytes;
  /** Bytes of the rows that match for certain: a job costs no more than to read a quarter of what may be read. */
  public final long maxCertainBytes;
  /** Bytes of the zones that votes left, in files: their columns that conditions look at, and an eighth of the others. */
  public final long maxScanBytes;
  public final long deadlineMilliseconds;

  private RowLimits(long maxBytes, long maxScanBytes, long deadlineMilliseconds) {
    this.maxBytes = maxBytes;
    this.maxCertainBytes = maxBytes / 4L;
    this.maxScanBytes = maxScanBytes;
    this.deadlineMilliseconds = deadlineMilliseconds;
  }

  /** The limits of the session that plans a query on this thread. */
  public static RowLimits ofSession() {
    SQLConf conf = SQLConf.get();
    return new RowLimits(JavaUtils.byteStringAsBytes(conf.getConfString(MAX_BYTES, DEFAULT_MAX_BYTES)),
        JavaUtils.byteStringAsBytes(conf.getConfString(MAX_SCAN_BYTES, DEFAULT_MAX_SCAN_BYTES)),
        JavaUtils.timeStringAsMs(conf.getConfString(DEADLINE, DEFAULT_DEADLINE)));
  }

  /** Rows of this schema, as Python reads them. Raises Exceeded where they are too many, and what goes wrong. */
  public List<InternalRow> rows(String key, String request, StructType schema) throws Exception {
    byte[] reply;
    try {
      reply = (byte[]) PythonCallback.ask(key, request, deadlineMilliseconds);
    } catch (TimeoutException late) {
      throw new Exceeded(String.format(Protocol.LATE_ROWS, new Object[] {Long.valueOf(deadlineMilliseconds)}));
    }
    if (PythonCallback.refusal(reply) != null) throw new Exceeded(PythonCallback.refusal(reply));
    LocalRows rows = new LocalRows(PythonCallback.body(reply));
    if (!rows.readSchema().sameType(schema)) throw new IllegalStateException(rows.readSchema() + " in the place of " + schema);
    return rows.list();
  }

  /** Whether the rows that votes left may be read, with so many bytes in files. */
  public boolean allow(BlockMask votes, long scanBytes) {
    boolean few = votes.zonesRead <= votes.zonesTotal / 2 || votes.namedRows <= MAX_NAMED_ROWS;
    boolean fewZones = votes.zonesRead <= FEW_ZONES || votes.zonesRead <= MAX_ZONES && few;
    return maxBytes > 0L && votes.zonesTotal > 0 && fewZones && scanBytes <= maxScanBytes;
  }
}
