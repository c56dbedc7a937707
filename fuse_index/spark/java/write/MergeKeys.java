package fuse_index.spark.java.write;

import fuse_index.spark.java.aggregate.*;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.RowOrdering$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.DataType;

/**
 * The query of a MERGE, whose table is read where keys of its source may be, and nowhere else.
 *
 * The source is evaluated before the table is read, once: what is random in it, or changes, is the same to its keys and to the join.
 * A MERGE that is about rows without a match reads the whole table, and so does one whose source reads the table itself.
 */
public class MergeKeys {
  private static final String KEY = "key";

  /** Takes out what waits for keys of the other side: the source is read as it is, and its keys are known when the table is. */
  public static class WithoutPruning extends NodeRewrite<Expression> {
    protected Object rewrite(Object node) { return node instanceof DynamicPruningSubquery ? Literal.TrueLiteral() : null; }
  }

  private final SparkSession session;
  private final LogicalPlan query;
  private final Join join;
  private final boolean targetIsLeft;
  private final LogicalPlan scan;
  private final List<EqualTo> equalities;
  /** Whether no more rows than keys that are asked about turned out to be in the source. */
  private boolean isFew;

  private MergeKeys(SparkSession session, LogicalPlan query, Join join, LogicalPlan scan) {
    this.session = session;
    this.query = query;
    this.join = join;
    this.scan = scan;
    this.targetIsLeft = Trees.below(join.left()) == scan;
    this.equalities = new ArrayList<EqualTo>();
    if (join.condition().isEmpty()) return;
    for (Expression conjunct : Trees.conjuncts((Expression) join.condition().get())) addEquality(conjunct);
  }

  /** Finds the keys of the query of a MERGE into this table; null where they say nothing of the rows that matter. */
  public static MergeKeys of(FuseTable table, Dataset<Row> rows) {
    LogicalPlan query = (LogicalPlan) rows.queryExecution().optimizedPlan().transformAllExpressions(new WithoutPruning());
    LogicalPlan scan = onlyScan(query, table.snapshot().url);
    Join join = scan == null ? null : joinOver(query, scan);
    MergeKeys keys = join == null ? null : new MergeKeys(table.session, query, join, scan);
    return keys == null || keys.equalities.isEmpty() ? null : keys;
  }

  /** The scan of the table at a URL; null where several read it, or something else knows its rows. */
  private static LogicalPlan onlyScan(LogicalPlan query, String url) {
    List<LogicalPlan> plans = new ArrayList<LogicalPlan>(ScalaLists.toJava(query.subqueriesAll()));
    plans.add(query);
    LogicalPlan found = null;
    for (LogicalPlan plan : plans) {
      if (hasAnswer(plan)) return null;
      for (LogicalPlan leaf : ScalaLists.toJava(plan.collectLeaves())) {
        if (FuseScan.below(leaf) == null || !FuseScan.below(leaf).snapshot.url.equals(url)) continue;
        if (found != null) return null;
        found = leaf;
      }
    }
    return found;
  }

  private static boolean hasAnswer(LogicalPlan plan) {
    if (plan.getTagValue(AggregateStates.REPORT_TAG).isDefined()) return true;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) if (hasAnswer(child)) return true;
    return false;
  }

  /** The join right over the scan, if rows of the scan without a match are left out by it. */
  private static Join joinOver(LogicalPlan plan, LogicalPlan scan) {
    if (plan instanceof Join) {
      Join join = (Join) plan;
      JoinType type = join.joinType();
      if (Trees.below(join.left()) == scan) return type == Inner$.MODULE$ || type == RightOuter$.MODULE$ ? join : null;
      if (Trees.below(join.right()) == scan) return type == Inner$.MODULE$ || type == LeftAnti$.MODULE$ ? join : null;
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) {
      Join found = joinOver(child, scan);
      if (found != null) return found;
    }
    return null;
  }

  private LogicalPlan target() { return targetIsLeft ? join.left() : join.right(); }

  private LogicalPlan source() { return targetIsLeft ? join.right() : join.left(); }

  /** Keeps `term of the table = term of the source`, in this order. */
  private void addEquality(Expression conjunct) {
    if (!(conjunct instanceof EqualTo) || !conjunct.deterministic() || SubqueryExpression.hasSubquery(conjunct)) return;
    Expression left = ((EqualTo) conjunct).left();
    Expression right = ((EqualTo) conjunct).right();
    boolean turned = left.references().subsetOf(source().outputSet());
    Expression column = turned ? right : left;
    Expression value = turned ? left : right;
    // A float is wrapped by what joins compare it by, which statistics do not know: IN tells -0.0 from 0.0, so it stays wrapped.
    boolean apart = column.references().subsetOf(scan.outputSet()) && value.references().subsetOf(source().outputSet());
    if (apart && column.references().nonEmpty()) equalities.add(new EqualTo(column, value));
  }

  /** Does the statement, by the rows of the query. Raises what it raises, and what Spark says of the source. */
  public void run(RowStatement statement) {
    Dataset<Row> evaluated = isAtHand(source()) ? null : (Dataset<Row>) dataset(source()).localCheckpoint();
    try {
      LogicalPlan rows = evaluated == null ? source() : evaluated.logicalPlan();
      List<Expression> conditions = new ArrayList<Expression>();
      for (EqualTo equality : equalities) addMembership(equality.left(), equality.right(), rows, conditions);
      if (evaluated != null && isFew) rows = new Repartition(1, false, rows); // or each partition would add a block
      Join known = known(rows, conditions);
      addConditions(target(), conditions);
      statement.run(toldTo(new Filter(Trees.and(conditions), scan)), dataset(Trees.replace(query, join, known)));
    } finally {
      if (evaluated != null) ((LogicalRDD) evaluated.logicalPlan()).rdd().unpersist(false);
    }
  }

  /** The join of these rows of the source with the rows of the table that have one of their keys. */
  private Join known(LogicalPlan rows, List<Expression> conditions) {
    LogicalPlan filtered = Trees.replace(target(), scan, new Filter(Trees.and(conditions), scan));
    return new Join(targetIsLeft ? filtered : rows, targetIsLeft ? rows : filtered, join.joinType(), join.condition(), join.hint());
  }

  public boolean areAtHand() { return isAtHand(source()); }

  /** The rows that the statement changes, where its source is at hand. */
  public Dataset<Row> knownRows() {
    List<Expression> conditions = new ArrayList<Expression>();
    for (EqualTo equality : equalities) addMembership(equality.left(), equality.right(), source(), conditions);
    return dataset(Trees.replace(query, join, known(source(), conditions)));
  }

  /** By what rows of the table match rows of the source, as SQL. */
  public List<String> conditions() {
    List<String> conditions = new ArrayList<String>();
    for (EqualTo equality : equalities) conditions.add(equality.sql());
    return conditions;
  }

  /** Rows that the statement came with, which are the same whenever they are looked at. */
  private static boolean isAtHand(LogicalPlan source) {
    LogicalPlan below = Trees.below(source);
    return below instanceof LocalRelation && source.deterministic() && source.subqueriesAll().isEmpty();
  }

  private Dataset<Row> dataset(LogicalPlan plan) {
    plan.setAnalyzed(); // it is, and optimised
    return (Dataset<Row>) Dataset$.MODULE$.ofRows(session, plan);
  }

  /** What is true of every row of the table whose `column` has a value that `value` has in these rows. */
  private void addMembership(Expression column, Expression value, LogicalPlan rows, List<Expression> conditions) {
    Dataset<Row> keys = dataset(new Project(ScalaLists.<NamedExpression>of(Trees.alias(value, KEY)), rows));
    InternalRow[] found = collect((Dataset<Row>) keys.limit(Protocol.MAX_KEYS + 1));
    isFew = found.length <= Protocol.MAX_KEYS;
    if (found.length > Protocol.MAX_KEYS) found = collect((Dataset<Row>) ((Dataset<Row>) keys.distinct()).limit(Protocol.MAX_KEYS + 1));
    if (found.length <= Protocol.MAX_KEYS) {
      List<Expression> values = new ArrayList<Expression>();
      for (InternalRow row : found) if (!row.isNullAt(0)) values.add(literal(row, 0, value.dataType()));
      conditions.add(values.isEmpty() ? Literal.FalseLiteral() : new In(column, ScalaLists.toScala(values)));
    } else if (RowOrdering$.MODULE$.isOrderable(value.dataType())) {
      InternalRow bounds = collect((Dataset<Row>) keys.selectExpr(new String[] {"min(" + KEY + ")", "max(" + KEY + ")"}))[0];
      conditions.add(new GreaterThanOrEqual(column, literal(bounds, 0, value.dataType())));
      conditions.add(new LessThanOrEqual(column, literal(bounds, 1, value.dataType())));
    }
  }

  private static InternalRow[] collect(Dataset<Row> rows) { return rows.queryExecution().executedPlan().executeCollect(); }

  private static Expression literal(InternalRow row, int column, DataType type) { return new Literal(row.copy().get(column, type), type); }

  /** Adds what else the statement asks of rows of the table. */
  private void addConditions(LogicalPlan plan, List<Expression> conditions) {
    if (plan instanceof Filter) {
      for (Expression conjunct : Trees.conjuncts(((Filter) plan).condition())) {
        if (conjunct.references().subsetOf(scan.outputSet())) conditions.add(conjunct);
      }
    }
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) addConditions(child, conditions);
  }

  /** What the optimizer makes of a filter over the table, as it is told to a scan: on other rows nothing depends. */
  private Expression toldTo(Filter filter) {
    filter.setAnalyzed();
    LogicalPlan optimized = (LogicalPlan) session.sessionState().optimizer().execute(filter);
    for (LogicalPlan leaf : ScalaLists.toJava(optimized.collectLeaves())) {
      if (FuseScan.below(leaf) != null) return Trees.and(FuseScan.below(leaf).filters());
    }
    return Literal.FalseLiteral();
  }
}
