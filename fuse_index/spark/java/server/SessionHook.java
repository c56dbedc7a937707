package fuse_index.spark.java.server;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import fuse_index.spark.java.statements.*;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/**
 * Has Python install us in each session that is made of one session, before the first statement or name is read there.
 *
 * Connect and the Thrift server make the sessions of their clients by `newSession` of one that they are started with, whose
 * extensions all of them share. A parser that is put there is made for each, when its state is made.
 */
public class SessionHook {
  /** Gets texts that are parsed as whole statements. */
  private static final Logger STATEMENTS = LoggerFactory.getLogger("fuse_index.statements");
  public static final String DEADLINE = "spark.fuse.index.install.deadline";
  private static final String DEFAULT_DEADLINE = "60s";

  public static void put(SparkSession session, String callbackKey) {
    SparkSessionExtensions extensions = session.extensions();
    extensions.injectParser(new Parsers<org.apache.spark.sql.SparkSession, ParserInterface, ParserInterface>(callbackKey));
    extensions.injectHintResolutionRule(new FirstPlans<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>>());
  }

  /** Makes the parser of a session; the type variables are there for NodeRewrite's reason. */
  public static class Parsers<S, P, R> extends AbstractFunction2<S, P, R> {
    private final String callbackKey;

    public Parsers(String callbackKey) { this.callbackKey = callbackKey; }

    @SuppressWarnings("unchecked")
    public R apply(S session, P parser) {
      InvocationHandler first = new FirstStatement((SparkSession) session, parser, callbackKey);
      return (R) ParserProxy.make(parser, first);
    }
  }

  /** Spark's parser, whose first call waits until Python is done with the session. A proxy, since versions add methods. */
  public static class FirstStatement implements InvocationHandler {
    private final SparkSession session;
    private final Object parser;
    private final String callbackKey;
    private volatile boolean installed;

    public FirstStatement(SparkSession session, Object parser, String callbackKey) {
      this.session = session;
      this.parser = parser;
      this.callbackKey = callbackKey;
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      if (!installed) {
        install();
        return ParserProxy.call(session.sessionState().sqlParser(), method, arguments); // ours stands before this one from now on
      }
      if (STATEMENTS.isInfoEnabled() && method.getName().startsWith("parsePlan")) STATEMENTS.info(session.sessionUUID() + " " + arguments[0]);
      return ParserProxy.call(parser, method, arguments);
    }

    /** What fails is tried again by the next statement. */
    private synchronized void install() {
      if (installed) return;
      long deadline = JavaUtils.timeStringAsMs(SQLConf.get().getConfString(DEADLINE, DEFAULT_DEADLINE));
      try {
        PythonCallback.ask(callbackKey, ServedSessions.add(session), deadline);
      } catch (Exception failure) {
        throw StatementError.unchecked(failure, "the session was not made ready within " + deadline + " ms");
      }
      installed = true;
    }
  }

  /** Makes the rule of a session. */
  public static class FirstPlans<S, R> extends AbstractFunction1<S, R> {
    @SuppressWarnings("unchecked")
    public R apply(S session) { return (R) new FirstPlan<LogicalPlan>((SparkSession) session); }
  }

  /** Has the parser called before names are resolved in plans that no text was parsed for: `format("fuse")` of a DataFrame. */
  public static class FirstPlan<P extends TreeNode<?>> extends PlanRule<P> {
    private final SparkSession session;
    private boolean parsed;

    public FirstPlan(SparkSession session) { this.session = session; }

    protected LogicalPlan rewrite(LogicalPlan plan) {
      if (!parsed) parse();
      return plan;
    }

    private void parse() {
      try {
        session.sessionState().sqlParser().parseMultipartIdentifier("a");
      } catch (ParseException never) {
        throw new IllegalStateException(never);
      }
      parsed = true;
    }
  }
}
