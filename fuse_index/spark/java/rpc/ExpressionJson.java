package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.ILike;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes Catalyst expressions as typed JSON trees. Never as SQL text: two instants of a DST hour print alike, and so do
 * `_metadata.file_size` and a column `file_size`.
 */
public class ExpressionJson {
  /** Levels of one tree, a chain of ANDs or of ORs being one: Python goes down the trees by calls, of which it has 1,000. */
  public static final int MAX_DEPTH = 100;
  /** Nodes of one tree, and values of its lists: so many take Python about a second. */
  public static final int MAX_PARTS = 250000;
  private static final String SPARK = "org.apache.spark.sql.catalyst.expressions.";

  private static final String COLLATE = " collate ";
  private static final int MAX_TYPES = 1000;
  /** Types as they are written: Spark makes a tree of JSON for each, and a plan has the same few hundreds of times. */
  private static final ConcurrentHashMap<DataType, String> TYPES = new ConcurrentHashMap<DataType, String>();

  private final Set<String> columns;
  private final Json out = new Json();

  private ExpressionJson(Set<String> columns) { this.columns = columns; }

  /** A list of trees, in an order of its own, since Spark's is not stable; `columns` are the names of the table's columns. */
  public static String of(Seq<Expression> filters, Set<String> columns) {
    TreeSet<String> trees = new TreeSet<String>();
    for (Expression filter : ScalaLists.toJava(filters)) trees.add(ofOne(filter, columns));
    return Json.list(trees);
  }

  /** A list of trees, in their order; no attribute in them is said to be ours. */
  public static String ofArguments(Seq<Expression> expressions) { return ofOrdered(expressions, Collections.emptySet()); }

  /** A list of trees, in their order; `columns` are the names of the table's columns. */
  public static String ofOrdered(Seq<Expression> expressions, Set<String> columns) {
    ExpressionJson writer = new ExpressionJson(columns);
    writer.out.open('[');
    for (Expression expression : ScalaLists.toJava(expressions)) writer.writeBounded(expression);
    writer.out.close(']');
    return writer.out.toString();
  }

  /** One tree; `columns` are the names of the table's columns. */
  public static String ofOne(Expression expression, Set<String> columns) {
    ExpressionJson writer = new ExpressionJson(columns);
    writer.writeBounded(expression);
    return writer.out.toString();
  }

  /** The tree; or, in the place of one that is too large to be asked about, a leaf that says so. */
  private void writeBounded(Expression e) {
    String excess = excess(e);
    if (excess == null) writeTree(e);
    else out.open('{').key("node").text("Excess").key("excess").text(excess).key("children").open('[').close(']').close('}');
  }

  /** What of a tree is beyond a bound, in words; null if nothing is. Found without a call for each level. */
  private static String excess(Expression root) {
    ArrayDeque<Expression> nodes = new ArrayDeque<Expression>();
    ArrayDeque<Integer> depths = new ArrayDeque<Integer>();
    nodes.push(root);
    depths.push(Integer.valueOf(1));
    long parts = 0L;
    while (!nodes.isEmpty()) {
      Expression e = (Expression) nodes.pop();
      int depth = ((Integer) depths.pop()).intValue();
      parts += e instanceof InSet ? 1L + ((InSet) e).hset().size() : 1L;
      if (depth > MAX_DEPTH) return String.format("a condition nested more than %d levels deep", new Object[] {Integer.valueOf(MAX_DEPTH)});
      if (parts > MAX_PARTS) return String.format("a condition of more than %,d terms and values", new Object[] {Integer.valueOf(MAX_PARTS)});
      for (Expression child : ScalaLists.toJava(e.children())) {
        nodes.push(child);
        depths.push(Integer.valueOf(isChain(e) && child.getClass() == e.getClass() ? depth : depth + 1));
      }
    }
    return null;
  }

  private static boolean isChain(Expression e) { return e instanceof And || e instanceof Or; }

  /** The parts of a chain of ANDs, or of ORs, from left to right, however deep Spark nests them; of another node its children. */
  private static List<Expression> parts(Expression e) {
    if (!isChain(e)) return ScalaLists.toJava(e.children());
    List<Expression> parts = new ArrayList<Expression>();
    ArrayDeque<Expression> waiting = new ArrayDeque<Expression>();
    waiting.push(e);
    while (!waiting.isEmpty()) {
      Expression next = (Expression) waiting.pop();
      if (next.getClass() == e.getClass()) {
        List<Expression> children = ScalaLists.toJava(next.children());
        waiting.push((Expression) children.get(1));
        waiting.push((Expression) children.get(0));
      } else {
        parts.add(next);
      }
    }
    return parts;
  }

  private void writeTree(Expression e) {
    // Our own projection renames fields of a struct by a cast, which changes no value.
    while (e instanceof Cast && DataType.equalsStructurally(((Cast) e).child().dataType(), e.dataType(), true)) e = ((Cast) e).child();
    out.open('{').key("node").text(nodeName(e.getClass()));
    if (isChain(e) || e.resolved()) writeType(e.dataType());
    writeParameters(e);
    out.key("children").open('[');
    for (Expression part : parts(e)) writeTree(part);
    out.close(']').close('}');
  }

  /** Spark's own classes by their short names; a stranger's EqualTo is not ours to understand. */
  private static String nodeName(Class<?> node) {
    return node.getName().startsWith(SPARK) ? node.getSimpleName() : node.getName();
  }

  /** Whether a column is `_metadata`, or what Spark derives from it: it may be called like one of the table's own. */
  public static boolean isHidden(AttributeReference column) {
    String metadata = column.metadata().json();
    return metadata.indexOf("\"__metadata_col\"") >= 0 || metadata.indexOf("\"__file_source_") >= 0;
  }

  private void writeParameters(Expression e) {
    if (e instanceof Literal) {
      out.key("value");
      if (((Literal) e).value() instanceof ArrayData) writeArray((ArrayData) ((Literal) e).value(), ((ArrayType) e.dataType()).elementType());
      else writeValue(((Literal) e).value());
    } else if (e instanceof AttributeReference) {
      AttributeReference column = (AttributeReference) e;
      boolean isOurs = !isHidden(column) && columns.contains(column.name());
      out.key("name").text(column.name()).key("metadata").json(column.metadata().json()).key("ours").bool(isOurs);
    } else if (e instanceof GetStructField) {
      out.key("ordinal").json(String.valueOf(((GetStructField) e).ordinal()));
    } else if (e instanceof Cast) {
      out.key("evalMode").text(((Cast) e).evalMode().toString());
    } else if (e instanceof BinaryArithmetic) {
      out.key("evalMode").text(((BinaryArithmetic) e).evalMode().toString());
    } else if (e instanceof UnaryMinus) {
      out.key("failOnError").bool(((UnaryMinus) e).failOnError());
    } else if (e instanceof InSet) {
      out.key("values").open('[');
      for (Object value : CollectionConverters.asJava(((InSet) e).hset())) writeValue(value);
      out.close(']');
    } else if (e instanceof Like) {
      out.key("escape").text(String.valueOf(((Like) e).escapeChar()));
    } else if (e instanceof ILike) {
      out.key("escape").text(String.valueOf(((ILike) e).escapeChar()));
    } else if (e instanceof JsonToStructs) {
      out.key("schema").json(((JsonToStructs) e).schema().json()).key("options").open('{');
      Map<String, String> options = CollectionConverters.asJava(((JsonToStructs) e).options());
      for (Map.Entry<String, String> option : options.entrySet()) out.key((String) option.getKey()).text((String) option.getValue());
      out.close('}');
    } else if (e instanceof VariantGet) {
      out.key("failOnError").bool(((VariantGet) e).failOnError());
    } else if (e instanceof StaticInvoke) {
      out.key("object").text(((StaticInvoke) e).staticObject().getName()).key("function").text(((StaticInvoke) e).functionName());
    } else if (e instanceof Invoke) {
      out.key("function").text(((Invoke) e).functionName());
    }
    if (e instanceof TimeZoneAwareExpression) {
      scala.Option<String> zone = ((TimeZoneAwareExpression) e).timeZoneId();
      out.key("zone").text(zone.isEmpty() ? "" : (String) zone.get());
    }
  }

  /** Spark's internal value as text; bytes, and text that is not UTF-8, as {"hex": ...}; null as null. */
  private void writeValue(Object value) {
    if (value == null) out.json("null");
    else if (value instanceof byte[]) writeHex((byte[]) value);
    else if (value instanceof UTF8String && !((UTF8String) value).isValid()) writeHex(((UTF8String) value).getBytes());
    else if (value instanceof UTF8String || value instanceof Number || value instanceof Boolean || value instanceof Decimal) out.text(value.toString());
    else out.open('{').key("unsupported").text(value.getClass().getName()).close('}');
  }

  private void writeArray(ArrayData values, DataType type) {
    out.open('[');
    for (int i = 0; i < values.numElements(); i++) writeValue(values.isNullAt(i) ? null : values.get(i, type));
    out.close(']');
  }

  /** JSON says "string" of every string type, whatever its collation: say what only SQL says, which nobody takes for a plain type. */
  private void writeType(DataType type) {
    String known = (String) TYPES.get(type);
    if (known == null) {
      String sql = type.catalogString();
      if (sql.indexOf(COLLATE) >= 0) sql = sql.replaceAll(" collate UTF8_BINARY(?!_)", ""); // by bytes, as without one
      known = sql.indexOf(COLLATE) >= 0 ? new Json().text(sql).toString() : type.json();
      if (TYPES.size() >= MAX_TYPES) TYPES.clear();
      TYPES.put(type, known);
    }
    out.key("type").json(known);
  }

  private void writeHex(byte[] bytes) {
    StringBuilder digits = new StringBuilder();
    for (int i = 0; i < bytes.length; i++) {
      digits.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
    }
    out.open('{').key("hex").text(digits.toString()).close('}');
  }
}
