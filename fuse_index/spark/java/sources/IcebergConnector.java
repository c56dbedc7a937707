package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import java.lang.reflect.Constructor;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Tables of Iceberg's own connector, whose classes are on no class path of ours: they are known by their names, and called by reflection. */
public class IcebergConnector extends Connector {
  /** The scan of a query. Statements that copy files have another, those that write deletes another table, changelogs have both. */
  private static final String SCAN = "org.apache.iceberg.spark.source.SparkBatchQueryScan";
  private static final String TABLE = "org.apache.iceberg.spark.source.SparkTable";
  /** What `db.t.files` and its like are: rows of theirs are in no data file. */
  private static final String METADATA_TABLE = "org.apache.iceberg.BaseMetadataTable";
  private static final String PARTITION = "org.apache.iceberg.spark.source.SparkInputPartition";
  private static final String GROUP = "org.apache.iceberg.BaseScanTaskGroup";
  /** What a scan calls the columns that it reads: from Spark 4.1 on, and before. */
  private static final String[] READ_SCHEMA = {"projection", "expectedSchema"};

  private final DataSourceV2ScanRelation relation;

  private IcebergConnector(DataSourceV2ScanRelation relation) {
    super(relation);
    this.relation = relation;
  }

  public static Connector of(LogicalPlan leaf) {
    if (!(leaf instanceof DataSourceV2ScanRelation)) return null;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) leaf;
    boolean known = relation.scan().getClass().getName().equals(SCAN) && relation.relation().table().getClass().getName().equals(TABLE);
    return known && !isMetadata(table(relation)) ? new IcebergConnector(relation) : null;
  }

  private static boolean isMetadata(Object table) {
    Class<?> type = table.getClass();
    while (type != null && !type.getName().equals(METADATA_TABLE)) type = type.getSuperclass();
    return type != null;
  }

  private static Object table(DataSourceV2ScanRelation relation) { return called(relation.relation().table(), "table"); }

  private static Object called(Object object, String method) {
    try {
      return Reflection.call(object, method);
    } catch (ReflectiveOperationException otherVersion) {
      throw new IllegalStateException(otherVersion);
    }
  }

  public String format() { return "iceberg"; }

  public List<String> locations() { return Collections.singletonList((String) called(table(relation), "location")); }

  protected Map<String, String> options() {
    CaseInsensitiveStringMap options = relation.relation().options();
    return options.asCaseSensitiveMap();
  }

  /** By field ids: names may have been exchanged since files were written. */
  public SourceColumns columns(SourceIndex index) throws ReflectiveOperationException {
    Map<Integer, Object> theirs = new HashMap<Integer, Object>();
    SourceColumns columns = new SourceColumns(leaf);
    List<?> fields = (List<?>) Reflection.call(Reflection.callFirst(relation.scan(), READ_SCHEMA), "columns");
    for (Object field : fields) theirs.put((Integer) Reflection.call(field, "fieldId"), field);
    for (SourceIndex.Column ours : index.columns()) {
      Object field = theirs.get(Integer.valueOf(ours.id));
      if (field != null) columns.put((String) Reflection.call(field, "name"), NestedField.byId(field), ours);
    }
    return columns;
  }

  public boolean reads(SparkPlan node) { return node instanceof BatchScanExec && ((BatchScanExec) node).scan() == relation.scan(); }

  public void list(SparkPlan scan, FileVotes files) throws Exception {
    for (Object group : groups(scan)) {
      for (Object partition : partitions(group)) for (Object task : tasks(partition)) IcebergTasks.add(task, files);
    }
  }

  /** What the tasks of Spark read. */
  private static List<?> groups(SparkPlan scan) throws ReflectiveOperationException {
    RDD<?> rdd = source(((BatchScanExec) scan).inputRDD(), DataSourceRDD.class);
    return rdd == null ? Collections.emptyList() : ScalaLists.toJava((scala.collection.Seq<?>) Reflection.get(rdd, "inputPartitions"));
  }

  public boolean tellsDeletedRows() { return Releases.isTested("iceberg"); }

  public Configuration hadoop() { return null; }

  public void leaveOut(SparkPlan scan, FileVotes votes, boolean mayCut, boolean mayRenumber) throws Exception {
    RDD<?> rdd = source(((BatchScanExec) scan).inputRDD(), DataSourceRDD.class);
    if (rdd == null) return;
    List<Object> groups = new ArrayList<Object>();
    for (Object group : groups(scan)) {
      boolean any = false;
      for (Object partition : partitions(group)) any |= keepsAny(partition, votes, mayCut);
      if (any || !mayRenumber || isPartitioned()) groups.add(group);
    }
    Reflection.set(rdd, DataSourceRDD.class, "inputPartitions", ScalaLists.toScala(groups));
  }

  /** Joins may rely on a partition for each value, be it empty. */
  private boolean isPartitioned() {
    return relation.scan() instanceof SupportsReportPartitioning && ((SupportsReportPartitioning) relation.scan()).outputPartitioning() instanceof KeyGroupedPartitioning;
  }

  /** What a task reads: a list of partitions, and from 4.3 on one or none. */
  private static List<?> partitions(Object group) {
    if (group instanceof scala.Option) return ScalaLists.toJava(((scala.Option<?>) group).toList());
    return ScalaLists.toJava((scala.collection.Seq<?>) group);
  }

  private static Collection<?> tasks(Object partition) throws ReflectiveOperationException {
    boolean known = partition.getClass().getName().equals(PARTITION);
    return known ? (Collection<?>) Reflection.call(Reflection.get(partition, "taskGroup"), "tasks") : Collections.emptyList();
  }

  /** Leaves those tasks to a partition, which was made just now, whose file, or piece of it, may hold an answer; whether there are any. */
  private static boolean keepsAny(Object partition, FileVotes votes, boolean mayCut) throws ReflectiveOperationException {
    if (!partition.getClass().getName().equals(PARTITION)) return true;
    Object group = Reflection.get(partition, "taskGroup");
    List<Object> left = new ArrayList<Object>();
    boolean same = true;
    for (Object task : tasks(partition)) {
      List<Object> pieces = IcebergTasks.pieces(task, votes, mayCut);
      same &= pieces.size() == 1 && pieces.get(0) == task;
      left.addAll(pieces);
    }
    if (same) return !left.isEmpty();
    Class<?> type = group.getClass();
    if (!type.getName().equals(GROUP)) return true;
    for (Constructor<?> constructor : type.getConstructors()) {
      if (constructor.getParameterTypes().length != 2) continue;
      Object other = constructor.newInstance(new Object[] {Reflection.call(group, "groupingKey"), left});
      Reflection.set(partition, partition.getClass(), "taskGroup", other);
      return !left.isEmpty();
    }
    return true;
  }
}
