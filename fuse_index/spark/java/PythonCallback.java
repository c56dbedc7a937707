import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Remote calls to Python, within a deadline: each session has one endpoint there, called on threads of our own.
 *
 * py4j gives each Java thread that calls Python a Python thread and a socket, for as long as the Java thread lives and
 * longer. Spark plans on short-lived threads, so that each query would leak one; these threads never end, and are few.
 */
public class PythonCallback {
  public static final String DEADLINE = "spark.fuse.index.deadline";
  private static final String DEFAULT_DEADLINE = "15s";
  private static final int MAX_THREADS = 64;
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final ConcurrentHashMap<String, Function<Object, Object>> CALLBACKS = new ConcurrentHashMap<String, Function<Object, Object>>();
  private static final ExecutorService POOL =
      new ThreadPoolExecutor(0, MAX_THREADS, 3650L, TimeUnit.DAYS, new SynchronousQueue<Runnable>(), new DaemonThreads());

  public static class DaemonThreads implements ThreadFactory {
    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, "fuse-index-votes");
      thread.setDaemon(true);
      return thread;
    }
  }

  public static class PythonCall implements Callable<Object> {
    private final Function<Object, Object> python;
    private final Object request;

    public PythonCall(Function<Object, Object> python, Object request) {
      this.python = python;
      this.request = request;
    }

    public Object call() { return python.apply(request); }
  }

  @SuppressWarnings("unchecked")
  public static void register(String key, Object callback) { CALLBACKS.put(key, (Function<Object, Object>) callback); }

  /** Which files to read, in any case: whatever goes wrong means all of them. */
  public static BlockMask requestMask(String key, String request, int files) {
    BlockMask mask;
    try {
      mask = BlockMask.decode(send(key, request), files);
    } catch (TimeoutException late) {
      mask = BlockMask.readAll("no vote within " + SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE) + " (" + DEADLINE + ")");
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      mask = BlockMask.readAll("the query was cancelled");
    } catch (Throwable failure) {
      mask = BlockMask.readAll(failure.toString());
    }
    if (mask.refusal() != null) LOG.warn("every block is read, because indexes could not be asked: " + mask.refusal() + "; asked was " + request);
    return mask;
  }

  /** The reply of a session's endpoint. Raises whatever went wrong. */
  public static byte[] send(String key, String request) throws Exception {
    Function<Object, Object> callback = (Function<Object, Object>) CALLBACKS.get(key);
    if (callback == null) throw new IllegalStateException("no Python process votes for session " + key + " any more");
    return (byte[]) callPython(callback, request);
  }

  /** What Python returns, within the deadline. Raises whatever went wrong. */
  public static Object callPython(Function<Object, Object> python, Object request) throws Exception {
    long deadline = JavaUtils.timeStringAsMs(SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE));
    Future<Object> reply = POOL.submit(new PythonCall(python, request));
    return reply.get(deadline, TimeUnit.MILLISECONDS);
  }
}
