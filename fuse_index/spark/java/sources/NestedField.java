package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A column, or a part of one: what it is called, and by what its values are found in files, which is a name there or an id. The two of
 * a query and of an index are one where files have them at the same place, whatever they are called.
 */
public class NestedField {
  private static final String PHYSICAL_NAME = "delta.columnMapping.physicalName";
  private static final String FIELD_ID = "parquet.field.id";

  private final String name;
  private final String place;
  /** The text of its type where it has no parts. */
  private final String type;
  private final List<NestedField> parts = new ArrayList<NestedField>();

  private NestedField(String name, String place, String type) {
    this.name = name;
    this.place = place;
    this.type = type;
  }

  /** A column of ours, as the table calls it and as files do; files are read by ids where the second has them. */
  static NestedField ours(StructField field, StructField stored) {
    String place = stored.metadata().contains(FIELD_ID) ? String.valueOf(stored.metadata().getLong(FIELD_ID)) : stored.name();
    NestedField ours = new NestedField(field.name(), place, field.dataType().catalogString());
    List<StructField> parts = parts(field.dataType());
    List<StructField> storedParts = parts(stored.dataType());
    for (int i = 0; i < parts.size(); i++) ours.parts.add(ours((StructField) parts.get(i), (StructField) storedParts.get(i)));
    return ours;
  }

  /** A column of Parquet files, or of a Delta table, whose metadata may say what files call it. */
  static NestedField byName(StructField field) {
    String place = field.metadata().contains(PHYSICAL_NAME) ? field.metadata().getString(PHYSICAL_NAME) : field.name();
    NestedField theirs = new NestedField(field.name(), place, field.dataType().catalogString());
    for (StructField part : parts(field.dataType())) theirs.parts.add(byName(part));
    return theirs;
  }

  /** A column of Iceberg's. */
  static NestedField byId(Object field) throws ReflectiveOperationException {
    Object type = Reflection.call(field, "type");
    NestedField theirs = new NestedField((String) Reflection.call(field, "name"), String.valueOf(Reflection.call(field, "fieldId")), type.toString());
    if (!((Boolean) Reflection.call(type, "isNestedType")).booleanValue()) return theirs;
    for (Object part : (List<?>) Reflection.call(Reflection.call(type, "asNestedType"), "fields")) theirs.parts.add(byId(part));
    return theirs;
  }

  /** The fields of a struct, or what a list or a map is made of, which has no place of its own. */
  private static List<StructField> parts(DataType type) {
    if (type instanceof StructType) return Arrays.asList(((StructType) type).fields());
    if (type instanceof ArrayType) return Collections.singletonList(new StructField("element", ((ArrayType) type).elementType(), true, org.apache.spark.sql.types.Metadata.empty()));
    if (!(type instanceof MapType)) return Collections.emptyList();
    return Arrays.asList(new StructField[] {
        new StructField("key", ((MapType) type).keyType(), true, org.apache.spark.sql.types.Metadata.empty()),
        new StructField("value", ((MapType) type).valueType(), true, org.apache.spark.sql.types.Metadata.empty())});
  }

  /**
   * The type that a query has for `theirs`, of which it may read some fields alone, with our names for all that is in it; null where
   * something is not at the same place, or is of another type.
   */
  DataType inOurNames(DataType read, NestedField theirs) {
    if (read instanceof AtomicType || theirs.parts.isEmpty() || parts.isEmpty()) return read.catalogString().equals(type) ? read : null;
    if (!(read instanceof StructType)) {
      DataType renamed = inOurNames(read, theirs.parts);
      return renamed != null && renamed.catalogString().equals(type) ? renamed : null;
    }
    StructField[] fields = (StructField[]) ((StructType) read).fields().clone();
    for (int i = 0; i < fields.length; i++) {
      NestedField part = find(theirs.parts, fields[i].name(), null);
      NestedField own = part == null ? null : find(parts, null, part.place);
      DataType renamed = own == null ? null : own.inOurNames(fields[i].dataType(), part);
      if (renamed == null) return null;
      fields[i] = new StructField(own.name, renamed, fields[i].nullable(), fields[i].metadata());
    }
    return new StructType(fields);
  }

  /** Likewise of a list or a map. */
  private DataType inOurNames(DataType read, List<NestedField> theirs) {
    List<StructField> of = parts(read);
    if (of.size() != parts.size() || of.size() != theirs.size()) return null;
    List<DataType> renamed = new ArrayList<DataType>();
    for (int i = 0; i < of.size(); i++) {
      DataType type = ((NestedField) parts.get(i)).inOurNames(((StructField) of.get(i)).dataType(), (NestedField) theirs.get(i));
      if (type == null) return null;
      renamed.add(type);
    }
    if (read instanceof ArrayType) return new ArrayType((DataType) renamed.get(0), ((ArrayType) read).containsNull());
    return new MapType((DataType) renamed.get(0), (DataType) renamed.get(1), ((MapType) read).valueContainsNull());
  }

  private static NestedField find(List<NestedField> fields, String name, String place) {
    for (NestedField field : fields) if (name == null ? field.place.equals(place) : field.name.equals(name)) return field;
    return null;
  }

  public String toString() { return type; }
}
