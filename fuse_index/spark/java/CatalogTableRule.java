import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;

/**
 * Refuses to make a table of ours in Spark's catalog, which keeps none of the options, the path among them: what CREATE TABLE,
 * saveAsTable and toTable leave there can neither be read nor written.
 */
public class CatalogTableRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final String REFUSAL = "Spark's catalog keeps no tables of format 'fuse': CREATE TABLE, saveAsTable and toTable would"
      + " leave an entry that leads nowhere. Name the table in a catalogue that keeps them, as fuse.sales.orders by install(spark, warehouse=…),"
      + " or by its place, fuse.`/path`; or give it a name in this session by CREATE TEMPORARY VIEW name USING fuse OPTIONS (path 'url')";

  protected LogicalPlan rewrite(LogicalPlan plan) {
    if (!(plan instanceof Command) || !makesTable(plan.nodeName())) return plan;
    for (int i = 0; i < plan.productArity(); i++) {
      Object part = plan.productElement(i);
      if (part instanceof ResolvedIdentifier && ((ResolvedIdentifier) part).catalog() instanceof FuseCatalog) return plan;
      if (part instanceof TableSpecBase) check(((TableSpecBase) part).provider());
      if (part instanceof CatalogTable) check(((CatalogTable) part).provider());
    }
    return plan;
  }

  private static boolean makesTable(String command) { return command.contains("Create") || command.contains("Replace"); }

  private static void check(Option<String> provider) {
    if (provider.isDefined() && "fuse".equalsIgnoreCase((String) provider.get())) throw SqlFunctions.analysisError(REFUSAL);
  }
}
