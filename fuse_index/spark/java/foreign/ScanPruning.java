package fuse_index.spark.java.foreign;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.sources.*;
import java.util.*;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Map;

/** What is asked about a connector's scan, and what its votes left out: once, when the scan is about to be executed. */
public class ScanPruning {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");

  private final Connector connector;
  private final SourceIndex index;
  /** The question; scans with equal ones, over equal scans, read the same. */
  public final VoteQuestion question;
  private final LinkedHashMap<String, String> refused;
  private final SparkContext context;
  public final Map<String, SQLMetric> metrics;
  /** Whether row groups may be left out of files that are read: not where a query asks for the pieces that a file is read in. */
  private final boolean mayCut;
  private final boolean mayRenumber;
  private SparkPlan decidedFor;
  private FileVotes votes;
  private String problem;

  private ScanPruning(Connector connector, SourceIndex index, VoteQuestion question, LinkedHashMap<String, String> refused, WantedRows wanted, SparkContext context) {
    this.connector = connector;
    this.index = index;
    this.question = question;
    this.refused = refused;
    this.mayCut = wanted.mayCut;
    this.mayRenumber = wanted.mayRenumber;
    this.context = context;
    this.metrics = ScanMetrics.ofFiles(context);
  }

  /** What a fragment of a plan over a leaf wants of it; null where nobody can vote on any of it that is worth a question. */
  public static ScanPruning of(Connector connector, SourceIndex index, WantedRows wanted, SparkContext context) throws ReflectiveOperationException {
    SourceColumns columns = connector.columns(index);
    if (columns.isEmpty()) return null;
    LinkedHashMap<String, String> refused = new LinkedHashMap<String, String>();
    List<Expression> asked = new ArrayList<Expression>();
    boolean worthAsking = columns.translateAll(wanted.conditions, asked, refused);
    Json top = wanted.isFirst() && refused.isEmpty() && connector.tellsDeletedRows() ? wanted.top(columns, index) : null;
    if (!worthAsking && top == null) return null;
    return new ScanPruning(connector, index, index.question(asked, top), refused, wanted, context);
  }

  /** The node that reads the files, in a plan of one leaf; null where something else stands there, which reads them in its own way. */
  private SparkPlan reader(SparkPlan plan) {
    SparkPlan node = plan;
    while (!connector.reads(node)) {
      if (node.children().length() != 1) return null;
      node = (SparkPlan) node.children().head();
    }
    return node;
  }

  /** Leaves files out of what `plan` reads, which is planned, and of which no task has begun. */
  public synchronized void leaveOut(SparkPlan plan) {
    SparkPlan scan = reader(plan);
    if (scan == null || scan == decidedFor) return;
    votes = null;
    try {
      FileVotes asked = new FileVotes(index);
      connector.list(scan, asked);
      problem = asked.ask(question, connector.hadoop());
      if (problem != null) return;
      connector.leaveOut(scan, asked, mayCut, mayRenumber);
      votes = asked;
      index.meet(asked.filesUnknown());
      decidedFor = scan;
      ScanMetrics.post(context, metrics, new CustomTaskMetric[] {
          new ScanMetrics.Measured(ScanMetrics.READ, asked.bytesRead()), new ScanMetrics.Measured(ScanMetrics.SKIPPED, asked.bytesSkipped()),
          new ScanMetrics.Measured(ScanMetrics.FILES_READ, asked.files() - asked.filesLeftOut()),
          new ScanMetrics.Measured(ScanMetrics.FILES_LEFT_OUT, asked.filesLeftOut()),
          new ScanMetrics.Measured(ScanMetrics.FILES_UNKNOWN, asked.filesUnknown())});
    } catch (Throwable failure) { // another release of the connector, or of Spark
      SafeRule.restoreInterrupt(failure);
      problem = failure.toString();
      LOG.warn("every file of " + index.source + " is read: " + failure);
    }
  }

  /** An element of what ScanReport makes: with the source, and how many of its files there are, were left out, are not known and are read in part. */
  public synchronized String reportLine() {
    Json line = new Json().open('{').key("callback").text(index.snapshot.callbackKey).key("request").text(votes == null ? question.text(Collections.<Integer>emptyList()) : votes.request());
    line.key("table").text(index.source).key("alias").text("").key("unpushed").open('{');
    for (String condition : refused.keySet()) line.key(condition).text((String) refused.get(condition));
    line.close('}').key("awaited").open('[').close(']').key("source").open('{').key("connector").text(connector.format());
    if (!Releases.isTested(connector.format())) line.key("release").text(String.valueOf(Releases.of(connector.format())));
    if (problem != null) line.key("problem").text(problem);
    if (votes != null) {
      line.key("files").json(String.valueOf(votes.files())).key("left_out").json(String.valueOf(votes.filesLeftOut()));
      line.key("unknown").json(String.valueOf(votes.filesUnknown())).key("in_part").json(String.valueOf(votes.filesInPart()));
    }
    return line.close('}').close('}').toString();
  }

  public synchronized String toString() {
    return index.source + (votes != null ? ": " + votes : problem != null ? ": every file is read, because " + problem : "");
  }
}
