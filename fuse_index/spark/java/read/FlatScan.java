package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A scan that gives parts of columns, as Spark's reader has them, and the projection over it that makes columns of them. */
public class FlatScan {
  /** The plan `relation`, over a scan that gives parts in the place of its own. */
  public static LogicalPlan flatten(LogicalPlan relation, FuseScan flat) {
    List<Attribute> read = columns(relation, flat);
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    for (Attribute column : ScalaLists.toJava(relation.output())) columns.add(made(column, flat, read));
    return new Project(ScalaLists.toScala(columns), flat.replaceIn(relation, ScalaLists.toScala(read)));
  }

  /** What a scan gives in the place of that of `relation`: its columns, where they have one of that name. */
  public static List<Attribute> columns(LogicalPlan relation, FuseScan scan) {
    List<Attribute> columns = new ArrayList<Attribute>();
    for (StructField field : scan.readSchema().fields()) {
      Attribute known = Trees.find(ScalaLists.toJava(relation.output()), field.name());
      columns.add(known != null ? known : Trees.attribute(field.name(), field.dataType(), field.nullable()));
    }
    return columns;
  }

  private static NamedExpression made(Attribute column, FuseScan flat, List<Attribute> read) {
    if (Trees.find(read, column.name()) != null) return column;
    StructType schema = flat.snapshot.schema;
    if (schema.getFieldIndex(column.name()).isEmpty()) return FileMetadata.structOf((AttributeReference) column, read);
    return PartlyConstant.chosen(column, flat.snapshot.storedSchema.fields()[schema.fieldIndex(column.name())].name(), read);
  }
}
