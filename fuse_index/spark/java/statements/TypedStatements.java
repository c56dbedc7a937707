package fuse_index.spark.java.statements;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session's parser, before which Python puts statements that people know from other lakehouses into Spark's own words, where they
 * are about tables of ours. All other texts, and such statements on tables of others, reach the parser as they are.
 */
public class TypedStatements implements InvocationHandler {
  private static final Logger LOG = LoggerFactory.getLogger("fuse_index");
  private static final Pattern OF_OTHERS = Pattern.compile(
      "(?is)(?:\\s|--[^\\n]*+(?:\\n|$)|/\\*.*?\\*/)*+(?:OPTIMIZE|VACUUM|RESTORE|DESC(?:RIBE)?\\s+(?:HISTORY|DETAIL)|SHOW\\s+INDEX(?:ES)?"
      + "|ALTER\\s+TABLE\\s+(?:[^\\s`]|`[^`]*+`)++\\s+(?:CREATE|DROP|REPLACE)(?:\\s+OR\\s+REPLACE)?\\s+(?:TAG|BRANCH))\\b");

  private final SparkSession session;
  private final Object parser;
  private volatile String callbackKey;

  private TypedStatements(SparkSession session, Object parser, String callbackKey) {
    this.session = session;
    this.parser = parser;
    this.callbackKey = callbackKey;
  }

  /** Has the catalogue of this key asked, which knows all of the session. A session has no method for that once it has its parser. */
  public static void install(SparkSession session, String callbackKey) {
    SessionState state = session.sessionState();
    Object parser = state.sqlParser();
    Object there = ParserProxy.handler(parser);
    if (there instanceof TypedStatements) {
      ((TypedStatements) there).callbackKey = callbackKey;
      return;
    }
    try {
      Reflection.set(state, SessionState.class, "sqlParser", ParserProxy.make(parser, new TypedStatements(session, parser, callbackKey)));
    } catch (ReflectiveOperationException other) {
      LOG.warn("OPTIMIZE, VACUUM, RESTORE and the like are refused by this session's parser: CALL the procedures. " + other);
    }
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().startsWith("parsePlan")) arguments[0] = inSparksWords((String) arguments[0]);
    return ParserProxy.call(parser, method, arguments);
  }

  private String inSparksWords(String typed) {
    if (!OF_OTHERS.matcher(typed).lookingAt()) return typed;
    CatalogManager manager = session.sessionState().catalogManager();
    Json request = new Json().open('{').key("operation").text(Protocol.TYPED_STATEMENT).key("text").text(new VariableSubstitution().substitute(typed));
    request.key("catalog").text(manager.currentCatalog().name()).key("within").texts(manager.currentNamespace());
    byte[] answer = (byte[]) PythonCallback.command(callbackKey, request, null);
    return answer.length == 0 ? typed : new String(answer, StandardCharsets.UTF_8);
  }
}
