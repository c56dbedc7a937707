package fuse_index.spark.java.files;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Columns that some files hold, and of which others have one value, as in a converted table where folders were partitions.
 *
 * Spark's reader gives each as three flat columns: what files hold, whether a file has one value instead, and that value. A
 * projection over the scan chooses.
 */
public class PartlyConstant {
  private static final String HELD = "__fuse_held_";
  private static final String IS_CONSTANT = "__fuse_is_constant_";
  private static final String VALUE = "__fuse_value_";

  /** What all rows of a range share of these stored columns: for each that is partly constant, whether it is there, and its value. */
  public static StructType shared(FileListing listing, StructType stored) {
    StructType shared = new StructType();
    for (StructField field : stored.fields()) {
      if (!listing.isPartlyConstant(field.name())) continue;
      shared = shared.add(IS_CONSTANT + field.name(), DataTypes.BooleanType, false).add(VALUE + field.name(), field.dataType(), true);
    }
    return shared;
  }

  /** What is read in the place of a column that files hold: itself, or only what they hold of it. */
  public static StructField held(FileListing listing, StructField column, String storedName) {
    boolean partly = listing.isPartlyConstant(storedName);
    return partly ? new StructField(HELD + storedName, column.dataType(), true, Metadata.empty()) : column;
  }

  /** Whether this is a column that says so of another; then `storedName` gives that. */
  public static boolean isFlag(FileListing listing, String name) {
    return name.startsWith(IS_CONSTANT) && listing.isPartlyConstant(storedName(listing, name));
  }

  /** The stored name of the column of which one of these is a part; of any other, its own. */
  public static String storedName(FileListing listing, String name) {
    for (String prefix : new String[] {IS_CONSTANT, VALUE}) {
      if (name.startsWith(prefix) && listing.isPartlyConstant(name.substring(prefix.length()))) return name.substring(prefix.length());
    }
    return name;
  }

  /** The column made of its parts, which are among `read`. */
  public static NamedExpression chosen(Attribute column, String storedName, List<Attribute> read) {
    Expression value = new If((Expression) Trees.find(read, IS_CONSTANT + storedName), (Expression) Trees.find(read, VALUE + storedName),
        (Expression) Trees.find(read, HELD + storedName));
    return Trees.alias(value, column);
  }
}
