import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** The aggregates of our tables in an optimized plan, answered or left as they were, as what Python was asked about each. */
public class Answers {
  /** A JSON list of {"voter", "request", "answered"}, or of {"snapshot", "refusal"}; equal ones once. */
  public static String of(LogicalPlan plan) {
    Set lines = new LinkedHashSet();
    walk(plan, lines);
    return "[" + String.join(",", lines) + "]";
  }

  private static void walk(LogicalPlan plan, Set lines) {
    scala.Option tag = plan.getTagValue(States.TAG);
    Grouped grouped = tag.isEmpty() ? Grouped.overOurs(plan) : null;
    if (tag.isDefined()) {
      lines.add(tag.get());
    } else if (grouped != null && grouped.refusal() != null) {
      String snapshot = grouped.index.head().snapshot;
      lines.add("{\"snapshot\":" + Trees.quoted(snapshot) + ",\"refusal\":" + Trees.quoted(grouped.refusal()) + "}");
    } else if (grouped != null) {
      lines.add(line(grouped, grouped.request(grouped.index.head()), false));
    }
    each(plan.children(), lines);
    each(plan.subqueries(), lines);
  }

  public static String line(Grouped grouped, String request, boolean answered) {
    return "{\"voter\":" + Trees.quoted(grouped.index.voter()) + ",\"request\":" + Trees.quoted(request) + ",\"answered\":" + answered + "}";
  }

  private static void each(scala.collection.Seq plans, Set lines) {
    scala.collection.Iterator each = plans.iterator();
    while (each.hasNext()) walk((LogicalPlan) each.next(), lines);
  }
}
