package fuse_index.spark.java.aggregate;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
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
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** An Aggregate of a plan, over a scan of one of our tables with nothing but projections and filters in between. */
public class AggregateQuery {
  public final Aggregate plan;
  /** The plan that scans the table, and its scan. */
  public final LogicalPlan relation;
  public final FuseScan scan;
  /** The aggregate functions, equal ones once. */
  public final List<AggregateExpression> measures = new ArrayList<AggregateExpression>();
  /** The expressions that Python is asked to group by: those of the plan, or columns that Spark makes them of. */
  public final List<Expression> keys = new ArrayList<Expression>();
  /** Whether Spark makes the groups of the keys. */
  public boolean groupsFromKeys;
  /** Why Python is not asked; null where it is. */
  private String refusal;
  private final List<Expression> filters = new ArrayList<Expression>();
  private final Map<ExprId, Expression> aliases = new HashMap<ExprId, Expression>();

  private AggregateQuery(Aggregate plan, LogicalPlan relation, FuseScan scan) {
    this.plan = plan;
    this.relation = relation;
    this.scan = scan;
  }

  /** The query that Python is to be asked; null for a node that is to stay as it is, whatever the reason. */
  public static AggregateQuery of(Object node) {
    AggregateQuery query = overFuseTable(node);
    return query == null || query.refusal != null ? null : query;
  }

  public String refusal() { return refusal; }

  /** The query, be it one that Python can be asked or not; null for a node that is no aggregate right over our table. */
  public static AggregateQuery overFuseTable(Object node) {
    if (!(node instanceof Aggregate)) return null;
    LogicalPlan relation = Trees.below(((Aggregate) node).child());
    FuseScan scan = FuseScan.below(relation);
    if (scan == null || scan.asked.isRestricted()) return null;
    AggregateQuery query = new AggregateQuery((Aggregate) node, relation, scan);
    query.addPlansFromScanUp(((Aggregate) node).child());
    for (Object result : ScalaLists.toJava(query.plan.aggregateExpressions())) query.addMeasures((Expression) result);
    for (Expression group : ScalaLists.toJava(query.plan.groupingExpressions())) query.keys.add(query.inlineAliases(group));
    if (query.measures.isEmpty()) query.refusal = "without an aggregate function, Spark alone finds what is distinct";
    return query;
  }

  private void addPlansFromScanUp(LogicalPlan plan) {
    if (!(plan instanceof Project) && !(plan instanceof Filter)) return;
    addPlansFromScanUp(Trees.child(plan));
    if (plan instanceof Filter) addFilters(((Filter) plan).condition());
    else addAliases(((Project) plan).projectList());
  }

  private void addFilters(Expression condition) {
    for (Expression conjunct : Trees.conjuncts(condition)) {
      filters.add(inlineAliases(conjunct));
      if (!conjunct.deterministic()) refusal = "a condition is not deterministic";
      if (SubqueryExpression.hasSubquery(conjunct)) refusal = "a condition has a subquery, whose result is not known yet";
    }
  }

  private void addAliases(scala.collection.Seq<NamedExpression> columns) {
    for (NamedExpression column : ScalaLists.toJava(columns)) {
      if (!((Expression) column).deterministic()) refusal = "a column is not deterministic";
      if (column instanceof Alias) aliases.put(column.exprId(), inlineAliases(((Alias) column).child()));
    }
  }

  private void addMeasures(Expression result) {
    if (result instanceof AggregateExpression) {
      AggregateExpression measure = (AggregateExpression) result;
      if (measure.isDistinct()) refusal = "no index keeps what is distinct";
      if (measure.filter().isDefined()) refusal = "an aggregate has a FILTER of its own";
      if (measure.mode() != Complete$.MODULE$) refusal = "Spark has begun to split it";
      if (measureNumber(measure) < 0) measures.add(measure);
      return;
    }
    if (!result.deterministic()) refusal = "a column of the result is not deterministic";
    for (Expression child : ScalaLists.toJava(result.children())) addMeasures(child);
  }

  /** The position of this among the measures; -1 if it is none. */
  public int measureNumber(Expression measure) {
    for (int i = 0; i < measures.size(); i++) if (((Expression) measures.get(i)).semanticEquals(measure)) return i;
    return -1;
  }

  public AggregateFunction measureFunction(int measure) { return ((AggregateExpression) measures.get(measure)).aggregateFunction(); }

  private Expression inlineAliases(Expression expression) { return Trees.inline(aliases, expression); }

  /** The group of this number, over the table's own columns. */
  public Expression group(int number) { return inlineAliases((Expression) plan.groupingExpressions().apply(number)); }

  /**
   * The same, but Python is asked to group by columns, of which Spark then makes the groups; null if it cannot. Of floats a state
   * shows one spelling of many, so that nothing may be made of them.
   */
  public AggregateQuery groupedByColumns() {
    AggregateQuery query = overFuseTable(plan);
    query.groupsFromKeys = true;
    query.keys.clear();
    boolean anyComputed = false;
    for (Expression group : keys) {
      boolean isColumn = group instanceof AttributeReference;
      anyComputed |= !isColumn;
      if (!group.deterministic() || SubqueryExpression.hasSubquery(group)) return null;
      for (Expression leaf : ScalaLists.toJava(group.collectLeaves())) {
        if (!(leaf instanceof AttributeReference)) continue;
        DataType type = leaf.dataType();
        if (!isColumn && (type.sameType(DataTypes.DoubleType) || type.sameType(DataTypes.FloatType))) return null;
        if (!query.keys.contains(leaf)) query.keys.add(leaf);
      }
      if (callsPython(group)) return null; // which only a plan of its own evaluates
    }
    return anyComputed && !query.keys.isEmpty() ? query : null; // of a constant there is no group where there is no row
  }

  private static boolean callsPython(Expression expression) {
    if (expression instanceof PythonFuncExpression) return true;
    for (Expression child : ScalaLists.toJava(expression.children())) if (callsPython(child)) return true;
    return false;
  }

  /** The request to Python. */
  public String request() {
    Set<String> columns = scan.snapshot.columns();
    Json request = scan.snapshot.openQuestion(Protocol.ANSWER_AGGREGATE, ExpressionJson.of(ScalaLists.toScala(filters), columns));
    request.key("groups").json(ExpressionJson.ofOrdered(ScalaLists.toScala(keys), columns));
    request.key("aggregates").open('[');
    for (int i = 0; i < measures.size(); i++) {
      AggregateFunction function = measureFunction(i);
      List<Expression> arguments = new ArrayList<Expression>();
      for (Expression argument : ScalaLists.toJava(function.children())) arguments.add(inlineAliases(argument));
      request.open('{').key("function").text(function.getClass().getName()).key("type").json(function.dataType().json())
          .key("arguments").json(ExpressionJson.ofOrdered(ScalaLists.toScala(arguments), columns)).close('}');
    }
    return request.close(']').close('}').toString();
  }
}
