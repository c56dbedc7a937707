import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The hidden column `_metadata`, which says where a row lies, as for Spark's own files.
 *
 * Spark's reader gives flat columns: values that all rows of a range share, and the number of a row. A projection over the
 * scan makes the struct of them.
 */
public class FileMetadata {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  public static final String COLUMN = "_metadata";
  /** By this name Spark's reader knows the number of a row in its file. */
  public static final String ROW_INDEX = "_tmp_metadata_row_index";
  private static final String FLAT = "__fuse_";
  /** The deletion vector of a file, beside the numbers of rows: what LiveRows asks for. */
  public static final String DELETED = FLAT + "deleted";
  private static final StructType ALL = new StructType().add("file_path", DataTypes.StringType, false)
      .add("file_name", DataTypes.StringType, false).add("file_size", DataTypes.LongType, false)
      .add("file_block_start", DataTypes.LongType, false).add("file_block_length", DataTypes.LongType, false)
      .add("file_modification_time", DataTypes.TimestampType, false).add("row_index", DataTypes.LongType, true);

  public static class Column implements MetadataColumn {
    public String name() { return COLUMN; }

    public DataType dataType() { return ALL; }

    public boolean isNullable() { return false; }
  }

  /** The fields of a struct that are asked for; none where it is null. */
  private final StructType fields;
  /** Whether the scan tells which rows no longer count. */
  private final boolean deletedRows;
  /** Of files, by their paths, each of which is asked for once. */
  private final HashMap<String, Long> modified = new HashMap<String, Long>();

  public FileMetadata(StructType fields) { this(fields == null ? new StructType() : fields, false); }

  private FileMetadata(StructType fields, boolean deletedRows) {
    this.fields = fields;
    this.deletedRows = deletedRows;
  }

  /** The same, and the number of each row with the vector of its file. */
  public FileMetadata tellingDeletedRows() { return new FileMetadata(fields, true); }

  public boolean tellsDeletedRows() { return deletedRows; }

  public boolean isEmpty() { return fields.length() == 0 && !deletedRows; }

  /** The number of a row, if it is asked for: a column of the file to Spark's reader. */
  public StructType read() {
    boolean wanted = deletedRows || fields.getFieldIndex("row_index").isDefined();
    return wanted ? new StructType().add(ROW_INDEX, DataTypes.LongType, true) : new StructType();
  }

  /** What all rows of a range share, which Spark's reader puts behind the file's own columns. */
  public StructType constants() {
    StructType constants = new StructType();
    if (deletedRows) constants = constants.add(DELETED, DataTypes.BinaryType, true);
    for (StructField field : fields.fields()) {
      if (!field.name().equals("row_index")) constants = constants.add(FLAT + field.name(), field.dataType(), false);
    }
    return constants;
  }

  /** Values of the columns that a range has one value of: those of the table's first, given with the file's vector, then ours. */
  public InternalRow values(Configuration hadoop, String path, long start, long length, long fileSize, Object[] first) {
    List<Object> values = new ArrayList<Object>();
    for (Object value : first) values.add(value);
    for (StructField field : fields.fields()) {
      String name = field.name();
      if (name.equals("file_path")) values.add(UTF8String.fromString(path));
      else if (name.equals("file_name")) values.add(UTF8String.fromString(path.substring(path.lastIndexOf('/') + 1)));
      else if (name.equals("file_size")) values.add(Long.valueOf(fileSize));
      else if (name.equals("file_block_start")) values.add(Long.valueOf(start));
      else if (name.equals("file_block_length")) values.add(Long.valueOf(length));
      else if (name.equals("file_modification_time")) values.add(modified(hadoop, path));
    }
    return new GenericInternalRow(values.toArray());
  }

  /** When a file was written, in microseconds: our listings do not say. One that is gone is told of by whoever reads it. */
  private Long modified(Configuration hadoop, String path) {
    Long known = (Long) modified.get(path);
    if (known != null) return known;
    long microseconds = 0L;
    try {
      Path file = new Path(URI.create(path));
      microseconds = 1000L * file.getFileSystem(hadoop).getFileStatus(file).getModificationTime();
    } catch (IOException unreadable) {
      LOG.warn("it is not known when " + path + " was written: " + unreadable);
    }
    modified.put(path, Long.valueOf(microseconds));
    return Long.valueOf(microseconds);
  }

  /** The struct, made of its parts, which are among `parts`. */
  public static NamedExpression structOf(AttributeReference struct, List<Attribute> parts) {
    List<Expression> members = new ArrayList<Expression>();
    for (StructField field : ((StructType) struct.dataType()).fields()) {
      members.add(Literal$.MODULE$.apply(field.name()));
      members.add((Expression) FlatScan.find(parts, flatName(field.name())));
    }
    return new Alias(new CreateNamedStruct(ScalaLists.toScala(members)), struct.name(), struct.exprId(), struct.qualifier(),
        scala.Option.apply(struct.metadata()), ScalaLists.toScala(new ArrayList<String>()));
  }

  private static String flatName(String field) { return field.equals("row_index") ? ROW_INDEX : FLAT + field; }
}
