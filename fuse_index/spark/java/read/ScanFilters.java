package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.math.Ordering;

/** The conditions of which a scan was told: all of them true of every row that the query needs. */
public class ScanFilters {
  /**
   * Filters hold days and times as java.sql has them, whose calendar leaves out ten days of this month: Spark takes one of
   * these for a day that is ten days later, and loses rows. So nothing that names this month is pushed.
   */
  private static final String CALENDARS_CHANGED = "1582-10-";
  /** Longest list of keys that Parquet's reader is given: a thousand take a millisecond of each file, to be written into its settings and read there. */
  private static final int MAX_KEYS_IN_FILES = 100;

  /** Gives columns the names and types that files have for them. */
  public static class StoredNames extends NodeRewrite<Expression> {
    private final StructType read;
    private final StructType stored;

    public StoredNames(StructType read, StructType stored) {
      this.read = read;
      this.stored = stored;
    }

    protected Object rewrite(Object node) {
      if (!(node instanceof AttributeReference)) return null;
      AttributeReference column = (AttributeReference) node;
      if (read.getFieldIndex(column.name()).isEmpty()) return null;
      StructField file = stored.fields()[read.fieldIndex(column.name())];
      if (file.name().equals(column.name()) && file.dataType().equals(column.dataType())) return null;
      return new AttributeReference(file.name(), file.dataType(), true, column.metadata(), column.exprId(), column.qualifier());
    }
  }

  public final List<Expression> expressions;
  /** The filters as ExpressionJson writes them; null if there are none. */
  public final String json;

  public ScanFilters(List<Expression> expressions, TableSnapshot snapshot) {
    this.expressions = expressions;
    this.json = expressions.isEmpty() ? null : ExpressionJson.of(ScalaLists.toScala(expressions), snapshot.columns());
  }

  /** Whether these are the very expressions, in their order: rules ask again and again, and to write a long list takes time. */
  public boolean areSame(List<Expression> others) {
    if (others.size() != expressions.size()) return false;
    for (int i = 0; i < others.size(); i++) if (others.get(i) != expressions.get(i)) return false;
    return true;
  }

  /** All of these filters and others. */
  public ScanFilters and(List<Expression> others, TableSnapshot snapshot) {
    List<Expression> all = new ArrayList<Expression>(expressions);
    all.addAll(others);
    return new ScanFilters(all, snapshot);
  }

  /**
   * What Parquet may filter row groups by: nothing on columns where that loses rows or fails. Those are floats (Arrow leaves NaN
   * out of row-group statistics, and dictionaries tell -0.0 from 0.0), columns of which some files hold a narrower type, and
   * days that one calendar has and another has not. `read` are the columns by our names, and `stored` by those of files.
   */
  public Filter[] forParquet(TableSnapshot snapshot, StructType read, StructType stored) {
    List<Filter> filters = new ArrayList<Filter>();
    for (Expression expression : expressions) {
      Expression renamed = (Expression) withoutLongList(expression).transformDown(new StoredNames(read, stored));
      Filter filter = translated(renamed);
      if (filter != null && mayPush(filter, snapshot)) filters.add(filter);
    }
    return (Filter[]) filters.toArray(new Filter[0]);
  }

  /** What is true wherever a condition is: of a long list of keys, that a value is none below the least and none above the greatest. */
  private static Expression withoutLongList(Expression condition) {
    if (!(condition instanceof InSet) || ((InSet) condition).hset().size() <= MAX_KEYS_IN_FILES) return condition;
    Expression column = ((InSet) condition).child();
    Ordering<Object> order = TypeUtils.getInterpretedOrdering(column.dataType());
    Object least = null;
    Object greatest = null;
    scala.collection.Iterator<Object> keys = ((InSet) condition).hset().iterator();
    while (keys.hasNext()) {
      Object key = keys.next();
      if (key == null) continue;
      if (least == null || order.compare(key, least) < 0) least = key;
      if (greatest == null || order.compare(key, greatest) > 0) greatest = key;
    }
    Expression above = new GreaterThanOrEqual(column, new Literal(least, column.dataType()));
    return new And(above, new LessThanOrEqual(column, new Literal(greatest, column.dataType())));
  }

  /** Spark's filter of a condition; null if it has none, as for a day that java.sql cannot hold: `-infinity` of other databases is one. */
  private static Filter translated(Expression condition) {
    try {
      scala.Option<Filter> filter = DataSourceStrategy$.MODULE$.translateFilter(condition, true);
      return filter.isDefined() ? (Filter) filter.get() : null;
    } catch (ArithmeticException beyond) {
      return null;
    }
  }

  private static boolean mayPush(Filter filter, TableSnapshot snapshot) {
    if (filter.toString().contains(CALENDARS_CHANGED)) return false;
    for (String[] column : filter.v2references()) {
      List<String> path = new ArrayList<String>();
      for (String name : column) {
        path.add(name);
        if (snapshot.unpushablePaths.contains(path)) return false;
      }
    }
    return true;
  }
}
