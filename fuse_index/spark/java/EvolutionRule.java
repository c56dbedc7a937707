import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Refuses MERGE WITH SCHEMA EVOLUTION before 4.1, where Spark reads the words and leaves out the columns that a table lacks: of all
 * that is asked while a statement is analysed, this alone sees them.
 */
public class EvolutionRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  /** Where an analyzer keeps the rules that come after its own, and before those that make a query of a MERGE. */
  private static final String RULES = "postHocResolutionRules";

  /** Gives a session's analyzer the rule, once; it has no method for that, as the optimizer has. */
  public static void install(SparkSession session) {
    Analyzer analyzer = session.sessionState().analyzer();
    List<Rule<LogicalPlan>> rules = new ArrayList<Rule<LogicalPlan>>(ScalaLists.toJava(analyzer.postHocResolutionRules()));
    for (Object rule : rules) if (rule instanceof EvolutionRule) return;
    rules.add(new EvolutionRule<LogicalPlan>());
    try {
      Field field = analyzer.getClass().getDeclaredField(RULES);
      field.setAccessible(true);
      field.set(analyzer, ScalaLists.toScala(rules));
    } catch (ReflectiveOperationException other) {
      LOG.warn("MERGE WITH SCHEMA EVOLUTION is not refused in this session, and adds no columns: " + other);
    }
  }

  protected LogicalPlan rewrite(LogicalPlan plan) {
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) rewrite(child);
    if (!(plan instanceof MergeIntoTable) || !((MergeIntoTable) plan).withSchemaEvolution()) return plan;
    MergeIntoTable merge = (MergeIntoTable) plan;
    for (LogicalPlan leaf : ScalaLists.toJava(merge.targetTable().collectLeaves())) {
      boolean ours = leaf instanceof DataSourceV2Relation && ((DataSourceV2Relation) leaf).table() instanceof FuseTable;
      if (ours && merge.sourceTable().resolved()) check((FuseTable) ((DataSourceV2Relation) leaf).table(), merge.sourceTable().schema());
    }
    return plan;
  }

  private static void check(FuseTable table, StructType source) {
    List<String> others = new ArrayList<String>();
    for (StructField column : source.fields()) if (!has(table.schema(), column)) others.add(column.name());
    if (others.isEmpty()) return;
    throw SqlFunctions.analysisError("InputError: this Spark knows the words WITH SCHEMA EVOLUTION alone, 4.1 is the first to do it, and "
        + table.name() + " has not these columns of the source, or of another type: " + String.join(", ", others)
        + ". Add or widen them by ALTER TABLE before, or say fuse_index.spark.merge(…, merge_schema=True)");
  }

  private static boolean has(StructType table, StructField column) {
    for (StructField known : table.fields()) {
      if (known.name().equalsIgnoreCase(column.name())) return known.dataType().asNullable().sameType(column.dataType().asNullable());
    }
    return false;
  }
}
