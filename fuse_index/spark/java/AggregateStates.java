import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
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
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ArrayBuffer;
import scala.runtime.AbstractPartialFunction;

/**
 * A plan in the place of an aggregate: stored states, and the states of blocks that are still to be scanned.
 *
 * Its columns keep the expression ids of those that it replaces, so that nothing above notices. An average is finished by
 * Spark's own expression.
 */
public class AggregateStates {
  public static final TreeNodeTag TAG = new TreeNodeTag("fuse_index.answer");
  private static final int HEAD = 5;

  /** Replaces aggregate functions, and what rows are grouped by, in the columns of the result. */
  public class Finish extends AbstractPartialFunction {
    private final Seq columns;
    private final boolean merging;

    public Finish(Seq columns, boolean merging) {
      this.columns = columns;
      this.merging = merging;
    }

    public boolean isDefinedAt(Object node) { return measure(node) >= 0 || group(node) >= 0; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      int group = group(node);
      if (group >= 0) return columns.apply(group);
      int measure = measure(node);
      if (measure < 0) return otherwise.apply(node); // also what took the place of another
      return finished(measure, columns, ((Integer) firstPart.get(measure)).intValue(), merging);
    }
  }

  /** Replaces the buffer of an average by what it is to be. */
  public static class Buffer extends AbstractPartialFunction {
    private final Average average;
    private final Expression sum;
    private final Expression count;

    public Buffer(Average average, Expression sum, Expression count) {
      this.average = average;
      this.sum = sum;
      this.count = count;
    }

    public boolean isDefinedAt(Object node) { return is(node, 0) || is(node, 1); }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return is(node, 0) ? sum : is(node, 1) ? count : otherwise.apply(node);
    }

    private boolean is(Object node, int place) {
      return node instanceof Attribute && ((Attribute) node).exprId().equals(((Attribute) average.aggBufferAttributes().apply(place)).exprId());
    }
  }

  /** Reads only the blocks that gave no state. */
  public static class Limit extends AbstractPartialFunction {
    private final AggregateQuery grouped;
    private final FuseIndex left;

    public Limit(AggregateQuery grouped, FuseIndex left) {
      this.grouped = grouped;
      this.left = left;
    }

    public boolean isDefinedAt(Object node) { return node == grouped.scan; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return node == grouped.scan ? EarlyPruneRule.over(grouped.scan, left) : otherwise.apply(node);
    }
  }

  private final AggregateQuery grouped;
  private final FuseIndex.Head head;
  private final byte[] reply;
  private final List firstPart = new ArrayList();
  /** Of the groups, and then of the parts of each measure: an expression over rows. */
  private final List expressions = new ArrayList();

  /** `reply`: byte 1, the number of files as an int, a bit for each that is to be scanned, and an Arrow stream of states. */
  public AggregateStates(AggregateQuery grouped, FuseIndex.Head head, byte[] reply) {
    this.grouped = grouped;
    this.head = head;
    this.reply = reply;
    for (int i = 0; i < groups(); i++) expressions.add(grouped.plan.groupingExpressions().apply(i));
    for (int i = 0; i < grouped.measures.size(); i++) {
      firstPart.add(new Integer(expressions.size()));
      AggregateFunction function = grouped.function(i);
      if (function instanceof Average) {
        Expression value = ((Average) function).child();
        boolean whole = value.dataType() instanceof DecimalType || value.dataType().sameType(DataTypes.DoubleType);
        expressions.add(new Sum(whole ? value : cast(value, DataTypes.DoubleType)).toAggregateExpression());
        expressions.add(new Count(seq(value)).toAggregateExpression());
      } else if (function instanceof HllUnionAgg) {
        Expression none = new EqualTo(new Count(seq(((HllUnionAgg) function).left())).toAggregateExpression(), Literal$.MODULE$.apply(new Long(0L)));
        Expression measure = (Expression) grouped.measures.get(i);
        expressions.add(new If(none, Literal$.MODULE$.create(null, measure.dataType()), measure)); // an empty one would have a size
      } else {
        expressions.add(grouped.measures.get(i));
      }
    }
  }

  public LogicalPlan plan() throws Exception {
    int start = HEAD + (head.listing.count() + 7) / 8;
    if (reply.length < start) throw new IllegalStateException("an answer of " + reply.length + " bytes");
    LogicalPlan states = local(Arrays.copyOfRange(reply, start, reply.length));
    byte[] left = Arrays.copyOfRange(reply, HEAD, start);
    boolean some = false;
    for (int i = 0; i < left.length; i++) some |= left[i] != 0;
    if (!some && !grouped.derived) {
      return checked(ConvertToLocalRelation$.MODULE$.apply(new Project(results(states.output(), false), states)));
    }
    LogicalPlan both = some ? (LogicalPlan) new Union(seq(states, scanned(left)), false, false) : states;
    return checked(aggregate(slice(both.output(), groups()), results(both.output(), true), both));
  }

  private LogicalPlan scanned(byte[] left) {
    LogicalPlan rows = (LogicalPlan) grouped.plan.child().transformDown(new Limit(grouped, grouped.index.limited(head, left)));
    ArrayBuffer columns = new ArrayBuffer();
    for (int i = 0; i < expressions.size(); i++) columns.addOne(alias((Expression) expressions.get(i), name(i), NamedExpression$.MODULE$.newExprId()));
    return aggregate(grouped.plan.groupingExpressions(), columns.toSeq(), rows);
  }

  /** By position, because Aggregate may gain parameters between versions of Spark: these are its first. */
  private LogicalPlan aggregate(Object keys, Object results, LogicalPlan child) {
    Object[] parts = new Object[grouped.plan.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = i == 0 ? keys : i == 1 ? results : i == 2 ? child : grouped.plan.productElement(i);
    }
    return (LogicalPlan) grouped.plan.makeCopy(parts);
  }

  private LogicalPlan local(byte[] stream) {
    scala.Tuple2 read = ArrowConverters$.MODULE$.fromBatchWithSchemaIterator(seq(stream).iterator(), null);
    ArrayBuffer rows = new ArrayBuffer();
    scala.collection.Iterator each = (scala.collection.Iterator) read._1();
    while (each.hasNext()) rows.addOne(((InternalRow) each.next()).copy());
    StructType found = (StructType) read._2();
    List stored = new ArrayList(grouped.keys);
    stored.addAll(expressions.subList(groups(), expressions.size()));
    if (found.length() != stored.size()) throw new IllegalStateException(found.length() + " columns for " + stored.size());
    ArrayBuffer columns = new ArrayBuffer();
    for (int i = 0; i < stored.size(); i++) {
      Expression like = (Expression) stored.get(i);
      DataType type = found.fields()[i].dataType();
      if (!type.equals(like.dataType())) throw new IllegalStateException(type + " in the place of " + like.dataType());
      columns.addOne(new AttributeReference(name(i), type, like.nullable(), Metadata.empty(), NamedExpression$.MODULE$.newExprId(), seq()));
    }
    LocalRelation states = new LocalRelation(columns.toSeq(), rows.toSeq(), false, scala.Option.empty());
    return grouped.derived ? (LogicalPlan) new Project(made(columns), states) : states;
  }

  /** The groups, made of stored keys, and the parts as they are. */
  private Seq made(ArrayBuffer stored) {
    Map keys = new HashMap();
    for (int i = 0; i < grouped.keys.size(); i++) keys.put(((Attribute) grouped.keys.get(i)).exprId(), stored.apply(i));
    ArrayBuffer columns = new ArrayBuffer();
    for (int i = 0; i < groups(); i++) {
      Expression group = (Expression) grouped.group(i).transformDown(new AggregateQuery.Inline(keys));
      columns.addOne(alias(group, name(i), NamedExpression$.MODULE$.newExprId()));
    }
    for (int i = grouped.keys.size(); i < stored.length(); i++) columns.addOne(stored.apply(i));
    return columns.toSeq();
  }

  private Seq results(Seq columns, boolean merging) {
    ArrayBuffer results = new ArrayBuffer();
    scala.collection.Iterator each = grouped.plan.aggregateExpressions().iterator();
    while (each.hasNext()) {
      NamedExpression old = (NamedExpression) each.next();
      Expression made = (Expression) ((Expression) old).transformDown(new Finish(columns, merging));
      results.addOne(made instanceof Alias ? made : alias(made, old.name(), old.exprId()));
    }
    return results.toSeq();
  }

  private Expression finished(int measure, Seq columns, int first, boolean merging) {
    AggregateFunction function = grouped.function(measure);
    Attribute part = (Attribute) columns.apply(first);
    if (function instanceof Count) return merging ? total(part) : part;
    if (function instanceof Average) {
      Attribute count = (Attribute) columns.apply(first + 1);
      Expression sum = merging ? cast(new Sum(part).toAggregateExpression(), part.dataType()) : part;
      Expression finish = ((Average) function).evaluateExpression();
      return (Expression) finish.transformDown(new Buffer((Average) function, sum, merging ? total(count) : count));
    }
    if (function instanceof HllUnionAgg && !merging) {
      Object empty = ((HllUnionAgg) function).eval(scala.Option.empty());
      return new Coalesce(seq(part, Literal$.MODULE$.create(empty, function.dataType())));
    }
    if (!merging) return part;
    if (function instanceof HllSketchAgg || function instanceof HllUnionAgg) return new HllUnionAgg(part, false).toAggregateExpression();
    AggregateFunction again = (AggregateFunction) function.withNewChildren(seq(part));
    return cast(again.toAggregateExpression(), function.dataType());
  }

  private static Expression total(Attribute count) {
    return new Coalesce(seq(new Sum(count).toAggregateExpression(), Literal$.MODULE$.apply(new Long(0L))));
  }

  /** Sums of decimals are wider by ten digits, which these do not need: it is known that they do not overflow. */
  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type) ? value : Cast$.MODULE$.apply(value, type, false);
  }

  private LogicalPlan checked(LogicalPlan made) {
    if (!made.resolved()) throw new IllegalStateException("a plan that is not resolved: " + made);
    for (int i = 0; i < made.output().length(); i++) {
      Attribute was = (Attribute) grouped.plan.output().apply(i);
      Attribute is = (Attribute) made.output().apply(i);
      if (!was.exprId().equals(is.exprId()) || !was.dataType().equals(is.dataType())) throw new IllegalStateException(is + " for " + was);
    }
    return made;
  }

  private int measure(Object node) { return node instanceof AggregateExpression ? grouped.number((Expression) node) : -1; }

  private int group(Object node) {
    for (int i = 0; i < groups(); i++) if (((Expression) grouped.plan.groupingExpressions().apply(i)).semanticEquals((Expression) node)) return i;
    return -1;
  }

  private int groups() { return grouped.plan.groupingExpressions().length(); }

  private String name(int column) { return column < groups() ? "group" + column : "part" + (column - groups()); }

  private static Alias alias(Expression value, String name, org.apache.spark.sql.catalyst.expressions.ExprId id) {
    return new Alias(value, name, id, seq(), scala.Option.empty(), seq());
  }

  private static Seq slice(Seq items, int count) { return (Seq) items.take(count); }

  private static Seq seq() { return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(new Object[0]); }

  private static Seq seq(Object item) { return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(new Object[] {item}); }

  private static Seq seq(Object item, Object other) {
    return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(new Object[] {item, other});
  }
}
