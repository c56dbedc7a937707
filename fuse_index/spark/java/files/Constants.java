package fuse_index.spark.java.files;

import java.math.BigDecimal;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values that all rows of a file share, such as those of partition columns, as Catalyst has them. */
public class Constants {
  /**
   * Those of a file for these columns, in their order, and what `PartlyConstant.shared` has of others; then, if it is to be told, the
   * file's deletion vector, or null.
   */
  public static Object[] of(FileListing listing, int file, StructType columns, FileMetadata metadata) {
    Object[] values = new Object[columns.length() + (metadata.tellsDeletedRows() ? 1 : 0)];
    if (metadata.tellsDeletedRows()) values[columns.length()] = listing.deletedRows(file);
    for (int i = 0; i < columns.length(); i++) {
      StructField column = columns.fields()[i];
      String stored = PartlyConstant.storedName(listing, column.name());
      if (PartlyConstant.isFlag(listing, column.name())) values[i] = Boolean.valueOf(listing.hasConstant(file, stored));
      else values[i] = value(listing.constant(file, stored), column.dataType());
    }
    return values;
  }

  /** Days and times come as their numbers, bytes as hex. */
  public static Object value(String text, DataType type) {
    if (text == null) return null;
    if (type instanceof StringType) return UTF8String.fromString(text);
    if (type instanceof BooleanType) return Boolean.valueOf(text);
    if (type instanceof ByteType) return Byte.valueOf(text);
    if (type instanceof ShortType) return Short.valueOf(text);
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(text);
    if (type instanceof FloatType) return Float.valueOf(text);
    if (type instanceof DoubleType) return Double.valueOf(text);
    if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      return Decimal.apply(new BigDecimal(text), decimal.precision(), decimal.scale());
    }
    if (type instanceof BinaryType) {
      byte[] bytes = new byte[text.length() / 2];
      for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
      return bytes;
    }
    return Long.valueOf(text); // whole numbers, and times in microseconds
  }
}
