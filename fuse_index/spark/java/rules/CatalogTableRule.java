package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalog.*;
import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;

/**
 * Refuses to make a table of ours in Spark's catalog, which keeps none of the options, the path among them: what CREATE TABLE,
 * saveAsTable and toTable leave there can neither be read nor written. And a table of Parquet's in a catalogue of ours, where a
 * statement says so: saveAsTable says it of itself.
 */
public class CatalogTableRule<P extends TreeNode<?>> extends PlanRule<P> {
  private static final String REFUSAL = "Spark's catalog keeps no tables of format 'fuse': CREATE TABLE, saveAsTable and toTable would"
      + " leave an entry that leads nowhere. Name the table in a catalogue that keeps them, as fuse.sales.orders by install(spark, warehouse=…),"
      + " or by its place, fuse.`/path`; or give it a name in this session by CREATE TEMPORARY VIEW name USING fuse OPTIONS (path 'url')";

  private static final String PARQUET_REFUSAL = "a table of this catalogue is of format fuse, and not 'parquet': leave USING out,"
      + " or make the table in spark_catalog";

  protected LogicalPlan rewrite(LogicalPlan plan) {
    if (!(plan instanceof Command) || !makesTable(plan.nodeName())) return plan;
    ResolvedIdentifier ours = null;
    for (int i = 0; i < plan.productArity(); i++) {
      Object part = plan.productElement(i);
      if (part instanceof ResolvedIdentifier && ((ResolvedIdentifier) part).catalog() instanceof FuseCatalog) ours = (ResolvedIdentifier) part;
      if (part instanceof TableSpecBase) check(((TableSpecBase) part).provider(), ours);
      if (part instanceof CatalogTable) check(((CatalogTable) part).provider(), ours);
    }
    return plan;
  }

  private static boolean makesTable(String command) { return command.contains("Create") || command.contains("Replace"); }

  /** `ours`: the name in a catalogue of ours, which knows the text of its statement; null in others. */
  private static void check(Option<String> provider, ResolvedIdentifier ours) {
    if (ours == null && is(provider, "fuse")) throw StatementError.invalidInput(REFUSAL);
    if (ours != null && is(provider, "parquet") && ours.origin().sqlText().isDefined()) throw StatementError.invalidInput(PARQUET_REFUSAL);
  }

  private static boolean is(Option<String> provider, String format) {
    return provider.isDefined() && format.equalsIgnoreCase((String) provider.get());
  }
}
