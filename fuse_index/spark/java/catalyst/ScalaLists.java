package fuse_index.spark.java.catalyst;

import java.util.*;
import scala.collection.immutable.ArraySeq$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Lists of Java as those of Scala, and back. */
public class ScalaLists {
  public static <T> Seq<T> toScala(List<T> items) { return ArraySeq$.MODULE$.unsafeWrapArray(items.toArray()); }

  @SafeVarargs
  @SuppressWarnings("varargs")
  public static <T> Seq<T> of(T... items) { return toScala(Arrays.asList(items)); }

  public static <T> List<T> toJava(scala.collection.Seq<T> items) { return CollectionConverters.asJava(items); }
}
