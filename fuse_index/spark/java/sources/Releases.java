package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which releases of connectors there are, and which of them were tested: `docs/lakes.md` lists the same. Of any other, files are left
 * out where it still is as it was; where it is not, every file is read.
 */
public class Releases {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final AtomicBoolean TOLD = new AtomicBoolean();
  private static final String[][] TESTED = {
      {"parquet", "4.0.1", "4.1.4", "4.3.0"},
      {"delta", "4.3.1", "4.4.0"},
      {"iceberg", "1.11.0", "1.12.0"},
  };

  /** The release of a connector by its format, Spark's own for Parquet; null where there is none, or it does not say. */
  public static String of(String format) {
    try {
      if (format.equals("parquet")) return org.apache.spark.package$.MODULE$.SPARK_VERSION();
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      if (format.equals("iceberg")) return (String) loader.loadClass("org.apache.iceberg.IcebergBuild").getMethod("version", new Class<?>[0]).invoke(null, new Object[0]);
      Object delta = loader.loadClass("io.delta.package$").getField("MODULE$").get(null);
      return (String) Reflection.call(delta, "VERSION");
    } catch (ReflectiveOperationException missing) {
      return null;
    }
  }

  public static boolean isTested(String format) {
    String release = of(format);
    for (String[] tested : TESTED) if (tested[0].equals(format)) return release != null && Arrays.asList(tested).contains(release);
    return false;
  }

  /** A JSON object: of each connector that is there its release, and the releases that were tested. */
  public static String describe() {
    Json json = new Json().open('{');
    for (String[] tested : TESTED) {
      String release = of(tested[0]);
      if (release == null) continue;
      json.key(tested[0]).open('{').key("release").text(release).key("tested").texts((String[]) Arrays.copyOfRange(tested, 1, tested.length)).close('}');
    }
    return json.close('}').toString();
  }

  /** Says once in a process which connectors may ask indexes. */
  public static void tell() {
    if (!TOLD.compareAndSet(false, true)) return;
    for (String[] tested : TESTED) {
      String release = of(tested[0]);
      String name = tested[0].equals("parquet") ? "Parquet by Spark " + release : tested[0] + " " + release;
      if (release == null) continue;
      if (isTested(tested[0])) LOG.info("queries of " + name + ", which is tested, ask the indexes of their sources");
      else LOG.warn("queries of " + name + " ask the indexes of their sources, though it was tested with "
          + String.join(", ", Arrays.asList(tested).subList(1, tested.length)) + " alone: where it is no longer as these are, every file is read");
    }
  }
}
