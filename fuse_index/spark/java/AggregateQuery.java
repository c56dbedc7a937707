import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonFuncExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.collection.mutable.ArrayBuffer;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** An aggregate right over one of our tables: nothing but projections and filters in between. */
public class AggregateQuery {
  /** Puts what an alias stands for in its place. */
  public static class Inline extends AbstractPartialFunction {
    private final Map aliases;

    public Inline(Map aliases) { this.aliases = aliases; }

    public boolean isDefinedAt(Object node) { return node instanceof Attribute && aliases.containsKey(((Attribute) node).exprId()); }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? aliases.get(((Attribute) node).exprId()) : otherwise.apply(node);
    }
  }

  public final Aggregate plan;
  public final LogicalRelation scan;
  public final FuseIndex index;
  /** The aggregate functions, equal ones once. */
  public final List measures = new ArrayList();
  /** What Python is asked to group by: what the plan groups by, or columns that Spark makes that of. */
  public final List keys = new ArrayList();
  /** Whether Spark makes groups of the keys. */
  public boolean derived;
  /** Why nobody is asked; null where Python is. */
  private String refusal;
  private final ArrayBuffer filters = new ArrayBuffer();
  private final Inline inline;

  private AggregateQuery(Aggregate plan, LogicalRelation scan, FuseIndex index, Map aliases) {
    this.plan = plan;
    this.scan = scan;
    this.index = index;
    this.inline = new Inline(aliases);
  }

  /** Null for what is to be left as it is, whatever the reason. */
  public static AggregateQuery of(Object node) {
    AggregateQuery found = overOurs(node);
    return found == null || found.refusal != null ? null : found;
  }

  public String refusal() { return refusal; }

  /** Null for what is no aggregate of a table of ours, or is what we made ourselves. */
  public static AggregateQuery overOurs(Object node) {
    if (!(node instanceof Aggregate)) return null;
    List between = new ArrayList();
    LogicalPlan below = ((Aggregate) node).child();
    while (below instanceof Project || below instanceof Filter) {
      between.add(0, below);
      below = (LogicalPlan) below.children().head();
    }
    FuseIndex index = index(below);
    if (index == null || index.limited()) return null;
    Map aliases = new HashMap();
    AggregateQuery found = new AggregateQuery((Aggregate) node, (LogicalRelation) below, index, aliases);
    for (int i = 0; i < between.size(); i++) {
      if (between.get(i) instanceof Filter) found.split(((Filter) between.get(i)).condition());
      else found.named(((Project) between.get(i)).projectList(), aliases);
    }
    scala.collection.Iterator results = found.plan.aggregateExpressions().iterator();
    while (results.hasNext()) found.measured((Expression) results.next());
    scala.collection.Iterator groups = found.plan.groupingExpressions().iterator();
    while (groups.hasNext()) found.keys.add(found.inlined((Expression) groups.next()));
    if (found.measures.isEmpty()) found.refusal = "without an aggregate function, Spark alone finds what is distinct";
    return found;
  }

  /** What an aggregate is over, but for projections and filters. */
  public static LogicalPlan below(Aggregate aggregate) {
    LogicalPlan below = aggregate.child();
    while (below instanceof Project || below instanceof Filter) below = (LogicalPlan) below.children().head();
    return below;
  }

  public static FuseIndex index(Object plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return location instanceof FuseIndex ? (FuseIndex) location : null;
  }

  private void split(Expression condition) {
    if (condition instanceof And) {
      split(((And) condition).left());
      split(((And) condition).right());
      return;
    }
    filters.addOne(inlined(condition));
    if (!condition.deterministic()) refusal = "a condition is not deterministic";
    if (SubqueryExpression.hasSubquery(condition)) refusal = "a condition has a subquery, whose result is not known yet";
  }

  private void named(scala.collection.Seq columns, Map aliases) {
    scala.collection.Iterator each = columns.iterator();
    while (each.hasNext()) {
      NamedExpression column = (NamedExpression) each.next();
      if (!((Expression) column).deterministic()) refusal = "a column is not deterministic";
      if (column instanceof Alias) aliases.put(column.exprId(), inlined(((Alias) column).child()));
    }
  }

  private void measured(Expression result) {
    if (result instanceof AggregateExpression) {
      AggregateExpression measure = (AggregateExpression) result;
      if (measure.isDistinct()) refusal = "no index keeps what is distinct";
      if (measure.filter().isDefined()) refusal = "an aggregate has a FILTER of its own";
      if (measure.mode() != Complete$.MODULE$) refusal = "Spark has begun to split it";
      if (number(measure) < 0) measures.add(measure);
      return;
    }
    if (!result.deterministic()) refusal = "a column of the result is not deterministic";
    for (int i = 0; i < result.children().length(); i++) measured((Expression) result.children().apply(i));
  }

  /** Which of the measures this is; -1 if none. */
  public int number(Expression measure) {
    for (int i = 0; i < measures.size(); i++) if (((Expression) measures.get(i)).semanticEquals(measure)) return i;
    return -1;
  }

  public AggregateFunction function(int measure) { return ((AggregateExpression) measures.get(measure)).aggregateFunction(); }

  private Expression inlined(Expression expression) { return (Expression) expression.transformDown(inline); }

  /** The group of this number, over the table's own columns. */
  public Expression group(int number) { return inlined((Expression) plan.groupingExpressions().apply(number)); }

  /**
   * The same, but Python is asked to group by columns, of which Spark then makes the groups; null if it cannot. Of floats a state
   * shows one spelling of many, so that nothing may be made of them.
   */
  public AggregateQuery byColumns() {
    AggregateQuery found = overOurs(plan);
    found.derived = true;
    found.keys.clear();
    boolean makes = false;
    for (int i = 0; i < keys.size(); i++) {
      Expression group = (Expression) keys.get(i);
      boolean itself = group instanceof AttributeReference;
      makes |= !itself;
      if (!group.deterministic() || SubqueryExpression.hasSubquery(group)) return null;
      scala.collection.Iterator leaves = group.collectLeaves().iterator();
      while (leaves.hasNext()) {
        Object leaf = leaves.next();
        if (!(leaf instanceof AttributeReference)) continue;
        DataType type = ((AttributeReference) leaf).dataType();
        if (!itself && (type.sameType(DataTypes.DoubleType) || type.sameType(DataTypes.FloatType))) return null;
        if (!found.keys.contains(leaf)) found.keys.add(leaf);
      }
      if (group.exists(new Python())) return null;
    }
    return makes && !found.keys.isEmpty() ? found : null; // of a constant there is no group where there is no row
  }

  /** What only a plan of its own evaluates. */
  public static class Python extends AbstractFunction1 {
    public Object apply(Object node) { return new Boolean(node instanceof PythonFuncExpression); }
  }

  /** What Python is asked, of the table as it is in `head`. */
  public String request(FuseIndex.Head head) {
    ArrayBuffer groups = new ArrayBuffer();
    for (int i = 0; i < keys.size(); i++) groups.addOne(keys.get(i));
    List functions = new ArrayList();
    for (int i = 0; i < measures.size(); i++) {
      AggregateFunction function = function(i);
      ArrayBuffer arguments = new ArrayBuffer();
      for (int j = 0; j < function.children().length(); j++) arguments.addOne(inlined((Expression) function.children().apply(j)));
      functions.add("{\"function\":" + ExpressionJson.quoted(function.getClass().getName()) + ",\"type\":" + function.dataType().json()
          + ",\"arguments\":" + ExpressionJson.inOrder(arguments, index.columns()) + "}");
    }
    String asked = ",\"groups\":" + ExpressionJson.inOrder(groups, index.columns()) + ",\"aggregates\":[" + String.join(",", functions) + "]";
    return index.request(head, ExpressionJson.of(filters, index.columns()), asked);
  }
}
