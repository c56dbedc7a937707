package fuse_index.spark.java.files;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.zip.InflaterInputStream;

/** The files of one snapshot, in the order of a block mask: one array of bytes, read where needed. */
public class FileListing {
  private final ByteBuffer bytes;
  private final int fileCount;
  private final String prefix;
  private final int sizesOffset;
  private final int rowsOffset;
  private final int sealsOffset;
  private final int modifiedOffset;
  private final int endsOffset;
  private final int namesOffset;
  private final long totalBytes;
  /** Columns, by their stored names, of which files have one value that they do not hold themselves. */
  private final List<String> constantColumns = new ArrayList<String>();
  /** The constant columns that some files hold. */
  private final Set<String> partlyConstantColumns = new HashSet<String>();
  /** The texts of these values in each file, or nulls, or false where it holds the column; null where there are no such columns. */
  private final JsonNode constants;
  /** The ETag of each file, or null; null where all are ours. */
  private final JsonNode etags;
  /** The deletion vector of each file, deflated, or null; null where every row of all counts. */
  private final JsonNode deleted;
  public final PartitionKeys partitions;

  /**
   * int count, int length of the prefix, prefix, count long sizes, count long numbers of rows, count long seals, count long times, count int ends of names, names;
   * big-endian, UTF-8. Then, where some files are not ours, JSON: {"columns": [names], "partly": [names], "values": [[texts], ...],
   * "etags": [texts]}, where rows of some no longer count, {"deleted": [base 64 of a deflated vector, or null, ...]}, and where they are
   * partitioned, {"partitions": what PartitionKeys reads}.
   */
  public FileListing(byte[] packed) throws IOException {
    bytes = ByteBuffer.wrap(packed);
    fileCount = bytes.getInt(0);
    int prefixLength = bytes.getInt(4);
    prefix = new String(packed, 8, prefixLength, StandardCharsets.UTF_8);
    sizesOffset = 8 + prefixLength;
    rowsOffset = sizesOffset + 8 * fileCount;
    sealsOffset = rowsOffset + 8 * fileCount;
    modifiedOffset = sealsOffset + 8 * fileCount;
    endsOffset = modifiedOffset + 8 * fileCount;
    namesOffset = endsOffset + 4 * fileCount;
    long sum = 0L;
    for (int i = 0; i < fileCount; i++) sum += bytes.getLong(sizesOffset + 8 * i);
    totalBytes = sum;
    int end = fileCount == 0 ? packed.length : namesOffset + bytes.getInt(namesOffset - 4);
    JsonNode rest = null;
    if (end < packed.length) rest = (JsonNode) new ObjectMapper().readTree(Arrays.copyOfRange(packed, end, packed.length));
    if (rest != null && rest.has("columns")) for (JsonNode column : rest.get("columns")) constantColumns.add(column.asText());
    if (rest != null && rest.has("columns")) for (JsonNode column : rest.get("partly")) partlyConstantColumns.add(column.asText());
    constants = rest == null ? null : rest.get("values");
    etags = rest == null ? null : rest.get("etags");
    deleted = rest == null ? null : rest.get("deleted");
    partitions = new PartitionKeys(rest == null ? null : rest.get("partitions"));
  }

  /** Whether rows of some file no longer count. */
  public boolean hasDeletedRows() { return deleted != null; }

  /** One bit for each row of the file, lowest first, 1 where it no longer counts; null where all do. */
  public byte[] deletedRows(int file) {
    JsonNode vector = deleted == null ? null : (JsonNode) deleted.get(file);
    if (vector == null || vector.isNull()) return null;
    try {
      return new InflaterInputStream(new ByteArrayInputStream(Base64.getDecoder().decode(vector.asText()))).readAllBytes();
    } catch (IOException problem) {
      throw new IllegalStateException("the deletion vector of " + path(file) + " cannot be read: " + problem, problem);
    }
  }

  /** Raises IllegalStateException where rows of one of these files no longer count, and the scan does not tell which. */
  public void checkDeletedRowsAreTold(List<Integer> files, FileMetadata metadata) {
    if (deleted == null || metadata.tellsDeletedRows()) return;
    for (Integer file : files) {
      JsonNode vector = (JsonNode) deleted.get(file.intValue());
      if (!vector.isNull()) {
        throw new IllegalStateException("rows of " + path(file.intValue()) + " were deleted, and this session does not leave them out: "
            + "read the table in this session, by fuse_index.spark.read or its catalogue");
      }
    }
  }

  public int fileCount() { return fileCount; }

  public long totalBytes() { return totalBytes; }

  public long fileSize(int file) { return bytes.getLong(sizesOffset + 8 * file); }

  /** The rows of the file that count. */
  public long rows(int file) { return bytes.getLong(rowsOffset + 8 * file); }

  /** The checksum in the seal of the block; 0 if it is not known. */
  public long seal(int file) { return bytes.getLong(sealsOffset + 8 * file); }

  /** When a file that somebody else wrote was written, in microseconds since 1970; 0 if it is ours, or that is not known. */
  public long modified(int file) { return bytes.getLong(modifiedOffset + 8 * file); }

  /** The ETag of a file that somebody else wrote; null if it is ours, or that is not known. */
  public String etag(int file) {
    JsonNode found = etags == null ? null : (JsonNode) etags.get(file);
    return found == null || found.isNull() ? null : found.asText();
  }

  /** Whether no file holds the column. */
  public boolean isConstant(String storedName) { return constantColumns.contains(storedName) && !isPartlyConstant(storedName); }

  /** Whether some files hold the column, and others have one value of it. */
  public boolean isPartlyConstant(String storedName) { return partlyConstantColumns.contains(storedName); }

  /** Whether a file has one value of such a column, and does not hold it. */
  public boolean hasConstant(int file, String storedName) { return !value(file, storedName).isBoolean(); }

  /** The value of a constant column in a file, as text; null is NULL, or that the file holds the column. */
  public String constant(int file, String storedName) {
    JsonNode value = value(file, storedName);
    return value.isTextual() ? value.asText() : null;
  }

  private JsonNode value(int file, String storedName) { return (JsonNode) constants.get(file).get(constantColumns.indexOf(storedName)); }

  public String path(int file) {
    int start = file == 0 ? 0 : bytes.getInt(endsOffset + 4 * (file - 1));
    int length = bytes.getInt(endsOffset + 4 * file) - start;
    return prefix + new String(bytes.array(), namesOffset + start, length, StandardCharsets.UTF_8);
  }
}
