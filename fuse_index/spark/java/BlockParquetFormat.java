import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet, without pushing filters on columns where that loses rows or fails: floats (Arrow leaves NaN out of
 * row-group statistics, and dictionaries tell -0.0 from 0.0), columns of which some files hold a narrower type, and days
 * that one calendar has and another has not.
 */
public class BlockParquetFormat extends ParquetFileFormat {
  /**
   * Filters hold days and times as java.sql has them, whose calendar leaves out ten days of this month: Spark takes one of
   * these for a day that is ten days later, and loses rows. So nothing that names this month is pushed.
   */
  private static final String CALENDARS_CHANGED = "1582-10-";

  private final Set kept;

  /** `kept` are the columns, as lists of names, with filters on which nothing is pushed, nor on anything within them. */
  public BlockParquetFormat(List kept) { this.kept = new HashSet(kept); }

  /** Made by a new ParquetFileFormat: the function travels to executors with its maker, and they do not know our class. */
  public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required,
      Seq filters, Map options, Configuration hadoop) {
    return new ParquetFileFormat().buildReaderWithPartitionValues(session, data, partition, required, pushed(filters), options, hadoop);
  }

  private Seq pushed(Seq filters) {
    List pushed = new ArrayList();
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) {
      Filter filter = (Filter) each.next();
      if (mayPush(filter)) pushed.add(filter);
    }
    return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(pushed.toArray());
  }

  private boolean mayPush(Filter filter) {
    if (filter.toString().contains(CALENDARS_CHANGED)) return false;
    String[][] columns = filter.v2references();
    for (int i = 0; i < columns.length; i++) {
      List path = new ArrayList();
      for (int j = 0; j < columns[i].length; j++) {
        path.add(columns[i][j]);
        if (kept.contains(path)) return false;
      }
    }
    return true;
  }

  public boolean equals(Object other) { return other instanceof BlockParquetFormat && ((BlockParquetFormat) other).kept.equals(kept); }

  public int hashCode() { return kept.hashCode(); }
}
