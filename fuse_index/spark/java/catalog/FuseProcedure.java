package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A procedure of a catalogue, which Python does and describes; its rows are the result of CALL. */
public class FuseProcedure implements UnboundProcedure, BoundProcedure {
  private final CatalogClient client;
  private final String name;
  private final String description;
  private final ProcedureParameter[] parameters;

  /** `described`: its description, and its parameters with name, type, comment and, unless it is required, the SQL of its default. */
  public FuseProcedure(CatalogClient client, String name, JsonNode described) {
    this.client = client;
    this.name = name;
    this.description = described.get("description").asText();
    this.parameters = new ProcedureParameter[described.get("parameters").size()];
    int i = 0;
    for (JsonNode each : described.get("parameters")) {
      ProcedureParameter.Builder parameter = ProcedureParameter.in(each.get("name").asText(), DataType.fromDDL(each.get("type").asText()));
      parameter = parameter.comment(each.get("comment").asText());
      if (each.has("default")) parameter = parameter.defaultValue(each.get("default").asText());
      parameters[i++] = parameter.build();
    }
  }

  public String name() { return name; }

  public String description() { return description; }

  public BoundProcedure bind(StructType input) { return this; }

  public ProcedureParameter[] parameters() { return parameters; }

  public boolean isDeterministic() { return false; }

  /** Arguments are sent as text; Python knows their types. */
  public Iterator<Scan> call(InternalRow input) {
    Json request = client.request("call", client.currentNamespace()).key("procedure").text(name).key("arguments").open('{');
    for (int i = 0; i < parameters.length; i++) {
      request.key(parameters[i].name());
      if (input.isNullAt(i)) request.json("null");
      else request.text(input.get(i, parameters[i].dataType()).toString());
    }
    Scan rows = new LocalRows(client.ask(request.close('}')));
    return Collections.singletonList(rows).iterator();
  }
}
