package fuse_index.spark.java.files;

import fuse_index.spark.java.rpc.*;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Paths;
import java.nio.file.attribute.FileTime;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.HashMap;

/**
 * Whether the files of a listing are the blocks that were committed under their names: Spark's reader would take any Parquet
 * file with the right columns. A block is told by the checksum in its seal, 8 bytes right before the Parquet footer.
 *
 * Looked at by the driver, since executors do not know our classes; once for each file and JVM, since blocks never change, and
 * again where a local file was written since.
 */
public class BlockSeals {
  /** Bytes that are read at the end of a file: most footers are shorter, and to a store it is one request. */
  private static final int TAIL_BYTES = 32768;
  /** Footer length and magic. */
  private static final int TRAILER_BYTES = 8;
  private static final int SEAL_BYTES = 8;
  private static final int MAX_REMEMBERED = 1000000;
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final Set<Long> VERIFIED = ConcurrentHashMap.newKeySet();

  public static class Check implements Callable<Object> {
    private final Configuration hadoop;
    private final String path;
    private final long size;
    private final long seal;

    public Check(Configuration hadoop, String path, long size, long seal) {
      this.hadoop = hadoop;
      this.path = path;
      this.size = size;
      this.seal = seal;
    }

    /** What is wrong, where the file is another one or is gone; else null. Of a file that cannot be read, Spark's reader tells. */
    public Object call() {
      String other = path + ": this is another block than the one of that name; restore the file from a copy";
      try {
        if (readSeal() != seal) return other;
        if (VERIFIED.size() >= MAX_REMEMBERED) VERIFIED.clear();
        VERIFIED.add(memory(path, seal));
      } catch (EOFException shorter) {
        return other;
      } catch (FileNotFoundException gone) {
        return path + " is gone, so that this snapshot cannot be read: its table was dropped with PURGE, or the snapshot was vacuumed;"
            + " load the table again, or restore the file from a copy";
      } catch (IOException unreadable) {
        LOG.warn("the driver cannot tell whether " + path + " is the block of that name: " + unreadable);
      }
      return null;
    }

    private long readSeal() throws IOException {
      Path file = new Path(path);
      // With its length, an object store needs not be asked for it.
      FutureDataInputStreamBuilder opening = file.getFileSystem(hadoop).openFile(file);
      opening.opt("fs.option.openfile.length", Long.toString(size));
      opening.opt("fs.option.openfile.read.policy", "random");
      FSDataInputStream stream;
      try {
        stream = (FSDataInputStream) ((Future<FSDataInputStream>) opening.build()).get();
      } catch (ExecutionException failed) {
        throw failed.getCause() instanceof FileNotFoundException ? (IOException) failed.getCause() : new IOException(failed.getCause());
      } catch (InterruptedException cancelled) {
        throw new IOException(cancelled);
      }
      try {
        byte[] tail = new byte[(int) Math.min(size, (long) TAIL_BYTES)];
        stream.readFully(size - tail.length, tail);
        long footer = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt(tail.length - TRAILER_BYTES);
        long fromEnd = footer + TRAILER_BYTES + SEAL_BYTES;
        if (footer < 0 || fromEnd > size) throw new EOFException();
        if (fromEnd <= tail.length) return ByteBuffer.wrap(tail).getLong(tail.length - (int) fromEnd);
        byte[] bytes = new byte[SEAL_BYTES];
        stream.readFully(size - fromEnd, bytes);
        return ByteBuffer.wrap(bytes).getLong(0);
      } finally {
        stream.close();
      }
    }
  }

  /**
   * Whether a file that somebody else wrote is the one that was attached: by its size, and its ETag; by when it was written where
   * one of the two has no ETag. Python's ForeignFile tells it in the same way.
   */
  public static class ForeignCheck implements Callable<Object> {
    /** Object stores tell seconds by one request, and milliseconds by another. */
    private static final long STORE_MILLIS = 1000L;
    private final Configuration hadoop;
    private final String path;
    private final long size;
    private final long modified;
    private final String etag;

    public ForeignCheck(Configuration hadoop, String path, long size, long modified, String etag) {
      this.hadoop = hadoop;
      this.path = path;
      this.size = size;
      this.modified = modified;
      this.etag = etag;
    }

    public Object call() {
      try {
        Path file = new Path(path);
        FileStatus status = file.getFileSystem(hadoop).getFileStatus(file);
        if (status.getLen() != size) return changed();
        String found = etag == null ? null : version(status);
        if (found != null) return found.equals(unquoted(etag)) ? null : changed();
        long apart = modified == 0L ? 0L : Math.abs(status.getModificationTime() - modified / 1000L);
        return apart > (path.startsWith("file:") ? 1L : STORE_MILLIS) ? changed() : null;
      } catch (FileNotFoundException gone) {
        return path + " is gone since it was attached, so that this snapshot cannot be read: sync the table with its source";
      } catch (IOException unreadable) {
        return null; // of which Spark's reader tells
      }
    }

    private String changed() {
      return path + " has changed since it was attached, so that the rows of this snapshot may be gone: sync the table with its source; "
          + "sync(reread=True) if that finds no change (in a copy, or a backup)";
    }

    /** The ETag of a file now, as LocalStore in Python makes it of a local one; null if there is none. */
    private String version(FileStatus status) throws IOException {
      if (path.startsWith("file:")) {
        java.nio.file.Path local = Paths.get(new Path(path).toUri().getPath(), new String[0]);
        try {
          Map<String, Object> found = Files.readAttributes(local, "unix:ino,ctime", new LinkOption[0]);
          long changed = ((FileTime) found.get("ctime")).to(TimeUnit.NANOSECONDS);
          return Long.toHexString(((Number) found.get("ino")).longValue()) + "-" + Long.toHexString(changed);
        } catch (UnsupportedOperationException elsewhere) {
          return null;
        }
      }
      String found = status instanceof EtagSource ? ((EtagSource) status).getEtag() : null;
      return found == null || found.isEmpty() ? null : unquoted(found);
    }

    /** Some clients of a store keep the quotes of the header, and some do not. */
    private static String unquoted(String etag) {
      String strong = etag.startsWith("W/") ? etag.substring(2) : etag;
      return strong.replace("\"", "");
    }
  }

  /** What a file that was looked at is remembered by. When an object of a store was written is a request, and is not asked. */
  private static Long memory(String path, long seal) {
    long written = 0L;
    if (path.startsWith("file:")) {
      try {
        String local = new Path(path).toUri().getPath();
        written = Files.getLastModifiedTime(Paths.get(local, new String[0]), new LinkOption[0]).to(TimeUnit.NANOSECONDS);
      } catch (IOException missing) {
        written = -1L; // of which Spark's reader tells
      }
    }
    return Long.valueOf(seal ^ ((path.hashCode() + 31L * written) * 0x9E3779B97F4A7C15L));
  }

  /** Raises if one of these files is gone, or another than the block of its name. Those of which no seal is known are let through. */
  public static void verify(SparkSession session, FileListing listing, List<Integer> files) {
    List<Callable<Object>> checks = new ArrayList<Callable<Object>>();
    Configuration hadoop = null;
    for (Integer file : files) {
      String path = listing.path(file.intValue());
      long seal = listing.seal(file.intValue());
      long modified = listing.modified(file.intValue());
      String etag = listing.etag(file.intValue());
      boolean isNew = seal != 0L && !VERIFIED.contains(memory(path, seal));
      boolean isForeign = modified != 0L || etag != null;
      if ((isNew || isForeign) && hadoop == null) hadoop = session.sessionState().newHadoopConf(); // a copy of some thousand settings
      if (isNew) checks.add(new Check(hadoop, path, listing.fileSize(file.intValue()), seal));
      if (isForeign) checks.add(new ForeignCheck(hadoop, path, listing.fileSize(file.intValue()), modified, etag));
    }
    try {
      for (Object problem : StoreRequests.answers(checks)) if (problem != null) throw refusal((String) problem);
    } catch (ExecutionException failed) {
      throw new IllegalStateException(failed.getCause());
    }
  }

  private static RuntimeException refusal(String problem) {
    HashMap<String, String> parameters = new HashMap<String, String>();
    parameters = (HashMap<String, String>) parameters.updated("errorMessage", problem);
    return new SparkRuntimeException(ErrorConditions.of("CORRUPT"), parameters, null, new QueryContext[0], "");
  }
}
