package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Conditions on values of plugins' functions, `l2_distance(v, …) < 3`, above the Python that evaluates these: each in terms of the
 * columns below. A value is `if(mark, UDF, NULL)`, and its mark is TRUE on every row. So is what stands for a condition: that mark,
 * with the condition in its text.
 */
public class CallConditions {
  private final AttributeSet columns;
  /** Calls of plugins' functions, by the column that has their values. */
  private final Map<ExprId, PythonUDF> calls = new HashMap<ExprId, PythonUDF>();

  /** `columns`: those below the Python. */
  public CallConditions(LogicalPlan python, AttributeSet columns) {
    this.columns = columns;
    List<PythonUDF> udfs = ScalaLists.toJava(((BaseEvalPython) python).udfs());
    List<Attribute> values = ScalaLists.toJava(((BaseEvalPython) python).resultAttrs());
    for (int i = 0; i < udfs.size(); i++) {
      PythonUDF udf = (PythonUDF) udfs.get(i);
      if (SqlFunctions.isRegistered(udf.name())) calls.put(((Attribute) values.get(i)).exprId(), udf);
    }
  }

  /** The condition with a mark in the place of each part that is on the value of one call; other parts as they are. */
  public Expression marked(Expression condition) { return calls.isEmpty() ? condition : marked(condition, null); }

  /** `mark`: of the call in whose value Spark has put the condition, `if(mark, UDF < 3, NULL)`. */
  private Expression marked(Expression condition, Expression mark) {
    if (condition instanceof And) return new And(marked(((And) condition).left(), mark), marked(((And) condition).right(), mark));
    if (condition instanceof Or) return new Or(marked(((Or) condition).left(), mark), marked(((Or) condition).right(), mark));
    if (condition.references().subsetOf(columns)) return condition;
    boolean turned = condition instanceof Not;
    Expression moved = turned ? ((Not) condition).child() : condition;
    Expression around = mark == null && moved instanceof If ? SqlFunctions.valueMarkOf(((If) moved).predicate()) : null;
    if (around != null) return marked(turned ? new Not(((If) moved).trueValue()) : ((If) moved).trueValue(), around);
    Values<Expression> values = new Values<Expression>(calls, mark);
    Expression leaf = (Expression) condition.transformDown(values);
    boolean whole = values.count > 0 && values.alike && leaf.deterministic();
    for (Attribute other : ScalaLists.toJava(leaf.references().toSeq())) whole &= other.name().equals(Protocol.VALUE);
    Expression marked = whole ? withCondition(values.mark, leaf) : null;
    return marked == null ? condition : marked;
  }

  /** Puts a column of one name in the place of each value of a call. */
  public static class Values<N> extends NodeRewrite<N> {
    private final Map<ExprId, PythonUDF> calls;
    private Expression mark;
    private int count = 0;
    /** Whether all are of one call, and its mark is theirs. */
    private boolean alike = true;

    public Values(Map<ExprId, PythonUDF> calls, Expression mark) {
      this.calls = calls;
      this.mark = mark;
    }

    protected Object rewrite(Object node) {
      Expression around = node instanceof If ? SqlFunctions.valueMarkOf(((If) node).predicate()) : null;
      Object value = around == null ? node : ((If) node).trueValue();
      PythonUDF call = value instanceof Attribute ? (PythonUDF) calls.get(((Attribute) value).exprId()) : null;
      if (call == null) return null;
      Expression own = around == null ? mark : around;
      alike &= own != null && (mark == null || mark.semanticEquals(own)) && SqlFunctions.isMarkOf(own, call);
      mark = own;
      count++;
      return Trees.attribute(Protocol.VALUE, call.dataType(), true);
    }
  }

  /** The mark of a call with what its value is to be; null if the mark is not as we wrote it. */
  private static Expression withCondition(Expression mark, Expression condition) {
    Texts<Expression> texts = new Texts<Expression>(ExpressionJson.ofOne(condition, Collections.emptySet()));
    Expression marked = (Expression) mark.transformDown(texts);
    return texts.count == 1 ? marked : null;
  }

  /** Writes a condition into the text of a mark. */
  public static class Texts<N> extends NodeRewrite<N> {
    private final String condition;
    private int count = 0;

    public Texts(String condition) { this.condition = condition; }

    protected Object rewrite(Object node) {
      Object value = node instanceof Literal ? ((Literal) node).value() : null;
      if (!(value instanceof UTF8String) || !value.toString().startsWith(Protocol.VALUE_MARK)) return null;
      count++;
      String call = value.toString().substring(Protocol.VALUE_MARK.length());
      String text = Protocol.VALUE_MARK + '"' + Protocol.CONDITION + "\": " + condition + ", " + call;
      return new Literal(UTF8String.fromString(text), ((Literal) node).dataType());
    }
  }
}
