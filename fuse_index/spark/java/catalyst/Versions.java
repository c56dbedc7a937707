package fuse_index.spark.java.catalyst;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * What differs between versions of Spark, from 4.0 on: to be read, and added to, by whoever takes us to the next one.
 *
 * Nodes gain parameters, so that they are copied and made by position; what a version lacks is looked for by its name.
 */
public class Versions {
  /** Spark hands the value of a scalar subquery to the scan by itself, and runs it once: not in 4.0. */
  public static final boolean PASSES_VALUES_TO_SCANS = hasMethod(DataSourceV2Strategy$.class, "translateScalarSubqueryFilterV2");
  /** Spark may make one scan of several of a table that has this: since 4.3, and null before. */
  public static final TableCapability SCAN_MERGING = capability("SCAN_MERGING");
  /** Spark does MERGE WITH SCHEMA EVOLUTION into a table that has this: since 4.1, and null before. */
  public static final TableCapability SCHEMA_EVOLUTION = capability("AUTOMATIC_SCHEMA_EVOLUTION");

  /** The place of `keyGroupedPartitioning` among what a DataSourceV2ScanRelation is made of. */
  private static final int KEY_GROUPED_PARTITIONING = 3;
  /** The name of the analyzer's rule that asks for it ends so: ResolveMergeIntoSchemaEvolution in 4.1, then ResolveSchemaEvolution. */
  private static final String SCHEMA_EVOLUTION_RULE = "SchemaEvolution";
  private static final String ANALYSIS = "org.apache.spark.sql.catalyst.analysis.";

  private static boolean hasMethod(Class<?> type, String name) {
    for (Method method : type.getMethods()) if (method.getName().equals(name)) return true;
    return false;
  }

  private static TableCapability capability(String name) {
    try {
      return TableCapability.valueOf(name);
    } catch (IllegalArgumentException before) {
      return null;
    }
  }

  /** What a node is made of. */
  public static Object[] arguments(LogicalPlan plan) {
    Object[] arguments = new Object[plan.productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = plan.productElement(i);
    return arguments;
  }

  /** The node with `other` for the part of it that `old` is. */
  public static LogicalPlan copy(LogicalPlan plan, Object old, Object other) {
    Object[] arguments = arguments(plan);
    for (int i = 0; i < arguments.length; i++) if (arguments[i] == old) arguments[i] = other;
    return (LogicalPlan) plan.makeCopy(arguments);
  }

  /** The relation of a scan, with another scan whose tasks read one value of each of these columns. */
  public static LogicalPlan keyed(LogicalPlan relation, Object scan, Object keyed, List<Attribute> keys) {
    Object[] arguments = arguments(copy(relation, scan, keyed));
    arguments[KEY_GROUPED_PARTITIONING] = Option.apply(ScalaLists.toScala(keys));
    return (LogicalPlan) relation.makeCopy(arguments);
  }

  /** `key IN (the values of valueKeys[number] in the rows of `values`)`, to be found out before a scan begins. */
  public static Expression dynamicPruning(Expression key, LogicalPlan values, Seq<Expression> valueKeys, int number, boolean onlyInBroadcast) {
    Object numbers = ScalaLists.toScala(Collections.<Object>singletonList(Integer.valueOf(number)));
    Object[] known = {key, values, valueKeys, numbers, Boolean.valueOf(onlyInBroadcast), NamedExpression$.MODULE$.newExprId()};
    Constructor<?> constructor = DynamicPruningSubquery.class.getConstructors()[0];
    Object[] arguments = new Object[constructor.getParameterTypes().length];
    for (int i = 0; i < arguments.length; i++) arguments[i] = i < known.length ? known[i] : Option.empty();
    return (Expression) make(constructor, arguments);
  }

  /** An append of a query's rows to a table, by a write that is there already. */
  public static LogicalPlan append(LogicalPlan table, LogicalPlan query, Write write) {
    Constructor<?> constructor = AppendData.class.getConstructors()[0];
    Class<?>[] types = constructor.getParameterTypes();
    Object[] arguments = new Object[types.length];
    boolean writeGiven = false;
    for (int i = 0; i < arguments.length; i++) {
      if (i == 0) arguments[i] = table;
      else if (types[i] == LogicalPlan.class) arguments[i] = query;
      else if (types[i] == boolean.class) arguments[i] = Boolean.FALSE;
      else if (types[i] == scala.collection.immutable.Map.class) arguments[i] = Map$.MODULE$.empty();
      else {
        arguments[i] = writeGiven ? Option.apply(query) : Option.apply(write);
        writeGiven = true;
      }
    }
    return (LogicalPlan) make(constructor, arguments);
  }

  private static Object make(Constructor<?> constructor, Object[] arguments) {
    try {
      return constructor.newInstance(arguments);
    } catch (ReflectiveOperationException otherVersion) {
      throw new IllegalStateException(otherVersion);
    }
  }

  /** Whether it is an append, or what versions after 4.0 call a MERGE that only inserts. */
  public static boolean appends(LogicalPlan plan) { return plan instanceof AppendData || isInsertOnlyMerge(plan); }

  public static boolean isInsertOnlyMerge(LogicalPlan plan) { return plan.nodeName().equals("InsertOnlyMerge"); }

  /** Whether it is WITH RECURSIVE, since 4.1, which runs plans step by step. */
  public static boolean isRecursion(LogicalPlan plan) { return plan.nodeName().equals("UnionLoop"); }

  /** Whether a plan is of a class that only some versions have, and that Spark runs while it is analysed: EXECUTE IMMEDIATE, scripts, what a command leaves. */
  public static boolean runsInAnalysis(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    return name.indexOf("ExecuteImmediate") >= 0 || name.startsWith("Compound") || name.equals("CommandResult");
  }

  /** Whether it is the analyzer that alters a table, and no ALTER TABLE: the interface of catalogues does not tell. */
  public static boolean isSchemaEvolution() {
    for (StackTraceElement frame : new Throwable().getStackTrace()) {
      if (frame.getClassName().startsWith(ANALYSIS) && frame.getClassName().indexOf(SCHEMA_EVOLUTION_RULE) > 0) return true;
    }
    return false;
  }

  /** The SQL of a default: in newer versions the method is of a class that is not public. */
  public static String sqlOf(ColumnDefaultValue given) {
    try {
      Method sql = given.getClass().getMethod("getSql", new Class<?>[0]);
      sql.setAccessible(true);
      return (String) sql.invoke(given, new Object[0]);
    } catch (ReflectiveOperationException otherVersion) {
      throw new IllegalStateException(otherVersion);
    }
  }
}
