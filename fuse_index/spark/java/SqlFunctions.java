import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import org.apache.spark.unsafe.Platform;
import scala.collection.Seq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.mutable.ArrayBuffer;
import scala.runtime.AbstractFunction1;

/** SQL functions of a session whose bodies Python writes, as SQL text, while Spark analyses a query. */
public class SqlFunctions {
  /** What stands for arguments, and for the call of a Python UDF, in the text that Python gives. */
  private static final String ARGUMENT = "fuse argument ";
  private static final String UDF = "fuse udf";
  private static final Set NAMES = ConcurrentHashMap.newKeySet();

  /** What Python is asked, and may say besides the text. */
  public static class Call {
    private final String arguments;
    private UserDefinedPythonFunction udf;
    private String[] inputs;

    private Call(String arguments) { this.arguments = arguments; }

    /** A JSON list of trees: of a Literal where the argument is constant. */
    public String arguments() { return arguments; }

    /** The UDF that the text calls, and its inputs as SQL text. */
    public void evaluateBy(Object udf, java.util.List inputs) {
      this.udf = (UserDefinedPythonFunction) udf;
      this.inputs = (String[]) inputs.toArray(new String[0]);
    }
  }

  public static class Builder extends AbstractFunction1 {
    private final ParserInterface parser;
    private final Function python;

    public Builder(ParserInterface parser, Function python) {
      this.parser = parser;
      this.python = python;
    }

    public Object apply(Object given) {
      Expression[] arguments = new Expression[((Seq) given).length()];
      for (int i = 0; i < arguments.length; i++) arguments[i] = (Expression) ((Seq) given).apply(i);
      Call call = new Call(described(arguments));
      String reply;
      try {
        reply = (String) PythonCallback.call(python, call);
      } catch (Exception failure) {
        throw refused(failure.toString());
      }
      if (reply.charAt(0) != '+') throw refused(reply.substring(1));
      return filled(parsed(reply.substring(1)), arguments, call);
    }

    private Expression filled(Expression e, Expression[] arguments, Call call) {
      if (e instanceof UnresolvedAttribute && ((UnresolvedAttribute) e).nameParts().length() == 1) {
        String name = (String) ((UnresolvedAttribute) e).nameParts().apply(0);
        if (name.startsWith(ARGUMENT)) return arguments[Integer.parseInt(name.substring(ARGUMENT.length()))];
        if (name.equals(UDF)) {
          ArrayBuffer inputs = new ArrayBuffer();
          for (int i = 0; i < call.inputs.length; i++) inputs.addOne(filled(parsed(call.inputs[i]), arguments, call));
          return call.udf.builder(inputs.toList());
        }
      }
      ArrayBuffer children = new ArrayBuffer();
      for (int i = 0; i < e.children().length(); i++) children.addOne(filled((Expression) e.children().apply(i), arguments, call));
      return children.isEmpty() ? e : (Expression) e.withNewChildren(children.toList());
    }

    private Expression parsed(String sql) {
      try {
        return parser.parseExpression(sql);
      } catch (ParseException wrong) {
        throw refused("a function of a plugin gave Spark SQL that cannot be read: " + wrong.getMessage());
      }
    }
  }

  /** False, and nothing is done, if Spark itself has a function of that name. */
  public static boolean register(SparkSession session, String name, Function python) {
    if (FunctionRegistry$.MODULE$.expressions().contains(name.toLowerCase(Locale.ROOT))) return false;
    Builder builder = new Builder(session.sessionState().sqlParser(), python);
    session.sessionState().functionRegistry().createOrReplaceTempFunction(name, builder, "scala_udf");
    NAMES.add(name);
    return true;
  }

  /** Whether such a UDF evaluates a call that scans know by its mark. */
  public static boolean isOurs(String udf) { return NAMES.contains(udf); }

  private static String described(Expression[] arguments) {
    ArrayBuffer trees = new ArrayBuffer();
    for (int i = 0; i < arguments.length; i++) {
      Expression e = arguments[i];
      trees.addOne(e.foldable() && !(e instanceof Literal) ? new Literal(e.eval(null), e.dataType()) : e);
    }
    return ExpressionJson.listed(trees);
  }

  /** An error of analysis, with these words; that it is checked is all that hides it from the compiler. */
  private static RuntimeException refused(String message) {
    Map words = (Map) Map$.MODULE$.empty().updated("errorMessage", message);
    Platform.throwException(new AnalysisException("USER_RAISED_EXCEPTION", words));
    return null; // never
  }
}
