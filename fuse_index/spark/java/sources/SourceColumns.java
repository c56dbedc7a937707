package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Which columns of a query are which of a table of ours: by what files call them, and only where both mean the same type.
 *
 * Every other column gets a name that the table does not have, so that no vote is asked for about it.
 */
public class SourceColumns {
  private static final String NOBODY = "\0";
  /** The names of the leaf's columns: a query may write them in other letters. */
  private final Map<ExprId, String> names = new HashMap<ExprId, String>();
  /** Our columns by the names that the leaf has for them. */
  private final Map<String, SourceIndex.Column> columns = new HashMap<String, SourceIndex.Column>();
  /** Why a column of the query has no votes, by its name. */
  private final Map<String, String> refusals = new HashMap<String, String>();

  public SourceColumns(LogicalPlan leaf) {
    for (Attribute column : ScalaLists.toJava(leaf.output())) names.put(column.exprId(), column.name());
  }

  public void put(String theirs, SourceIndex.Column ours) { columns.put(theirs, ours); }

  public void refuse(String theirs, String why) { refusals.put(theirs, why); }

  public boolean isEmpty() { return columns.isEmpty(); }

  private SourceIndex.Column of(AttributeReference column) {
    SourceIndex.Column found = (SourceIndex.Column) columns.get(names.get(column.exprId()));
    String metadata = column.metadata().json();
    boolean hidden = metadata.indexOf("\"__metadata_col\"") >= 0 || metadata.indexOf("\"__file_source_") >= 0;
    return found != null && !hidden && found.type.equals(column.dataType().catalogString()) ? found : null;
  }

  public static class Rename extends NodeRewrite<Expression> {
    private final SourceColumns columns;
    boolean any;

    public Rename(SourceColumns columns) { this.columns = columns; }

    protected Object rewrite(Object node) {
      if (!(node instanceof AttributeReference)) return null;
      SourceIndex.Column ours = columns.of((AttributeReference) node);
      any |= ours != null;
      String name = ours == null ? NOBODY : ours.name;
      return name.equals(((AttributeReference) node).name()) ? null : ((AttributeReference) node).withName(name);
    }
  }

  /** The condition in the table's names; null if nobody can vote on it. */
  public Expression translate(Expression condition) {
    if (!condition.deterministic() || SubqueryExpression.hasSubquery(condition)) return null;
    Rename rename = new Rename(this);
    Expression renamed = (Expression) condition.transformUp(rename);
    return rename.any ? renamed : null;
  }

  /** Puts the conditions that can be voted on into `asked`, in our names, and why not each other into `refused`; whether a question is worth it. */
  public boolean translateAll(List<Expression> conditions, List<Expression> asked, Map<String, String> refused) {
    boolean worthAsking = false; // that a column is not NULL, which each join adds, leaves out next to nothing
    for (Expression condition : conditions) {
      Expression ours = translate(condition);
      if (ours == null) refused.put(condition.sql(), refusal(condition));
      else asked.add(ours);
      worthAsking |= ours != null && !(condition instanceof IsNotNull);
    }
    return worthAsking;
  }

  /** Why nobody can vote on a condition. */
  public String refusal(Expression condition) {
    if (!condition.deterministic()) return "it may be true at one time and not at another";
    if (SubqueryExpression.hasSubquery(condition)) return "it waits for a subquery";
    for (Attribute column : ScalaLists.toJava(condition.references().toSeq())) {
      String why = (String) refusals.get(names.get(column.exprId()));
      if (why != null) return why;
      SourceIndex.Column ours = (SourceIndex.Column) columns.get(names.get(column.exprId()));
      if (ours != null) return "column " + column.name() + " is " + column.dataType().catalogString() + " here, and " + ours.type + " in the index";
    }
    return "the index has none of its columns";
  }
}
