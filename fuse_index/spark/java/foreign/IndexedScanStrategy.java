package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;

/**
 * Has everybody else plan a scan of a source, by its own connector, and puts over it what leaves out files by votes.
 *
 * The logical plan stays as it is: from it connectors tell which rows of a file were deleted, and which statements change it.
 */
public class IndexedScanStrategy extends SparkStrategy {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** Set while a thread has a plan planned by others. */
  private static final ThreadLocal<Boolean> BY_OTHERS = new ThreadLocal<Boolean>();

  public static class OverReader extends NodeRewrite<SparkPlan> {
    private final Connector connector;
    private final ScanPruning pruning;

    public OverReader(Connector connector, ScanPruning pruning) {
      this.connector = connector;
      this.pruning = pruning;
    }

    protected Object rewrite(Object node) { return connector.reads((SparkPlan) node) ? new IndexedScanExec((SparkPlan) node, pruning) : null; }
  }

  private final SparkSession session;
  public final SourceIndexes indexes;

  public IndexedScanStrategy(SparkSession session, SourceIndexes indexes) {
    this.session = session;
    this.indexes = indexes;
  }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (BY_OTHERS.get() != null || !(plan instanceof Project || plan instanceof Filter) || !indexes.isOn()) return ScalaLists.<SparkPlan>of();
    try {
      SparkPlan planned = planned(plan);
      if (planned != null) return ScalaLists.of(planned);
    } catch (Throwable failure) { // another release of the connector, or of Spark
      LOG.warn("every file is read: " + failure);
    }
    return ScalaLists.<SparkPlan>of();
  }

  private SparkPlan planned(LogicalPlan plan) throws ReflectiveOperationException {
    Connector connector = Connector.of(Trees.below(plan));
    List<Expression> conditions = connector == null || connector.isSwitchedOff() ? new ArrayList<Expression>() : conditions(plan);
    SourceIndex index = conditions.isEmpty() ? null : indexes.find(connector);
    ScanPruning pruning = index == null ? null : ScanPruning.of(connector, index, conditions, !tellsPieces(plan), session.sparkContext());
    if (pruning == null) return null;
    return (SparkPlan) plannedByOthers(plan).transformUp(new OverReader(connector, pruning));
  }

  /** Conditions that rows must meet before anything numbers them or draws for them, in terms of the leaf. */
  private static List<Expression> conditions(LogicalPlan plan) {
    List<Expression> conditions = new ArrayList<Expression>();
    LogicalPlan node = plan;
    while (node instanceof Project || node instanceof Filter) {
      if (!Trees.isDeterministic(node)) conditions.clear();
      else if (node instanceof Filter) conditions.addAll(Trees.conjuncts(((Filter) node).condition()));
      else conditions = inlined((Project) node, conditions);
      node = Trees.child(node);
    }
    return conditions;
  }

  /** Whether a query asks where in a file its piece begins, or how long it is. */
  private static boolean tellsPieces(LogicalPlan plan) {
    for (Expression expression : ScalaLists.toJava(plan.expressions())) if (tellsPieces(expression)) return true;
    return !plan.children().isEmpty() && tellsPieces(Trees.child(plan));
  }

  private static boolean tellsPieces(Expression expression) {
    if (expression instanceof InputFileBlockStart || expression instanceof InputFileBlockLength) return true;
    for (Expression child : ScalaLists.toJava(expression.children())) if (tellsPieces(child)) return true;
    return false;
  }

  private static List<Expression> inlined(Project project, List<Expression> conditions) {
    List<Expression> inlined = new ArrayList<Expression>();
    for (Expression condition : conditions) inlined.add(Trees.inline(project, condition));
    return inlined;
  }

  private SparkPlan plannedByOthers(LogicalPlan plan) {
    BY_OTHERS.set(Boolean.TRUE);
    try {
      return (SparkPlan) session.sessionState().planner().plan(plan).next();
    } finally {
      BY_OTHERS.remove();
    }
  }
}
