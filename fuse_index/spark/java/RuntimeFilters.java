import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What Spark finds out while a query runs, `column IN (keys of a join's other side)`, as Catalyst's expressions again. */
public class RuntimeFilters {
  /** So many keys are worth asking about: beyond them nearly every block has one. */
  private static final int MAX_KEYS = 10000;

  public static List<Expression> of(Predicate[] predicates, StructType columns) {
    List<Expression> filters = new ArrayList<Expression>();
    for (Predicate predicate : predicates) {
      Expression filter = in(predicate, columns);
      if (filter != null) filters.add(filter);
    }
    return filters;
  }

  /** The predicate, if it is an IN of literals and not too long; else null, which prunes nothing. */
  private static Expression in(Predicate predicate, StructType columns) {
    org.apache.spark.sql.connector.expressions.Expression[] children = predicate.children();
    if (!predicate.name().equals("IN") || children.length > MAX_KEYS + 1 || !(children[0] instanceof NamedReference)) return null;
    String[] path = ((NamedReference) children[0]).fieldNames();
    if (path.length != 1 || columns.getFieldIndex(path[0]).isEmpty()) return null;
    StructField column = columns.apply(path[0]);
    List<Expression> keys = new ArrayList<Expression>();
    for (int i = 1; i < children.length; i++) {
      if (!(children[i] instanceof LiteralValue)) return null;
      LiteralValue<?> key = (LiteralValue<?>) children[i];
      keys.add(new Literal(key.value(), key.dataType()));
    }
    AttributeReference attribute = new AttributeReference(column.name(), column.dataType(), true, column.metadata(),
        NamedExpression$.MODULE$.newExprId(), ScalaLists.toScala(new ArrayList<String>()));
    return new In(attribute, ScalaLists.toScala(keys));
  }
}
