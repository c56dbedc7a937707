package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.util.Collections;
import org.apache.spark.ErrorClassesJsonReader;
import org.apache.spark.ErrorInfo;
import org.apache.spark.SparkThrowableHelper;
import scala.collection.immutable.Map;

/** Conditions of ours in Spark's list of all that there are: a handler of a script names what is in that list alone. */
public final class ErrorConditions {
  /** What was added last: each session of a server asks for the same. */
  private static String added;

  private ErrorConditions() {}

  /** The condition of a code; that of any words, where this Spark has taken none of ours into its list. */
  public static String of(String code) {
    String condition = StatementError.PREFIX + code;
    return SparkThrowableHelper.isValidErrorClass(condition) ? condition : StatementError.ANY_WORDS;
  }

  /** Adds conditions, as JSON in the form of Spark's own list: the list is read from files, and kept in a field. */
  public static synchronized void add(String conditions) throws IOException, ReflectiveOperationException {
    if (conditions.equals(added)) return;
    Path file = Files.createTempFile("conditions", ".json", new FileAttribute<?>[0]);
    Map<String, ErrorInfo> ours;
    try {
      Files.write(file, conditions.getBytes(StandardCharsets.UTF_8), new OpenOption[0]);
      ours = new ErrorClassesJsonReader(ScalaLists.toScala(Collections.singletonList(file.toUri().toURL()))).errorInfoMap();
    } finally {
      Files.delete(file);
    }
    ErrorClassesJsonReader all = SparkThrowableHelper.errorReader();
    Field list = ErrorClassesJsonReader.class.getDeclaredField("errorInfoMap");
    list.setAccessible(true);
    list.set(all, all.errorInfoMap().$plus$plus(ours));
    added = conditions;
  }
}
