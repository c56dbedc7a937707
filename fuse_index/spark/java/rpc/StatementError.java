package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.SparkThrowableHelper;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.IndexAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchIndexException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.HashMap;

/** What a statement raises: words of ours, under a condition and an SQLSTATE by which its caller knows what went wrong. */
public class StatementError extends AnalysisException {
  private static final long serialVersionUID = 1L;
  static final String PREFIX = "FUSE_";
  /** Spark makes errors of conditions that are in its own list: by this one, of any words. */
  static final String ANY_WORDS = "USER_RAISED_EXCEPTION";
  private final String sqlState;

  private StatementError(String condition, String sqlState, String message) {
    super(text(condition, sqlState, message), scala.Option.empty(), scala.Option.empty(), scala.Option.empty(),
        scala.Option.apply(condition), parameters(message), new QueryContext[0]);
    this.sqlState = sqlState;
  }

  public String getSqlState() { return sqlState; }

  /** Itself: of a copy with a place in the statement, Spark's class would look for the condition in its list. */
  public AnalysisException withPosition(Origin origin) { return this; }

  /** What Python raised, to be thrown: of the class that Spark's statements expect, where they expect one. */
  private static AnalysisException of(PythonFailure failure) {
    String condition = failure.condition;
    String message = failure.getMessage();
    if (failure.sqlState != null) return new StatementError(condition, failure.sqlState, message);
    if (condition.equals("SCHEMA_NOT_FOUND")) return new MissingNamespace(message);
    if (condition.equals("SCHEMA_ALREADY_EXISTS")) return new TakenNamespace(message);
    if (condition.equals("TABLE_OR_VIEW_ALREADY_EXISTS")) return new TakenTable(message);
    if (condition.equals("INDEX_ALREADY_EXISTS")) return new TakenIndex(message);
    if (condition.equals("INDEX_NOT_FOUND")) return new MissingIndex(message);
    return new StatementError(condition, SparkThrowableHelper.getSqlState(condition), message);
  }

  /** Throws what somebody asked for and does not get; that it is checked is all that hides it from the compiler. */
  public static RuntimeException invalidInput(String message) { return raise("INVALID_INPUT", "22000", message); }

  /** Throws that what was to be changed is only read. */
  public static RuntimeException readOnly(String message) { return raise("READ_ONLY", "25006", message); }

  /** Throws what went wrong while a statement was asked of Python: what that raised, or what hindered it. */
  public static RuntimeException raise(Exception failure) {
    SafeRule.restoreInterrupt(failure);
    if (failure instanceof PythonFailure) Platform.throwException(of((PythonFailure) failure));
    return raise("EXTERNAL_ERROR", "58000", String.valueOf(failure.getMessage()));
  }

  /** What went wrong, for callers that may throw no checked exception. `otherwise`: what is said where a failure has no words. */
  public static RuntimeException unchecked(Exception failure, String otherwise) {
    SafeRule.restoreInterrupt(failure);
    String code = failure instanceof PythonFailure ? ((PythonFailure) failure).code : "EXTERNAL_ERROR";
    String message = failure.getMessage() == null ? otherwise : failure.getMessage();
    return new SparkRuntimeException(ErrorConditions.of(code), parameters(message), failure, new QueryContext[0], "");
  }

  private static RuntimeException raise(String code, String sqlState, String message) {
    Platform.throwException(new StatementError(PREFIX + code, sqlState, message));
    return null; // never
  }

  private static String text(String condition, String sqlState, String message) {
    String name = "[" + condition + "] ";
    return message.startsWith(name) ? message : name + message + " SQLSTATE: " + sqlState; // Spark's own have both
  }

  private static String spark(String condition, String message) {
    return text(condition, SparkThrowableHelper.getSqlState(condition), message);
  }

  private static scala.collection.immutable.Map<String, String> parameters(String message) {
    HashMap<String, String> parameters = new HashMap<String, String>();
    return (HashMap<String, String>) parameters.updated("errorMessage", message);
  }

  /** That there is no such namespace. */
  public static class MissingNamespace extends NoSuchNamespaceException {
    private static final long serialVersionUID = 1L;
    private final String message;

    public MissingNamespace(String message) {
      super(ANY_WORDS, parameters(message));
      this.message = message;
    }

    public String getCondition() { return "SCHEMA_NOT_FOUND"; }

    public String getSqlState() { return SparkThrowableHelper.getSqlState(getCondition()); }

    public String getMessage() { return spark(getCondition(), message); }
  }

  /** That there is a namespace of this name. */
  public static class TakenNamespace extends NamespaceAlreadyExistsException {
    private static final long serialVersionUID = 1L;
    private final String message;

    public TakenNamespace(String message) {
      super(ANY_WORDS, parameters(message));
      this.message = message;
    }

    public String getCondition() { return "SCHEMA_ALREADY_EXISTS"; }

    public String getSqlState() { return SparkThrowableHelper.getSqlState(getCondition()); }

    public String getMessage() { return spark(getCondition(), message); }
  }

  /** That there is a table of this name. */
  public static class TakenTable extends TableAlreadyExistsException {
    private static final long serialVersionUID = 1L;
    private final String message;

    public TakenTable(String message) {
      super(ANY_WORDS, parameters(message), scala.Option.empty());
      this.message = message;
    }

    public String getCondition() { return "TABLE_OR_VIEW_ALREADY_EXISTS"; }

    public String getSqlState() { return SparkThrowableHelper.getSqlState(getCondition()); }

    public String getMessage() { return spark(getCondition(), message); }
  }

  /** That there is an index of this name. */
  public static class TakenIndex extends IndexAlreadyExistsException {
    private static final long serialVersionUID = 1L;
    private final String message;

    public TakenIndex(String message) {
      super(ANY_WORDS, parameters(message), scala.Option.empty());
      this.message = message;
    }

    public String getCondition() { return "INDEX_ALREADY_EXISTS"; }

    public String getSqlState() { return SparkThrowableHelper.getSqlState(getCondition()); }

    public String getMessage() { return spark(getCondition(), message); }
  }

  /** That there is no such index. */
  public static class MissingIndex extends NoSuchIndexException {
    private static final long serialVersionUID = 1L;
    private final String message;

    public MissingIndex(String message) {
      super(ANY_WORDS, parameters(message), scala.Option.empty());
      this.message = message;
    }

    public String getCondition() { return "INDEX_NOT_FOUND"; }

    public String getSqlState() { return SparkThrowableHelper.getSqlState(getCondition()); }

    public String getMessage() { return spark(getCondition(), message); }
  }
}
