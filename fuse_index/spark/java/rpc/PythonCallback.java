package fuse_index.spark.java.rpc;

import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Requests to Python, answered within a deadline. Each Python process has a mailbox here, from which its threads take them.
 *
 * So it is Python that calls, through the connection that it has been let in by: py4j's own callbacks would have it listen on
 * a port, behind which PySpark and py4j put no password, and which every user of the machine may call.
 */
public class PythonCallback {
  public static final String DEADLINE = "spark.fuse.index.deadline";
  private static final String DEFAULT_DEADLINE = "15s";
  private static final ConcurrentHashMap<String, LinkedBlockingQueue<Request>> MAILBOXES =
      new ConcurrentHashMap<String, LinkedBlockingQueue<Request>>();
  private static final ConcurrentHashMap<String, LinkedBlockingQueue<Request>> MAILBOX_OF_KEY =
      new ConcurrentHashMap<String, LinkedBlockingQueue<Request>>();
  private static final ConcurrentHashMap<String, Request> UNANSWERED = new ConcurrentHashMap<String, Request>();
  private static final ConcurrentHashMap<String, Object> ATTACHMENTS = new ConcurrentHashMap<String, Object>();
  private static final char SEPARATOR = 0;
  /** A statement that is cancelled ends with what Python does for it, unless that goes on for so long. */
  private static final long LAST_WAIT_MS = 10000;
  private static final AtomicLong NUMBERS = new AtomicLong();

  public static class Request extends CompletableFuture<Object> {
    public final String number = Long.toString(NUMBERS.incrementAndGet());
    public final String text;
    public final RequestJobs jobs = new RequestJobs(number);
    /** Whether nobody wants the answer any more. */
    public volatile boolean isCancelled;

    public Request(String key, String body) { this.text = number + SEPARATOR + key + SEPARATOR + body; }
  }

  /** Whoever takes from this mailbox answers what this key is asked. */
  public static void register(String key, String mailbox) {
    MAILBOX_OF_KEY.put(key, queue(mailbox));
    ReplyMemo.forget(key);
  }

  /** Nobody answers any more what keys are asked that begin so. */
  public static void unregister(String prefix) {
    for (Object key : MAILBOX_OF_KEY.keySet()) if (((String) key).startsWith(prefix)) MAILBOX_OF_KEY.remove(key);
    ReplyMemo.forget(prefix);
  }

  private static LinkedBlockingQueue<Request> queue(String mailbox) {
    MAILBOXES.putIfAbsent(mailbox, new LinkedBlockingQueue<Request>());
    return (LinkedBlockingQueue<Request>) MAILBOXES.get(mailbox);
  }

  /**
   * The next request: its number, its key and its body, with a character 0 between them; null if none comes in so many milliseconds.
   * The jobs of the thread that takes it are those of the request from then on.
   */
  public static String take(String mailbox, int milliseconds) throws InterruptedException {
    Request request = (Request) queue(mailbox).poll(milliseconds, TimeUnit.MILLISECONDS);
    if (request == null) return null;
    request.jobs.begin();
    return request.text;
  }

  /** The reply to a request; or, where there is a failure, that, as PythonFailure decodes it. Nobody may wait for it any more. */
  public static void answer(String number, Object reply, String failure) {
    Request request = (Request) UNANSWERED.remove(number);
    if (request == null) return;
    if (failure == null) request.complete(reply);
    else request.completeExceptionally(PythonFailure.decode(failure));
  }

  /** The reply of a session's planner. Raises whatever went wrong. */
  public static byte[] send(String key, String request) throws Exception { return (byte[]) ask(key, request); }

  /** Why a reply says nothing; null where it does. */
  public static String refusal(byte[] reply) { return reply[0] == 0 ? new String(reply, 1, reply.length - 1, StandardCharsets.UTF_8) : null; }

  /** What a reply says. Raises IllegalStateException where it says nothing. */
  public static byte[] body(byte[] reply) {
    if (reply[0] == 0) throw new IllegalStateException(refusal(reply));
    return Arrays.copyOfRange(reply, 1, reply.length);
  }

  /** So long this session waits for what makes a query faster. */
  public static String deadline() { return SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE); }

  /** What Python answers, within the deadline. Raises whatever went wrong. */
  public static Object ask(String key, String body) throws Exception {
    return ask(key, body, JavaUtils.timeStringAsMs(deadline()));
  }

  /**
   * What Python answers to a statement, which takes as long as it takes. `request` is an object, still open. `rows`, a Dataset, may
   * come with it: Python asks for it by the number that it finds in the request.
   */
  public static Object command(String key, Json request, Object rows) {
    String number = rows == null ? "" : Long.toString(NUMBERS.incrementAndGet());
    if (rows != null) ATTACHMENTS.put(number, rows);
    try {
      return ask(key, request.key("rows").text(number).close('}').toString(), Long.MAX_VALUE);
    } catch (InterruptedException cancelled) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the statement was cancelled", cancelled);
    } catch (Exception failure) {
      throw StatementError.raise(failure);
    } finally {
      ATTACHMENTS.remove(number);
    }
  }

  /** The rows that came with a statement which is still waiting. */
  public static Object attachment(String number) { return ATTACHMENTS.get(number); }

  /** Whether anybody waits for the answer to a request: what a statement writes is not committed where nobody does. */
  public static boolean awaited(String number) {
    Request request = (Request) UNANSWERED.get(number);
    return request != null && !request.isCancelled;
  }

  /** What Python answers within so many milliseconds. Raises whatever went wrong; the jobs of who is interrupted are cancelled. */
  public static Object ask(String key, String body, long deadline) throws Exception {
    LinkedBlockingQueue<Request> mailbox = (LinkedBlockingQueue<Request>) MAILBOX_OF_KEY.get(key);
    if (mailbox == null) throw new IllegalStateException("no Python process answers for " + key + " any more");
    Request request = new Request(key, body);
    UNANSWERED.put(request.number, request);
    mailbox.add(request);
    try {
      return request.get(deadline, TimeUnit.MILLISECONDS);
    } catch (ExecutionException failed) {
      throw (Exception) failed.getCause();
    } catch (TimeoutException late) {
      UNANSWERED.remove(request.number);
      throw late;
    } catch (InterruptedException cancelled) {
      if (mailbox.remove(request)) UNANSWERED.remove(request.number);
      else {
        request.isCancelled = true;
        request.jobs.cancelUntil(request);
        if (deadline == Long.MAX_VALUE) awaitEnd(request);
      }
      throw cancelled;
    } finally {
      mailbox.remove(request);
    }
  }

  /** Waits for Python to be done, so that who is told of a cancelled statement finds its commit, or none and no index half-made. */
  private static void awaitEnd(Request request) {
    try {
      request.get(LAST_WAIT_MS, TimeUnit.MILLISECONDS);
    } catch (Exception over) { // it failed, it takes too long, or whoever cancelled it does not want to wait
      return;
    }
  }
}
