package fuse_index.spark.java.files;

import fuse_index.spark.java.catalyst.*;
import java.io.IOException;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
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

/**
 * The hidden column `_metadata`, which says where a row lies, as for Spark's own files.
 *
 * Spark's reader gives flat columns: values that all rows of a range share, and the number of a row. A projection over the
 * scan makes the struct of them.
 */
public class FileMetadata {
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

  /** When a file was written: a request to a store. */
  public static class Modified implements Callable<Object> {
    private final Configuration hadoop;
    private final String path;

    public Modified(Configuration hadoop, String path) {
      this.hadoop = hadoop;
      this.path = path;
    }

    public Object call() throws IOException {
      Path file = new Path(path);
      return Long.valueOf(1000L * file.getFileSystem(hadoop).getFileStatus(file).getModificationTime());
    }
  }

  public static class Column implements MetadataColumn {
    public String name() { return COLUMN; }

    public DataType dataType() { return ALL; }

    public boolean isNullable() { return false; }
  }

  /** The fields of a struct that are asked for; none where it is null. */
  private final StructType fields;
  /** Whether the scan tells which rows no longer count. */
  private final boolean deletedRows;

  public FileMetadata(StructType fields) { this(fields == null ? new StructType() : fields, false); }

  private FileMetadata(StructType fields, boolean deletedRows) {
    this.fields = fields;
    this.deletedRows = deletedRows;
  }

  /** Tells the number of each row and the vector of its file, too. */
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
  public InternalRow values(String path, long start, long length, long fileSize, Long modified, Object[] first) {
    List<Object> values = new ArrayList<Object>();
    for (Object value : first) values.add(value);
    for (StructField field : fields.fields()) {
      String name = field.name();
      if (name.equals("file_path")) values.add(UTF8String.fromString(path));
      else if (name.equals("file_name")) values.add(UTF8String.fromString(path.substring(path.lastIndexOf('/') + 1)));
      else if (name.equals("file_size")) values.add(Long.valueOf(fileSize));
      else if (name.equals("file_block_start")) values.add(Long.valueOf(start));
      else if (name.equals("file_block_length")) values.add(Long.valueOf(length));
      else if (name.equals("file_modification_time")) values.add(modified);
    }
    return new GenericInternalRow(values.toArray());
  }

  public boolean asksWhenWritten() { return fields.getFieldIndex("file_modification_time").isDefined(); }

  /** When files were written, in microseconds, by their paths: our listings do not say. */
  public static Map<String, Long> modificationTimes(Configuration hadoop, Set<String> paths) {
    List<String> ordered = new ArrayList<String>(paths);
    List<Callable<Object>> requests = new ArrayList<Callable<Object>>();
    for (String path : ordered) requests.add(new Modified(hadoop, path));
    Map<String, Long> times = new HashMap<String, Long>();
    try {
      List<Object> answers = StoreRequests.answers(requests);
      for (int i = 0; i < answers.size(); i++) times.put((String) ordered.get(i), (Long) answers.get(i));
      return times;
    } catch (ExecutionException failed) {
      throw new IllegalStateException("it is not known when a block was written: " + failed.getCause().getMessage(), failed.getCause());
    }
  }

  /** The struct, made of its parts, which are among `parts`. */
  public static NamedExpression structOf(AttributeReference struct, List<Attribute> parts) {
    List<Expression> members = new ArrayList<Expression>();
    for (StructField field : ((StructType) struct.dataType()).fields()) {
      members.add(Literal$.MODULE$.apply(field.name()));
      members.add((Expression) Trees.find(parts, flatName(field.name())));
    }
    return Trees.alias(new CreateNamedStruct(ScalaLists.toScala(members)), struct);
  }

  private static String flatName(String field) { return field.equals("row_index") ? ROW_INDEX : FLAT + field; }
}
