package fuse_index.spark.java.read;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A scan that gives parts of columns, as Spark's reader has them, and the projection over it that makes columns of them. */
public class FlatScan {
  /** The plan `relation`, over a scan that gives parts in the place of its own. */
  public static LogicalPlan flatten(LogicalPlan relation, FuseScan flat) {
    List<Attribute> given = ScalaLists.toJava(relation.output());
    List<Attribute> read = new ArrayList<Attribute>();
    for (StructField field : flat.readSchema().fields()) {
      Attribute known = find(given, field.name());
      read.add(known != null ? known : new AttributeReference(field.name(), field.dataType(), field.nullable(), Metadata.empty(),
          NamedExpression$.MODULE$.newExprId(), ScalaLists.toScala(new ArrayList<String>())));
    }
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    for (Attribute column : given) columns.add(made(column, flat, read));
    return new Project(ScalaLists.toScala(columns), flat.replaceIn(relation, ScalaLists.toScala(read)));
  }

  private static NamedExpression made(Attribute column, FuseScan flat, List<Attribute> read) {
    if (find(read, column.name()) != null) return column;
    StructType schema = flat.snapshot.schema;
    if (schema.getFieldIndex(column.name()).isEmpty()) return FileMetadata.structOf((AttributeReference) column, read);
    return PartlyConstant.chosen(column, flat.snapshot.storedSchema.fields()[schema.fieldIndex(column.name())].name(), read);
  }

  /** The one of this name; null if there is none. */
  public static Attribute find(List<Attribute> columns, String name) {
    for (Attribute column : columns) if (column.name().equals(name)) return column;
    return null;
  }
}
