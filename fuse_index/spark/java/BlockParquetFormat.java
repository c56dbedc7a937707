import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet, without pushing filters on columns where that loses rows or fails: floats (Arrow leaves NaN out of
 * row-group statistics, and dictionaries tell -0.0 from 0.0), columns of which some files hold a narrower type, and days
 * that one calendar has and another has not.
 */
public class BlockParquetFormat extends ParquetFileFormat {
  private static final long serialVersionUID = 1L;

  /**
   * Filters hold days and times as java.sql has them, whose calendar leaves out ten days of this month: Spark takes one of
   * these for a day that is ten days later, and loses rows. So nothing that names this month is pushed.
   */
  private static final String CALENDARS_CHANGED = "1582-10-";

  private final HashSet<List<String>> unpushablePaths;

  /** `unpushablePaths` are the columns, as lists of names, with filters on which nothing is pushed, nor on anything within them. */
  public BlockParquetFormat(List<List<String>> unpushablePaths) { this.unpushablePaths = new HashSet<List<String>>(unpushablePaths); }

  /** Made by a new ParquetFileFormat: the function travels to executors with its maker, and they do not know our class. */
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(SparkSession session, StructType data,
      StructType partition, StructType required, Seq<Filter> filters, Map<String, String> options, Configuration hadoop) {
    return new ParquetFileFormat().buildReaderWithPartitionValues(session, data, partition, required, pushableFilters(filters), options, hadoop);
  }

  private Seq<Filter> pushableFilters(Seq<Filter> filters) {
    List<Filter> pushable = new ArrayList<Filter>();
    for (Filter filter : ScalaLists.toJava(filters)) if (mayPush(filter)) pushable.add(filter);
    return ScalaLists.toScala(pushable);
  }

  private boolean mayPush(Filter filter) {
    if (filter.toString().contains(CALENDARS_CHANGED)) return false;
    for (String[] column : filter.v2references()) {
      List<String> path = new ArrayList<String>();
      for (String name : column) {
        path.add(name);
        if (unpushablePaths.contains(path)) return false;
      }
    }
    return true;
  }

  public boolean equals(Object other) {
    return other instanceof BlockParquetFormat && ((BlockParquetFormat) other).unpushablePaths.equals(unpushablePaths);
  }

  public int hashCode() { return unpushablePaths.hashCode(); }
}
