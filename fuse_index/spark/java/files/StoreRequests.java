package fuse_index.spark.java.files;

import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Requests to a store, of which each takes some hundredths of a second: so many are made at a time. */
public class StoreRequests {
  private static final int MAX_THREADS = 32;

  /** The answers, in the order of the requests. Raises IllegalStateException if the query is cancelled, and ExecutionException of what one of them raises. */
  public static List<Object> answers(List<Callable<Object>> requests) throws ExecutionException {
    List<Object> answers = new ArrayList<Object>();
    if (requests.isEmpty()) return answers;
    ExecutorService threads = Executors.newFixedThreadPool(Math.min(MAX_THREADS, requests.size()));
    try {
      for (Object answer : threads.invokeAll(requests)) answers.add(((Future<?>) answer).get());
      return answers;
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the query was cancelled", cancelled);
    } finally {
      threads.shutdownNow();
    }
  }
}
