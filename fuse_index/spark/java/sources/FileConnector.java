package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** Parquet files in folders, and Delta tables: what Spark scans by `FileSourceScanExec`. */
public class FileConnector extends Connector {
  private static final Set<String> FOLDERS = new HashSet<String>(Arrays.asList(new String[] {
      "org.apache.spark.sql.execution.datasources.InMemoryFileIndex", "org.apache.spark.sql.execution.datasources.CatalogFileIndex"}));
  private static final String PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat";
  /** What reads a table for a query; statements that change one, and change feeds, have others. */
  private static final Set<String> DELTA = new HashSet<String>(Arrays.asList(new String[] {
      "org.apache.spark.sql.delta.files.TahoeLogFileIndex", "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"}));
  private static final String DELTA_PARQUET = "org.apache.spark.sql.delta.DeltaParquetFileFormat";
  private static final String PHYSICAL_NAME = "delta.columnMapping.physicalName";
  private static final String FIELD_ID = "parquet.field.id";
  /** What rows of files have that lack the column. */
  private static final String DEFAULT = "EXISTS_DEFAULT";
  /** Beyond so many roots, each is looked for by the table whose partition it is: a query may read ten thousand. */
  private static final int FEW_ROOTS = 4;
  private static final int MOST_PLACES = 16;
  private static final Set<String> PIECES = new HashSet<String>(Arrays.asList(new String[] {"file_block_start", "file_block_length"}));

  private final HadoopFsRelation relation;
  private final boolean isDelta;

  private FileConnector(LogicalPlan leaf, HadoopFsRelation relation, boolean isDelta) {
    super(leaf);
    this.relation = relation;
    this.isDelta = isDelta;
  }

  public static Connector of(LogicalPlan leaf) {
    Object found = leaf instanceof LogicalRelation ? ((LogicalRelation) leaf).relation() : null;
    if (!(found instanceof HadoopFsRelation)) return null;
    HadoopFsRelation relation = (HadoopFsRelation) found;
    String index = relation.location().getClass().getName();
    String reader = relation.fileFormat().getClass().getName();
    boolean isFolder = FOLDERS.contains(index) && reader.equals(PARQUET);
    boolean isDelta = DELTA.contains(index) && reader.equals(DELTA_PARQUET);
    return isFolder || isDelta ? new FileConnector(leaf, relation, isDelta) : null;
  }

  public String format() { return isDelta ? "delta" : "parquet"; }

  public List<String> locations() {
    List<Path> roots = ScalaLists.toJava(relation.location().rootPaths());
    Set<String> places = new LinkedHashSet<String>();
    for (int i = 0; i < roots.size() && places.size() < MOST_PLACES; i++) {
      Path place = (Path) roots.get(i);
      while (roots.size() > FEW_ROOTS && place.getName().indexOf('=') > 0) place = place.getParent();
      places.add(place.toString());
    }
    return new ArrayList<String>(places);
  }

  protected Map<String, String> options() { return CollectionConverters.asJava(relation.options()); }

  public SourceColumns columns(SourceIndex index) throws ReflectiveOperationException {
    SourceColumns columns = new SourceColumns(leaf);
    // Delta's extension switches reading by ids on for a whole session: only columns that have ids are read by them.
    boolean byId = !isDelta && SQLConf.get().parquetFieldIdReadEnabled() && relation.dataSchema().json().indexOf(FIELD_ID) >= 0;
    Map<String, StructField> theirs = byId ? new HashMap<String, StructField>() : columnsByStoredName(columns);
    for (SourceIndex.Column ours : index.columns()) {
      StructField field = (StructField) theirs.get(ours.stored);
      if (field != null) columns.put(field.name(), NestedField.byName(field), ours);
    }
    return columns;
  }

  /** Their columns, by what files call them, without those that files do not hold, or that are read otherwise than files say. */
  private Map<String, StructField> columnsByStoredName(SourceColumns refused) throws ReflectiveOperationException {
    Map<String, StructField> found = new HashMap<String, StructField>();
    Set<String> partitions = new HashSet<String>(Arrays.asList(relation.partitionSchema().fieldNames()));
    for (StructField field : (isDelta ? deltaSchema() : relation.dataSchema()).fields()) {
      boolean mapped = field.metadata().contains(PHYSICAL_NAME);
      if (partitions.contains(field.name())) refused.refuse(field.name(), "paths give the column " + field.name());
      else if (field.metadata().contains(DEFAULT)) refused.refuse(field.name(), "files without " + field.name() + " have its default");
      else if (isTime(field) && readsOldTimes()) refused.refuse(field.name(), "old calendars are set for the times of " + field.name());
      else found.put(mapped ? field.metadata().getString(PHYSICAL_NAME) : field.name(), field);
    }
    return found;
  }

  /** The columns at the version that is read, with their names in files. */
  private StructType deltaSchema() throws ReflectiveOperationException {
    Object metadata = Reflection.call(relation.location(), "metadata");
    return (StructType) Reflection.call(metadata, "schema");
  }

  private static boolean isTime(StructField field) {
    String type = field.dataType().catalogString();
    return type.indexOf("date") >= 0 || type.indexOf("timestamp") >= 0;
  }

  private boolean readsOldTimes() {
    SQLConf conf = SQLConf.get();
    // By their entries: each has a former name, too, and takes "TRUE" for true.
    return isLegacy(conf.getConf(SQLConf.PARQUET_REBASE_MODE_IN_READ())) || isLegacy(conf.getConf(SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ()))
        || conf.isParquetINT96TimestampConversion() || relation.options().toString().toLowerCase().indexOf("rebasemode") >= 0;
  }

  /** A text before Spark 4.1, and an object since then. */
  private static boolean isLegacy(Object mode) { return String.valueOf(mode).equalsIgnoreCase("LEGACY"); }

  public boolean reads(SparkPlan node) { return node instanceof FileSourceScanExec; }

  public void list(SparkPlan scan, FileVotes files) {
    for (FilePartition partition : partitions(scan)) {
      // A file of which some rows are deleted comes with what says which, among the constants of its rows.
      for (PartitionedFile file : partition.files()) files.add(path(file), file.fileSize(), file.modificationTime(), file.otherConstantMetadataColumnValues().isEmpty());
    }
  }

  private static List<FilePartition> partitions(SparkPlan scan) {
    RDD<?> rdd = source(((FileSourceScanExec) scan).inputRDD(), FileScanRDD.class);
    return rdd == null ? Collections.<FilePartition>emptyList() : ScalaLists.toJava(((FileScanRDD) rdd).filePartitions());
  }

  public boolean tellsDeletedRows() { return (!isDelta || Releases.isTested("delta")) && !readsAround(); }

  /** Whether files, or the rest of one, that cannot be read are passed over: then no row of a file is certain to come. */
  private boolean readsAround() {
    FileSourceOptions asked = new FileSourceOptions(relation.options());
    return asked.ignoreCorruptFiles() || asked.ignoreMissingFiles();
  }

  public Configuration hadoop() { return relation.sparkSession().sparkContext().hadoopConfiguration(); }

  public void leaveOut(SparkPlan scan, FileVotes votes, boolean mayCut, boolean mayRenumber) throws Exception {
    RDD<?> rdd = source(((FileSourceScanExec) scan).inputRDD(), FileScanRDD.class);
    if (rdd == null) return;
    boolean bucketed = relation.bucketSpec().isDefined(); // there a partition is a bucket, by its number
    boolean inParts = mayCut && !tellsPieces((FileSourceScanExec) scan) && relation.fileFormat().isSplitable(relation.sparkSession(), relation.options(), new Path("/any"));
    List<FilePartition> partitions = new ArrayList<FilePartition>();
    for (FilePartition partition : partitions(scan)) {
      List<PartitionedFile> files = new ArrayList<PartitionedFile>();
      for (PartitionedFile file : partition.files()) files.addAll(pieces(file, votes, inParts && !bucketed));
      if (bucketed || !mayRenumber) partitions.add(new FilePartition(partition.index(), (PartitionedFile[]) files.toArray(new PartitionedFile[0])));
      else if (!files.isEmpty()) partitions.add(new FilePartition(partitions.size(), (PartitionedFile[]) files.toArray(new PartitionedFile[0])));
    }
    Reflection.set(rdd, FileScanRDD.class, "filePartitions", ScalaLists.toScala(partitions));
  }

  private static String path(PartitionedFile file) { return file.toPath().toString(); }

  /** Whether a query asks where in a file its piece begins, or how long it is. */
  private static boolean tellsPieces(FileSourceScanExec scan) {
    for (Attribute column : ScalaLists.toJava(scan.output())) if (PIECES.contains(column.name())) return true;
    return false;
  }

  /** What is left of a piece of a file. A file whose rows the connector leaves out by their positions comes with constants, and is read whole. */
  private static List<PartitionedFile> pieces(PartitionedFile file, FileVotes votes, boolean inParts) {
    String path = path(file);
    List<PartitionedFile> left = new ArrayList<PartitionedFile>();
    if (votes.leavesOut(path)) {
      votes.skipped(file.length());
      return left;
    }
    boolean whole = !inParts || !file.otherConstantMetadataColumnValues().isEmpty();
    List<long[]> ranges = whole ? Collections.<long[]>emptyList() : votes.ranges(path);
    long read = 0L;
    for (long[] range : ranges) {
      long start = Math.max(range[0], file.start());
      long length = Math.min(range[0] + range[1], file.start() + file.length()) - start;
      if (length <= 0L) continue;
      read += length;
      left.add(file.copy(file.partitionValues(), file.filePath(), start, length, file.locations(), file.modificationTime(), file.fileSize(), file.otherConstantMetadataColumnValues()));
    }
    if (ranges.isEmpty()) {
      read = file.length();
      left.add(file);
    }
    votes.read(path, read, ranges.isEmpty());
    votes.skipped(file.length() - read);
    return left;
  }
}
