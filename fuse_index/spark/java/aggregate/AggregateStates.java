package fuse_index.spark.java.aggregate;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.HllSketchAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.HllUnionAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The plan in the place of an aggregate: stored aggregate states, merged with the states of the blocks that are still to be scanned.
 *
 * Its columns keep the expression ids of those that it replaces, so that nothing above notices. An average is finished by
 * Spark's own expression.
 */
public class AggregateStates {
  public static final TreeNodeTag<String> REPORT_TAG = new TreeNodeTag<String>("fuse_index.answer");
  private static final int HEADER_BYTES = 5;

  /** Replaces aggregate functions, and the expressions that rows are grouped by, in the columns of the result. */
  public class FinalizeResults extends NodeRewrite<Expression> {
    private final List<Attribute> columns;
    private final boolean merging;

    public FinalizeResults(List<Attribute> columns, boolean merging) {
      this.columns = columns;
      this.merging = merging;
    }

    protected Object rewrite(Object node) {
      int group = groupNumber(node);
      if (group >= 0) return columns.get(group);
      int measure = measureNumber(node);
      if (measure < 0) return null; // also what took the place of another
      return finalizeMeasure(measure, columns, ((Integer) firstPartOfMeasure.get(measure)).intValue(), merging);
    }
  }

  /** Replaces the sum and the count of an average's buffer by the expressions that give them here. */
  public static class ReplaceAverageBuffer extends NodeRewrite<Expression> {
    private final Average average;
    private final Expression sum;
    private final Expression count;

    public ReplaceAverageBuffer(Average average, Expression sum, Expression count) {
      this.average = average;
      this.sum = sum;
      this.count = count;
    }

    protected Object rewrite(Object node) { return isBuffer(node, 0) ? sum : isBuffer(node, 1) ? count : null; }

    private boolean isBuffer(Object node, int position) {
      return node instanceof Attribute
          && ((Attribute) node).exprId().equals(((Attribute) average.aggBufferAttributes().apply(position)).exprId());
    }
  }

  private final AggregateQuery query;
  private final byte[] reply;
  private final List<Integer> firstPartOfMeasure = new ArrayList<Integer>();
  /** Expressions over rows: the groups, and then the parts of each measure's state. */
  private final List<Expression> rowExpressions = new ArrayList<Expression>();

  /** `reply`: byte 1, or 2 where a fault spoiled it, the number of files as an int, a bit for each that is to be scanned, and an Arrow stream of states. */
  public AggregateStates(AggregateQuery query, byte[] reply) {
    this.query = query;
    this.reply = reply;
    rowExpressions.addAll(ScalaLists.toJava(query.plan.groupingExpressions()));
    for (int i = 0; i < query.measures.size(); i++) {
      firstPartOfMeasure.add(Integer.valueOf(rowExpressions.size()));
      AggregateFunction function = query.measureFunction(i);
      Expression measure = (Expression) query.measures.get(i);
      if (function instanceof Average) {
        Expression value = ((Average) function).child();
        boolean addsAsIs = value.dataType() instanceof DecimalType || value.dataType().sameType(DataTypes.DoubleType);
        rowExpressions.add(new Sum(addsAsIs ? value : cast(value, DataTypes.DoubleType)).toAggregateExpression());
        rowExpressions.add(countOf(value));
      } else if (function instanceof HllUnionAgg) {
        Expression isEmpty = new EqualTo(countOf(((HllUnionAgg) function).left()), Literal$.MODULE$.apply(Long.valueOf(0L)));
        // An empty sketch would have a size.
        rowExpressions.add(new If(isEmpty, Literal$.MODULE$.create(null, measure.dataType()), measure));
      } else {
        rowExpressions.add(measure);
      }
    }
  }

  public LogicalPlan plan() throws Exception {
    int start = HEADER_BYTES + (query.scan.snapshot.listing.fileCount() + 7) / 8;
    if (reply.length < start) throw new IllegalStateException("an answer of " + reply.length + " bytes");
    LogicalPlan states = statesRelation(Arrays.copyOfRange(reply, start, reply.length));
    byte[] scanMask = Arrays.copyOfRange(reply, HEADER_BYTES, start);
    boolean anyToScan = false;
    for (int i = 0; i < scanMask.length; i++) anyToScan |= scanMask[i] != 0;
    List<Attribute> columns = ScalaLists.toJava(states.output());
    if (!anyToScan && !query.groupsFromKeys) {
      return checkOutput(ConvertToLocalRelation$.MODULE$.apply(new Project(resultColumns(columns, false), states)));
    }
    LogicalPlan all = states;
    if (anyToScan) {
      all = new Union(ScalaLists.of(states, scanRemaining(scanMask)), false, false);
      columns = ScalaLists.toJava(all.output());
    }
    return checkOutput(aggregate(ScalaLists.toScala(columns.subList(0, groupCount())), resultColumns(columns, true), all));
  }

  private LogicalPlan scanRemaining(byte[] scanMask) {
    FuseScan remaining = query.scan.restrictedTo(scanMask);
    LogicalPlan rows = Trees.replace(query.plan.child(), query.relation, remaining.replaceIn(query.relation));
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    for (int i = 0; i < rowExpressions.size(); i++) {
      columns.add(column((Expression) rowExpressions.get(i), i));
    }
    return aggregate(query.plan.groupingExpressions(), ScalaLists.toScala(columns), rows);
  }

  private LogicalPlan aggregate(Object keys, Object results, LogicalPlan child) {
    Object[] arguments = Versions.arguments(query.plan);
    arguments[0] = keys;
    arguments[1] = results;
    arguments[2] = child;
    return (LogicalPlan) query.plan.makeCopy(arguments);
  }

  /** The stored states as rows: the groups, and then the parts of each measure. */
  private LogicalPlan statesRelation(byte[] stream) {
    LocalRows rows = new LocalRows(stream);
    StructType schema = rows.readSchema();
    List<Expression> stored = new ArrayList<Expression>(query.keys);
    stored.addAll(rowExpressions.subList(groupCount(), rowExpressions.size()));
    if (schema.length() != stored.size()) throw new IllegalStateException(schema.length() + " columns for " + stored.size());
    List<Attribute> columns = new ArrayList<Attribute>();
    for (int i = 0; i < stored.size(); i++) {
      Expression expected = (Expression) stored.get(i);
      DataType type = schema.fields()[i].dataType();
      if (!type.equals(expected.dataType())) throw new IllegalStateException(type + " in the place of " + expected.dataType());
      columns.add(Trees.attribute(columnName(i), type, expected.nullable()));
    }
    LocalRelation states = new LocalRelation(ScalaLists.toScala(columns), ScalaLists.toScala(rows.list()), false, scala.Option.empty());
    return query.groupsFromKeys ? (LogicalPlan) new Project(groupsFromKeys(columns), states) : states;
  }

  /** The groups, made of stored keys, and the parts as they are. */
  private Seq<NamedExpression> groupsFromKeys(List<Attribute> stored) {
    Map<ExprId, Expression> keys = new HashMap<ExprId, Expression>();
    for (int i = 0; i < query.keys.size(); i++) keys.put(((Attribute) query.keys.get(i)).exprId(), (Attribute) stored.get(i));
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    for (int i = 0; i < groupCount(); i++) {
      columns.add(column(Trees.inline(keys, query.group(i)), i));
    }
    columns.addAll(stored.subList(query.keys.size(), stored.size()));
    return ScalaLists.toScala(columns);
  }

  /** The columns of the result, over `columns` of states: `merging` where a group may have several. */
  private Seq<NamedExpression> resultColumns(List<Attribute> columns, boolean merging) {
    List<NamedExpression> results = new ArrayList<NamedExpression>();
    for (NamedExpression old : ScalaLists.toJava(query.plan.aggregateExpressions())) {
      Expression result = (Expression) ((Expression) old).transformDown(new FinalizeResults(columns, merging));
      results.add(result instanceof Alias ? (Alias) result : Trees.alias(result, old.name(), old.exprId()));
    }
    return ScalaLists.toScala(results);
  }

  private Expression finalizeMeasure(int measure, List<Attribute> columns, int first, boolean merging) {
    AggregateFunction function = query.measureFunction(measure);
    Attribute part = (Attribute) columns.get(first);
    if (function instanceof Count) return merging ? sumOfCounts(part) : part;
    if (function instanceof Average) {
      Attribute count = (Attribute) columns.get(first + 1);
      Expression sum = merging ? cast(new Sum(part).toAggregateExpression(), part.dataType()) : part;
      Expression quotient = ((Average) function).evaluateExpression();
      return (Expression) quotient.transformDown(new ReplaceAverageBuffer((Average) function, sum, merging ? sumOfCounts(count) : count));
    }
    if (function instanceof HllUnionAgg && !merging) {
      Object empty = ((HllUnionAgg) function).eval(scala.Option.empty());
      return coalesce(part, Literal$.MODULE$.create(empty, function.dataType()));
    }
    if (!merging) return part;
    if (function instanceof HllSketchAgg || function instanceof HllUnionAgg) return new HllUnionAgg(part, false).toAggregateExpression();
    AggregateFunction ofParts = (AggregateFunction) function.withNewChildren(ScalaLists.<Expression>of(part));
    return cast(ofParts.toAggregateExpression(), function.dataType());
  }

  private static Expression countOf(Expression value) {
    return new Count(ScalaLists.of(value)).toAggregateExpression();
  }

  private static Expression sumOfCounts(Attribute count) {
    return coalesce(new Sum(count).toAggregateExpression(), Literal$.MODULE$.apply(Long.valueOf(0L)));
  }

  private static Expression coalesce(Expression value, Expression other) {
    return new Coalesce(ScalaLists.of(value, other));
  }

  /** Sums of decimals are wider by ten digits, which these do not need: it is known that they do not overflow. */
  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type) ? value : Cast$.MODULE$.apply(value, type, false);
  }

  private LogicalPlan checkOutput(LogicalPlan made) {
    if (!made.resolved()) throw new IllegalStateException("a plan that is not resolved: " + made);
    for (int i = 0; i < made.output().length(); i++) {
      Attribute old = (Attribute) query.plan.output().apply(i);
      Attribute column = (Attribute) made.output().apply(i);
      if (!old.exprId().equals(column.exprId()) || !old.dataType().equals(column.dataType())) throw new IllegalStateException(column + " for " + old);
    }
    return made;
  }

  private int measureNumber(Object node) { return node instanceof AggregateExpression ? query.measureNumber((Expression) node) : -1; }

  private int groupNumber(Object node) {
    List<Expression> groups = ScalaLists.toJava(query.plan.groupingExpressions());
    for (int i = 0; i < groups.size(); i++) if (((Expression) groups.get(i)).semanticEquals((Expression) node)) return i;
    return -1;
  }

  private int groupCount() { return query.plan.groupingExpressions().length(); }

  private String columnName(int column) { return column < groupCount() ? "group" + column : "part" + (column - groupCount()); }

  private Alias column(Expression value, int number) { return Trees.alias(value, columnName(number), NamedExpression$.MODULE$.newExprId()); }
}
