import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;

/** The scans of our tables in an executed plan, as adaptive execution left it. */
public class Scans {
  private final Set found = new LinkedHashSet();

  private Scans() {}

  /** What Python was, or will be, asked by the scans; equal ones once. */
  public static List of(SparkPlan plan) {
    Scans scans = new Scans();
    scans.walk(plan);
    return new ArrayList(scans.found);
  }

  private void walk(SparkPlan plan) {
    if (plan instanceof FileSourceScanExec) scan((FileSourceScanExec) plan);
    else if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).executedPlan());
    else if (plan instanceof QueryStageExec) walk(((QueryStageExec) plan).plan());
    else if (plan instanceof InMemoryTableScanExec) walk(((InMemoryTableScanExec) plan).relation().cachedPlan());
    else if (plan instanceof ReusedExchangeExec) return; // its scans stand where the exchange is made
    each(plan.children());
    each(plan.subqueries());
  }

  private void each(scala.collection.Seq plans) {
    scala.collection.Iterator each = plans.iterator();
    while (each.hasNext()) walk((SparkPlan) each.next());
  }

  private void scan(FileSourceScanExec scan) {
    Object location = scan.relation().location();
    if (location instanceof FuseIndex) found.add(((FuseIndex) location).request(scan.dataFilters()));
  }
}
