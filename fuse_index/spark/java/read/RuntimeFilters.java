package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What Spark finds out while a query runs, `column IN (keys of a join's other side)` and, in newer versions, `column = (value of
 * a scalar subquery)` and the like, as Catalyst's expressions again.
 */
public class RuntimeFilters {
  public static List<Expression> of(Predicate[] predicates, StructType columns) {
    List<Expression> filters = new ArrayList<Expression>();
    for (Predicate predicate : predicates) {
      Expression filter = predicate.name().equals("IN") ? in(predicate, columns) : comparison(predicate, columns);
      if (filter != null) filters.add(filter);
    }
    return filters;
  }

  /** Tells a scan which of these have more keys than it is told, for whoever explains it. */
  public static void addUntold(Predicate[] predicates, StructType columns, FuseScan scan) {
    for (Predicate predicate : predicates) {
      int count = predicate.children().length - 1;
      Attribute column = predicate.name().equals("IN") && count > Protocol.MAX_KEYS ? column(predicate.children()[0], columns) : null;
      if (column != null) scan.addUntold(column, count);
    }
  }

  /** The predicate, if it is not too long; else null, which prunes nothing. */
  private static Expression in(Predicate predicate, StructType columns) {
    org.apache.spark.sql.connector.expressions.Expression[] children = predicate.children();
    Attribute column = children.length > Protocol.MAX_KEYS + 1 ? null : column(children[0], columns);
    if (column == null) return null;
    List<Expression> keys = new ArrayList<Expression>();
    Set<Object> values = new LinkedHashSet<Object>();
    boolean isOfOneType = true;
    for (int i = 1; i < children.length; i++) {
      if (!(children[i] instanceof LiteralValue)) return null;
      Literal key = literal(children[i]);
      keys.add(key);
      values.add(key.value());
      isOfOneType &= key.value() != null && column.dataType().equals(key.dataType());
    }
    return isOfOneType ? new InSet(column, CollectionConverters.asScala(values).toSet()) : new In(column, ScalaLists.toScala(keys));
  }

  /** The predicate, if it compares a column with a value; else null. */
  private static Expression comparison(Predicate predicate, StructType columns) {
    org.apache.spark.sql.connector.expressions.Expression[] children = predicate.children();
    if (children.length != 2) return null;
    boolean turned = children[0] instanceof LiteralValue;
    Attribute column = column(children[turned ? 1 : 0], columns);
    if (column == null || !(children[turned ? 0 : 1] instanceof LiteralValue)) return null;
    Expression value = literal(children[turned ? 0 : 1]);
    if (!column.dataType().sameType(value.dataType())) return null;
    Expression left = turned ? value : column;
    Expression right = turned ? column : value;
    if (predicate.name().equals("=")) return new EqualTo(left, right);
    if (predicate.name().equals("<=>")) return new EqualNullSafe(left, right);
    if (predicate.name().equals("<")) return new LessThan(left, right);
    if (predicate.name().equals("<=")) return new LessThanOrEqual(left, right);
    if (predicate.name().equals(">")) return new GreaterThan(left, right);
    return predicate.name().equals(">=") ? new GreaterThanOrEqual(left, right) : null;
  }

  private static Attribute column(org.apache.spark.sql.connector.expressions.Expression reference, StructType columns) {
    String[] path = reference instanceof NamedReference ? ((NamedReference) reference).fieldNames() : new String[0];
    if (path.length != 1 || columns.getFieldIndex(path[0]).isEmpty()) return null;
    StructField column = columns.apply(path[0]);
    return new AttributeReference(column.name(), column.dataType(), true, column.metadata(), NamedExpression$.MODULE$.newExprId(), ScalaLists.<String>of());
  }

  private static Literal literal(org.apache.spark.sql.connector.expressions.Expression value) {
    return new Literal(((LiteralValue<?>) value).value(), ((LiteralValue<?>) value).dataType());
  }
}
