package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
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

  /** An argument as text: of an array, which has strings, a list of JSON, and of a map an object. */
  private String text(InternalRow input, int number) {
    DataType type = parameters[number].dataType();
    if (type instanceof ArrayType) return list(input.getArray(number));
    if (!(type instanceof MapType)) return input.get(number, type).toString();
    ArrayData keys = input.getMap(number).keyArray();
    ArrayData values = input.getMap(number).valueArray();
    Json object = new Json().open('{');
    for (int i = 0; i < keys.numElements(); i++) {
      object.key(keys.getUTF8String(i).toString());
      if (values.isNullAt(i)) object.json("null");
      else object.text(values.getUTF8String(i).toString());
    }
    return object.close('}').toString();
  }

  private static String list(ArrayData texts) {
    Json list = new Json().open('[');
    for (int i = 0; i < texts.numElements(); i++) {
      if (texts.isNullAt(i)) list.json("null");
      else list.text(texts.getUTF8String(i).toString());
    }
    return list.close(']').toString();
  }

  /** Arguments are sent as text; Python knows their types. */
  public Iterator<Scan> call(InternalRow input) {
    Json request = client.request(Protocol.CALL_PROCEDURE, client.currentNamespace()).key("procedure").text(name).key("arguments").open('{');
    for (int i = 0; i < parameters.length; i++) {
      request.key(parameters[i].name());
      if (input.isNullAt(i)) request.json("null");
      else request.text(text(input, i));
    }
    Scan rows = new LocalRows(client.ask(request.close('}')));
    return Collections.singletonList(rows).iterator();
  }
}
