package fuse_index.spark.java.rpc;

import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkContext;
import scala.Option;

/**
 * The jobs that Python begins to answer a request. They have the group, the tags and the pool of the thread that waits for the answer,
 * so whoever cancels its jobs cancels these; and a tag of their own, by which they are cancelled if that thread is interrupted.
 */
public class RequestJobs {
  private static final String TAGS = "spark.job.tags";
  private static final String[] INHERITED = {"spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.scheduler.pool"};
  private static final long FIRST_WAIT_MS = 20, MAX_WAIT_MS = 1000;

  private final String tag;
  /** Null where none runs any more. */
  private final SparkContext context = active();
  private final Map<String, String> properties = new HashMap<String, String>();

  /** Takes the properties of this thread, which makes the request. */
  public RequestJobs(String number) {
    tag = "fuse_index-request-" + number;
    if (context == null) return;
    for (String property : INHERITED) properties.put(property, context.getLocalProperty(property));
    String tags = context.getLocalProperty(TAGS);
    properties.put(TAGS, tags == null || tags.length() == 0 ? tag : tags + "," + tag);
  }

  private static SparkContext active() {
    Option<SparkContext> active = SparkContext$.MODULE$.getActive();
    return active.isEmpty() ? null : (SparkContext) active.get();
  }

  /** From now on this thread's jobs are those of the request. */
  public void begin() {
    for (Object property : properties.keySet()) context.setLocalProperty((String) property, (String) properties.get(property));
  }

  /** Cancels them in a thread, until there is an answer: some may not have begun yet. */
  public void cancelUntil(CompletableFuture<Object> answer) {
    Thread thread = new Thread(new Cancelling(answer), "fuse-index-cancel");
    thread.setDaemon(true);
    if (context != null) thread.start();
  }

  private class Cancelling implements Runnable {
    private final CompletableFuture<Object> answer;

    Cancelling(CompletableFuture<Object> answer) { this.answer = answer; }

    public void run() {
      long wait = FIRST_WAIT_MS;
      while (!context.isStopped()) {
        context.cancelJobsWithTag(tag);
        try {
          answer.get(wait, TimeUnit.MILLISECONDS);
          return;
        } catch (TimeoutException unanswered) {
          wait = Math.min(2 * wait, MAX_WAIT_MS);
        } catch (InterruptedException stopped) {
          return;
        } catch (ExecutionException answered) {
          return;
        }
      }
    }
  }
}
