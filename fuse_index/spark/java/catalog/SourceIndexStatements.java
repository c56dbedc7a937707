package fuse_index.spark.java.catalog;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.FieldName;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateIndex;
import org.apache.spark.sql.catalyst.plans.logical.DropIndex;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.index.SupportsIndex;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Plans CREATE INDEX and DROP INDEX on tables that know no indexes, which Spark refuses: they get those that a warehouse keeps of sources. */
public class SourceIndexStatements extends SparkStrategy {
  private final CatalogClient client;

  public SourceIndexStatements(CatalogClient client) { this.client = client; }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (plan instanceof CreateIndex && isSource(((CreateIndex) plan).table())) return planned(create((CreateIndex) plan));
    if (plan instanceof DropIndex && isSource(((DropIndex) plan).table())) return planned(drop((DropIndex) plan));
    return ScalaLists.<SparkPlan>of();
  }

  private Seq<SparkPlan> planned(Json request) { return ScalaLists.<SparkPlan>of(new SourceIndexExec(client, request)); }

  private static boolean isSource(LogicalPlan table) {
    return table instanceof ResolvedTable && !(((ResolvedTable) table).table() instanceof SupportsIndex);
  }

  private static Json request(String operation, LogicalPlan table, String index) {
    ResolvedTable resolved = (ResolvedTable) table;
    List<String> path = new ArrayList<String>();
    path.add(resolved.catalog().name());
    path.addAll(Arrays.asList(resolved.identifier().namespace()));
    path.add(resolved.identifier().name());
    return new Json().open('{').key("operation").text(operation).key("path").texts((String[]) path.toArray(new String[0])).key("index").text(index);
  }

  private static Json create(CreateIndex statement) {
    Json request = request(Protocol.CREATE_SOURCE_INDEX, statement.table(), statement.indexName());
    request.key("ignore").bool(statement.ignoreIfExists()).key("kind").text(statement.indexType()).key("columns").open('[');
    for (Tuple2<FieldName, scala.collection.immutable.Map<String, String>> column : ScalaLists.toJava(statement.columns())) {
      List<String> names = ScalaLists.toJava(((FieldName) column._1()).name());
      request.open('{').key("path").texts((String[]) names.toArray(new String[0]));
      CatalogClient.object(request.key("options"), CollectionConverters.asJava((scala.collection.immutable.Map<String, String>) column._2()));
      request.close('}');
    }
    return CatalogClient.object(request.close(']').key("options"), CollectionConverters.asJava(statement.properties()));
  }

  private static Json drop(DropIndex statement) {
    return request(Protocol.DROP_SOURCE_INDEX, statement.table(), statement.indexName()).key("ignore").bool(statement.ignoreIfNotExists());
  }
}
