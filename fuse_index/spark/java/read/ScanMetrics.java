package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What votes left of a table's files, and what they left out, as Spark's UI shows it beside a scan.
 *
 * The UI adds metrics up by a class that it finds by name, and ours are on no class path: so it is one of Spark's own, which knows
 * sizes. How many blocks and zones are read stands in the scan's description.
 */
public class ScanMetrics {
  public static final String READ = "fuseBytesRead";
  public static final String SKIPPED = "fuseBytesSkipped";
  /** How many files are read, were left out, and are not known, of a node over somebody else's scan. */
  public static final String FILES_READ = "fuseFilesRead";
  public static final String FILES_LEFT_OUT = "fuseFilesLeftOut";
  public static final String FILES_UNKNOWN = "fuseFilesUnknown";
  private static final String EXECUTION = "spark.sql.execution.id";

  /** A value that the driver knows before there are tasks. */
  public static class Measured implements CustomTaskMetric {
    private final String name;
    private final long value;

    public Measured(String name, long value) {
      this.name = name;
      this.value = value;
    }

    public String name() { return name; }

    public long value() { return value; }
  }

  public static CustomMetric[] supported() {
    return new CustomMetric[] {
      new PythonCustomMetric(READ, "size of zones to read"), new PythonCustomMetric(SKIPPED, "size of zones that indexes and statistics left out")
    };
  }

  /** Measures how many of `all` bytes of a table's files are in zones that are read. */
  public static CustomTaskMetric[] measured(long read, long all) {
    return new CustomTaskMetric[] {new Measured(READ, read), new Measured(SKIPPED, all - read)};
  }

  /** Makes the metrics of a node of a plan that is no scan of Spark's. */
  public static Map<String, SQLMetric> ofNode(SparkContext context) { return toScala(sizes(context)); }

  /** Makes those of a node over somebody else's scan, of which votes leave out files. */
  public static Map<String, SQLMetric> ofFiles(SparkContext context) {
    HashMap<String, SQLMetric> metrics = sizes(context);
    metrics.put(FILES_READ, SQLMetrics$.MODULE$.createMetric(context, "number of files to read"));
    metrics.put(FILES_LEFT_OUT, SQLMetrics$.MODULE$.createMetric(context, "number of files that indexes and statistics left out"));
    metrics.put(FILES_UNKNOWN, SQLMetrics$.MODULE$.createMetric(context, "number of files that no index knows"));
    return toScala(metrics);
  }

  private static HashMap<String, SQLMetric> sizes(SparkContext context) {
    HashMap<String, SQLMetric> metrics = new HashMap<String, SQLMetric>();
    for (CustomMetric metric : supported()) {
      long unset = SQLMetrics$.MODULE$.createSizeMetric$default$3();
      metrics.put(metric.name(), SQLMetrics$.MODULE$.createSizeMetric(context, metric.description(), unset));
    }
    return metrics;
  }

  private static Map<String, SQLMetric> toScala(HashMap<String, SQLMetric> metrics) {
    return (Map<String, SQLMetric>) Map$.MODULE$.from(CollectionConverters.asScala(metrics));
  }

  /** Tells the UI these values of a node's metrics, for the query that this thread executes. */
  public static void post(SparkContext context, Map<String, SQLMetric> metrics, CustomTaskMetric[] values) {
    SQLMetric[] sizes = new SQLMetric[values.length];
    for (int i = 0; i < values.length; i++) {
      sizes[i] = (SQLMetric) metrics.apply(values[i].name());
      sizes[i].set(values[i].value());
    }
    SQLMetrics$.MODULE$.postDriverMetricUpdates(context, context.getLocalProperty(EXECUTION), ScalaLists.toScala(Arrays.asList(sizes)));
  }
}
