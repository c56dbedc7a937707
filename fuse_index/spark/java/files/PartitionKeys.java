package fuse_index.spark.java.files;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/** The partition of each file of a snapshot: columns of which all rows of a file have one value. */
public class PartitionKeys {
  /** Columns, by their stored names. */
  private final List<String> columns = new ArrayList<String>();
  private final JsonNode values;
  private final JsonNode partitionOfFile;

  /** `{"columns": [names], "values": [[texts], ...], "of": [for each file the number of its values, or null]}`; null: there are none. */
  public PartitionKeys(JsonNode json) {
    if (json != null) for (JsonNode column : json.get("columns")) columns.add(column.asText());
    values = json == null ? null : json.get("values");
    partitionOfFile = json == null ? null : json.get("of");
  }

  public boolean has(String storedName) { return columns.contains(storedName); }

  /** The values of these columns in a file, as Catalyst has them; null where the file may be of many partitions. */
  public InternalRow of(int file, StructType storedColumns) {
    JsonNode number = (JsonNode) partitionOfFile.get(file);
    if (number.isNull()) return null;
    Object[] row = new Object[storedColumns.length()];
    for (int i = 0; i < row.length; i++) {
      JsonNode text = (JsonNode) values.get(number.asInt()).get(columns.indexOf(storedColumns.fields()[i].name()));
      row[i] = Constants.value(text.isNull() ? null : text.asText(), storedColumns.fields()[i].dataType());
    }
    return new GenericInternalRow(row);
  }

  /** The different keys of these files; null where one may be of many partitions. */
  public Set<InternalRow> distinct(List<Integer> files, StructType storedColumns) {
    Set<InternalRow> found = new HashSet<InternalRow>();
    for (Integer file : files) {
      InternalRow key = of(file.intValue(), storedColumns);
      if (key == null) return null;
      found.add(key);
    }
    return found;
  }
}
