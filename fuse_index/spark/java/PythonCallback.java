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
 * The way to Python: one callback per session, asked on threads of our own.
 *
 * py4j gives each Java thread that calls Python a Python thread and a socket, for as long as the Java thread lives and
 * longer. Spark plans on short-lived threads, so that each query would leak one; these threads never end, and are few.
 */
public class PythonCallback {
  public static final String DEADLINE = "spark.fuse.index.deadline";
  private static final String DEFAULT_DEADLINE = "15s";
  private static final int MOST_THREADS = 64;
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final ConcurrentHashMap VOTERS = new ConcurrentHashMap();
  private static final ExecutorService POOL =
      new ThreadPoolExecutor(0, MOST_THREADS, 3650L, TimeUnit.DAYS, new SynchronousQueue(), new Daemons());

  public static class Daemons implements ThreadFactory {
    public Thread newThread(Runnable work) {
      Thread thread = new Thread(work, "fuse-index-votes");
      thread.setDaemon(true);
      return thread;
    }
  }

  public static class Call implements Callable {
    private final Function python;
    private final Object request;

    public Call(Function python, Object request) {
      this.python = python;
      this.request = request;
    }

    public Object call() { return python.apply(request); }
  }

  public static void register(String key, Object voter) { VOTERS.put(key, voter); }

  /** A vote in any case: whatever goes wrong means reading every file. */
  public static BlockMask vote(String key, String request, int files) {
    BlockMask vote;
    try {
      vote = BlockMask.read(ask(key, request), files);
    } catch (TimeoutException late) {
      vote = BlockMask.everything("no vote within " + SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE) + " (" + DEADLINE + ")");
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      vote = BlockMask.everything("the query was cancelled");
    } catch (Throwable failure) {
      vote = BlockMask.everything(failure.toString());
    }
    if (vote.refusal() != null) LOG.warn("every block is read, because indexes could not be asked: " + vote.refusal() + "; asked was " + request);
    return vote;
  }

  /** The callback's answer. Raises whatever went wrong. */
  public static byte[] ask(String key, String request) throws Exception {
    Function voter = (Function) VOTERS.get(key);
    if (voter == null) throw new IllegalStateException("no Python process votes for session " + key + " any more");
    return (byte[]) call(voter, request);
  }

  /** What Python answers, within the deadline. Raises whatever went wrong. */
  public static Object call(Function python, Object request) throws Exception {
    long deadline = JavaUtils.timeStringAsMs(SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE));
    Future answer = POOL.submit(new Call(python, request));
    return answer.get(deadline, TimeUnit.MILLISECONDS);
  }
}
