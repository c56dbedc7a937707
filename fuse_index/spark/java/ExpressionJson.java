import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.ILike;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;

/**
 * Filters as typed JSON trees. Never as SQL text: two instants of a DST hour print alike, and so do
 * `_metadata.file_size` and a column `file_size`.
 */
public class ExpressionJson {
  private static final String SPARK = "org.apache.spark.sql.catalyst.expressions.";

  private final Set columns;
  private final StringBuilder out = new StringBuilder();

  private ExpressionJson(Set columns) { this.columns = columns; }

  /** A list of trees, in an order of its own, since Spark's is not stable; `columns` are the names of the table's columns. */
  public static String of(Seq filters, Set columns) {
    TreeSet found = new TreeSet();
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) {
      ExpressionJson trees = new ExpressionJson(columns);
      trees.tree((Expression) each.next());
      found.add(trees.out.toString());
    }
    return "[" + String.join(",", found) + "]";
  }

  /** A list of trees, in their order; no attribute in them is said to be ours. */
  public static String listed(Seq expressions) { return inOrder(expressions, Collections.emptySet()); }

  /** A list of trees, in their order; `columns` are the names of the table's columns. */
  public static String inOrder(Seq expressions, Set columns) {
    ExpressionJson trees = new ExpressionJson(columns);
    trees.list(expressions);
    return trees.out.toString();
  }

  public static String quoted(String text) {
    ExpressionJson trees = new ExpressionJson(null);
    trees.text(text);
    return trees.out.toString();
  }

  private void list(Seq expressions) {
    out.append('[');
    scala.collection.Iterator each = expressions.iterator();
    for (int i = 0; each.hasNext(); i++) {
      if (i > 0) out.append(',');
      tree((Expression) each.next());
    }
    out.append(']');
  }

  private void tree(Expression e) {
    // Our own projection renames fields of a struct by a cast, which changes no value.
    while (e instanceof Cast && DataType.equalsStructurally(((Cast) e).child().dataType(), e.dataType(), true)) e = ((Cast) e).child();
    out.append("{\"node\":");
    text(name(e.getClass()));
    if (e.resolved()) {
      out.append(",\"type\":");
      type(e.dataType());
    }
    parameters(e);
    out.append(",\"children\":");
    list(e.children());
    out.append('}');
  }

  /** Spark's own classes by their short names; a stranger's EqualTo is not ours to understand. */
  private static String name(Class node) {
    return node.getName().startsWith(SPARK) ? node.getSimpleName() : node.getName();
  }

  private void parameters(Expression e) {
    if (e instanceof Literal) {
      out.append(",\"value\":");
      value(((Literal) e).value());
    } else if (e instanceof AttributeReference) {
      AttributeReference column = (AttributeReference) e;
      String metadata = column.metadata().json();
      // Hidden columns (`_metadata`, and what Spark derives from it) may be called like the table's own.
      boolean hidden = metadata.indexOf("\"__metadata_col\"") >= 0 || metadata.indexOf("\"__file_source_") >= 0;
      parameter("name", column.name());
      out.append(",\"metadata\":").append(metadata).append(",\"ours\":").append(!hidden && columns.contains(column.name()));
    } else if (e instanceof GetStructField) {
      out.append(",\"ordinal\":").append(((GetStructField) e).ordinal());
    } else if (e instanceof Cast) {
      parameter("evalMode", ((Cast) e).evalMode().toString());
    } else if (e instanceof InSet) {
      values(((InSet) e).hset());
    } else if (e instanceof Like) {
      parameter("escape", String.valueOf(((Like) e).escapeChar()));
    } else if (e instanceof ILike) {
      parameter("escape", String.valueOf(((ILike) e).escapeChar()));
    } else if (e instanceof JsonToStructs) {
      out.append(",\"schema\":").append(((JsonToStructs) e).schema().json()).append(",\"options\":");
      options(scala.jdk.javaapi.CollectionConverters.asJava(((JsonToStructs) e).options()));
    } else if (e instanceof VariantGet) {
      out.append(",\"failOnError\":").append(((VariantGet) e).failOnError());
    } else if (e instanceof StaticInvoke) {
      parameter("object", ((StaticInvoke) e).staticObject().getName());
      parameter("function", ((StaticInvoke) e).functionName());
    } else if (e instanceof Invoke) {
      parameter("function", ((Invoke) e).functionName());
    }
    if (e instanceof TimeZoneAwareExpression) {
      scala.Option zone = ((TimeZoneAwareExpression) e).timeZoneId();
      parameter("zone", zone.isEmpty() ? "" : zone.get().toString());
    }
  }

  private void parameter(String name, String value) {
    out.append(",\"").append(name).append("\":");
    text(value);
  }

  private void values(scala.collection.Set members) {
    out.append(",\"values\":[");
    scala.collection.Iterator each = members.iterator();
    for (int i = 0; each.hasNext(); i++) {
      if (i > 0) out.append(',');
      value(each.next());
    }
    out.append(']');
  }

  private void options(Map options) {
    out.append('{');
    Iterator each = options.entrySet().iterator();
    for (int i = 0; each.hasNext(); i++) {
      Map.Entry option = (Map.Entry) each.next();
      if (i > 0) out.append(',');
      text((String) option.getKey());
      out.append(':');
      text((String) option.getValue());
    }
    out.append('}');
  }

  /** Spark's internal value as text; bytes, and text that is not UTF-8, as {"hex": ...}; null as null. */
  private void value(Object value) {
    if (value == null) out.append("null");
    else if (value instanceof byte[]) hex((byte[]) value);
    else if (value instanceof UTF8String && !((UTF8String) value).isValid()) hex(((UTF8String) value).getBytes());
    else if (value instanceof UTF8String || value instanceof Number || value instanceof Boolean || value instanceof Decimal) text(value.toString());
    else {
      out.append("{\"unsupported\":");
      text(value.getClass().getName());
      out.append('}');
    }
  }

  /** JSON says "string" of every string type, whatever its collation: say what only SQL says, which nobody takes for a plain type. */
  private void type(DataType type) {
    String sql = type.catalogString();
    if (sql.indexOf(" collate ") >= 0) text(sql);
    else out.append(type.json());
  }

  private void hex(byte[] bytes) {
    out.append("{\"hex\":\"");
    for (int i = 0; i < bytes.length; i++) {
      out.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
    }
    out.append("\"}");
  }

  private void text(String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32) out.append("\\u00").append(Character.forDigit(c >> 4, 16)).append(Character.forDigit(c & 15, 16));
      else out.append(c);
    }
    out.append('"');
  }
}
