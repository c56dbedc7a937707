import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** The aggregates of our tables in an optimized plan, answered or left as they were, as what Python was asked about each. */
public class AggregateReport {
  /** A JSON list of {"voter", "request", "answered"}, or of {"snapshot", "refusal"}; equal ones once. */
  public static String of(LogicalPlan plan) {
    Set lines = new LinkedHashSet();
    walk(plan, lines);
    return "[" + String.join(",", lines) + "]";
  }

  private static void walk(LogicalPlan plan, Set lines) {
    scala.Option tag = plan.getTagValue(AggregateStates.TAG);
    AggregateQuery grouped = tag.isEmpty() ? AggregateQuery.overOurs(plan) : null;
    if (tag.isDefined()) {
      lines.add(tag.get());
    } else if (grouped != null && grouped.refusal() != null) {
      lines.add(refused(grouped.index, grouped.refusal()));
    } else if (grouped != null) {
      lines.add(line(grouped, grouped.request(grouped.index.head()), false));
    } else if (plan instanceof Aggregate) {
      String between = AggregateQuery.below((Aggregate) plan).nodeName();
      tooFar(plan.children(), "it is not right over the table: " + between + " is in between", lines);
    }
    each(plan.children(), lines);
    each(plan.subqueries(), lines);
  }

  /** Says so of each table of ours that is further below. */
  private static void tooFar(scala.collection.Seq plans, String refusal, Set lines) {
    scala.collection.Iterator each = plans.iterator();
    while (each.hasNext()) {
      LogicalPlan plan = (LogicalPlan) each.next();
      FuseIndex index = AggregateQuery.index(plan);
      if (index != null && !index.limited()) lines.add(refused(index, refusal));
      if (!(plan instanceof Aggregate)) tooFar(plan.children(), refusal, lines);
    }
  }

  private static String refused(FuseIndex index, String refusal) {
    return "{\"snapshot\":" + ExpressionJson.quoted(index.head().snapshot) + ",\"refusal\":" + ExpressionJson.quoted(refusal) + "}";
  }

  public static String line(AggregateQuery grouped, String request, boolean answered) {
    return "{\"voter\":" + ExpressionJson.quoted(grouped.index.voter()) + ",\"request\":" + ExpressionJson.quoted(request) + ",\"answered\":" + answered + "}";
  }

  private static void each(scala.collection.Seq plans, Set lines) {
    scala.collection.Iterator each = plans.iterator();
    while (each.hasNext()) walk((LogicalPlan) each.next(), lines);
  }
}
