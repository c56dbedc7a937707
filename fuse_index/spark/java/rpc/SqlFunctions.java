package fuse_index.spark.java.rpc;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import org.apache.spark.sql.types.StringType;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/** SQL functions of a session whose bodies Python writes, as SQL text, while Spark analyses a query. */
public class SqlFunctions {
  private static final Set<String> REGISTERED_NAMES = ConcurrentHashMap.newKeySet();

  /** A call as Python has written it, where it needs a Protocol.UDF. */
  public static class CallOfUdf {
    private final String sql;
    private final UserDefinedPythonFunction udf;
    private final String[] inputs;

    /** `inputs` are SQL text too. */
    public CallOfUdf(String sql, Object udf, List<String> inputs) {
      this.sql = sql;
      this.udf = (UserDefinedPythonFunction) udf;
      this.inputs = (String[]) inputs.toArray(new String[0]);
    }
  }

  /** Makes an expression of a call's arguments; `A` is always a Seq of Expression, a type variable for NodeRewrite's reason. */
  public static class FunctionBuilder<A, E> extends AbstractFunction1<A, E> {
    private final ParserInterface parser;
    private final String callbackKey;

    public FunctionBuilder(ParserInterface parser, String callbackKey) {
      this.parser = parser;
      this.callbackKey = callbackKey;
    }

    @SuppressWarnings("unchecked")
    public E apply(A arguments) { return (E) build(ScalaLists.toJava((Seq<Expression>) arguments)); }

    private Expression build(List<Expression> arguments) {
      Object reply;
      try {
        reply = PythonCallback.ask(callbackKey, argumentsJson(arguments));
      } catch (Exception failure) {
        throw StatementError.raise(failure);
      }
      if (reply instanceof CallOfUdf) return filled(parsed(((CallOfUdf) reply).sql), arguments, (CallOfUdf) reply);
      String sql = (String) reply;
      if (sql.charAt(0) != '+') throw StatementError.invalidInput(sql.substring(1));
      return filled(parsed(sql.substring(1)), arguments, null);
    }

    private Expression filled(Expression e, List<Expression> arguments, CallOfUdf call) {
      if (e instanceof UnresolvedAttribute && ((UnresolvedAttribute) e).nameParts().length() == 1) {
        String name = (String) ((UnresolvedAttribute) e).nameParts().apply(0);
        if (name.startsWith(Protocol.ARGUMENT)) return (Expression) arguments.get(Integer.parseInt(name.substring(Protocol.ARGUMENT.length())));
        if (name.equals(Protocol.UDF) && call != null) {
          List<Expression> inputs = new ArrayList<Expression>();
          for (String input : call.inputs) inputs.add(filled(parsed(input), arguments, call));
          return call.udf.builder(ScalaLists.toScala(inputs));
        }
      }
      List<Expression> children = new ArrayList<Expression>();
      for (Expression child : ScalaLists.toJava(e.children())) children.add(filled(child, arguments, call));
      return children.isEmpty() ? e : (Expression) e.withNewChildren(ScalaLists.toScala(children));
    }

    private Expression parsed(String sql) {
      try {
        return parser.parseExpression(sql);
      } catch (ParseException wrong) {
        throw StatementError.invalidInput("a function of a plugin gave Spark SQL that cannot be read: " + wrong.getMessage());
      }
    }
  }

  /** False, and nothing is done, if Spark itself has a function of that name. */
  public static boolean register(SparkSession session, String name, String callbackKey) {
    if (FunctionRegistry$.MODULE$.expressions().contains(name.toLowerCase(Locale.ROOT))) return false;
    FunctionBuilder<Seq<Expression>, Expression> builder =
        new FunctionBuilder<Seq<Expression>, Expression>(session.sessionState().sqlParser(), callbackKey);
    session.sessionState().functionRegistry().createOrReplaceTempFunction(name, builder, "scala_udf");
    REGISTERED_NAMES.add(name);
    return true;
  }

  /** Whether such a Protocol.UDF evaluates a call that scans know by its mark. */
  public static boolean isRegistered(String udf) { return REGISTERED_NAMES.contains(udf); }

  /** Whether a condition is the mark of a call, as `call_markers.py` writes it, and nothing else. */
  public static boolean isMark(Expression condition) {
    boolean in = condition instanceof In || condition instanceof InSet;
    return in && hasMark((Expression) condition.children().head(), Protocol.CALL_MARK);
  }

  /** What `functions.py` puts beside the mark of a call, for Spark: a plainer condition, or the call in Spark's words; null if nothing. */
  public static Expression besideCall(Expression condition) {
    if (!(condition instanceof And) || !isMark(((And) condition).right())) return null;
    Expression call = ((And) condition).left();
    boolean narrowed = call instanceof And && ((And) call).right() instanceof PythonUDF;
    return narrowed ? ((And) call).left() : call instanceof PythonUDF ? null : call;
  }

  /**
   * The mark of the call that a value is, where it is one of a function that is no condition; else the value. Spark moves what is
   * computed of a call into it (`if(mark, -call, NULL)`): that is no call.
   */
  public static Expression valueMark(Expression value) {
    boolean marked = value instanceof If && isCallAlone(((If) value).trueValue()) && hasMark(((If) value).predicate(), Protocol.VALUE_MARK);
    return marked ? ((If) value).predicate() : value;
  }

  /** A condition that is the mark of a function that is no condition, and TRUE on every row; null for others. */
  public static Expression valueMarkOf(Expression condition) {
    boolean sure = (condition instanceof In || condition instanceof InSet) && !condition.nullable();
    return sure && hasMark((Expression) condition.children().head(), Protocol.VALUE_MARK) ? condition : null;
  }

  /** Whether a mark is beside this call: it names the function, and has its columns. */
  public static boolean isMarkOf(Expression mark, PythonUDF call) {
    boolean named = hasMark(mark, Protocol.VALUE_MARK + "\"call\": \"" + call.name() + "\"");
    return named && mark.references().subsetOf(call.references()) && call.references().subsetOf(mark.references());
  }

  /** Whether a value is what a Python UDF gives, or will, as it is. */
  private static boolean isCallAlone(Expression value) {
    return value instanceof PythonUDF || value instanceof AttributeReference && ((AttributeReference) value).name().startsWith("pythonUDF");
  }

  /** Whether it is a constant that can be had: until it is optimized, a text of ours is a cast of its bytes. */
  public static boolean isConstant(Expression e) {
    if (!(e instanceof Cast) || !(e.dataType() instanceof StringType)) return e instanceof Literal;
    Expression bytes = (Expression) e.children().head();
    return bytes instanceof Literal && ((Literal) bytes).value() instanceof byte[];
  }

  private static boolean hasMark(Expression expression, String mark) {
    if (isConstant(expression) && String.valueOf(expression.eval(null)).startsWith(mark)) return true;
    for (Expression child : ScalaLists.toJava(expression.children())) if (hasMark(child, mark)) return true;
    return false;
  }

  private static String argumentsJson(List<Expression> arguments) {
    List<Expression> trees = new ArrayList<Expression>();
    for (Expression e : arguments) {
      trees.add(e.foldable() && !(e instanceof Literal) ? new Literal(e.eval(null), e.dataType()) : e);
    }
    return ExpressionJson.ofArguments(ScalaLists.toScala(trees));
  }
}
