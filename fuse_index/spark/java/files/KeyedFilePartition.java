package fuse_index.spark.java.files;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Files of one partition of a table, which one task reads. Executors, which have no class of ours, are sent a FilePartition. */
public class KeyedFilePartition extends FilePartition implements HasPartitionKey {
  private static final long serialVersionUID = 1L;
  private final InternalRow key;

  private KeyedFilePartition(int index, PartitionedFile[] files, InternalRow key) {
    super(index, files);
    this.key = key;
  }

  public InternalRow partitionKey() { return key; }

  protected Object writeReplace() { return new FilePartition(index(), files()); }

  /** Partitions over the ranges of each key, none of more bytes than Spark wants to be one. */
  public static InputPartition[] partitions(SparkSession session, Map<InternalRow, List<FileRange>> ranges, FileMetadata metadata) {
    long most = session.sessionState().conf().filesMaxPartitionBytes();
    List<InputPartition> partitions = new ArrayList<InputPartition>();
    for (Map.Entry<InternalRow, List<FileRange>> entry : ranges.entrySet()) {
      List<PartitionedFile> files = FileRange.files(session, (List<FileRange>) entry.getValue(), most, metadata);
      for (FilePartition part : ScalaLists.toJava(FilePartition.getFilePartitions(session, ScalaLists.toScala(files), most))) {
        partitions.add(new KeyedFilePartition(partitions.size(), part.files(), (InternalRow) entry.getKey()));
      }
    }
    return (InputPartition[]) partitions.toArray(new InputPartition[0]);
  }
}
