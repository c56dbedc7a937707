package fuse_index.spark.java.aggregate;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** The aggregates over our tables in an optimized plan, answered from states or left to Spark, for `explain`. */
public class AggregateReport {
  /** A JSON list of {"callback", "request", "answered"}, or of {"snapshot", "refusal"}; equal ones once. */
  public static String of(LogicalPlan plan) {
    Set<String> lines = new LinkedHashSet<String>();
    walk(plan, lines);
    return Json.list(lines);
  }

  private static void walk(LogicalPlan plan, Set<String> lines) {
    scala.Option<String> tag = plan.getTagValue(AggregateStates.REPORT_TAG);
    AggregateQuery query = tag.isEmpty() ? AggregateQuery.overFuseTable(plan) : null;
    if (tag.isDefined()) {
      lines.add((String) tag.get());
    } else if (query != null && query.refusal() != null) {
      lines.add(refusalLine(query.scan, query.refusal()));
    } else if (query != null) {
      lines.add(jsonLine(query, query.request(), false));
    } else if (plan instanceof Aggregate) {
      String between = Trees.below(((Aggregate) plan).child()).nodeName();
      reportTooFar(plan.children(), "it is not right over the table: " + between + " is in between", lines);
    }
    walkAll(plan.children(), lines);
    walkAll(plan.subqueries(), lines);
  }

  private static void walkAll(scala.collection.Seq<LogicalPlan> plans, Set<String> lines) {
    for (LogicalPlan plan : ScalaLists.toJava(plans)) walk(plan, lines);
  }

  /** A line of refusal for each of our tables below these plans, down to the next aggregate. */
  private static void reportTooFar(scala.collection.Seq<LogicalPlan> plans, String refusal, Set<String> lines) {
    for (LogicalPlan plan : ScalaLists.toJava(plans)) {
      FuseScan scan = FuseScan.below(plan);
      if (scan != null && !scan.asked.isRestricted()) lines.add(refusalLine(scan, refusal));
      if (!(plan instanceof Aggregate)) reportTooFar(plan.children(), refusal, lines);
    }
  }

  private static String refusalLine(FuseScan scan, String refusal) {
    return new Json().open('{').key("snapshot").text(scan.snapshot.id).key("refusal").text(refusal).close('}').toString();
  }

  public static String jsonLine(AggregateQuery query, String request, boolean answered) {
    return new Json().open('{').key("callback").text(query.scan.snapshot.callbackKey).key("request").text(request)
        .key("table").text(((DataSourceV2ScanRelation) query.relation).relation().table().name()).key("answered").bool(answered).close('}').toString();
  }
}
