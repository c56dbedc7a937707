package fuse_index.spark.java.sources;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.CharVarcharCodegenUtils;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;

/**
 * Which columns of a query are which of a table of ours: by what files call them, and what is in them, and only where both mean the same
 * type.
 *
 * Every other column gets a name that the table does not have, so that no vote is asked for about it.
 */
public class SourceColumns {
  private static final String NOBODY = "\0";
  /** The names of the leaf's columns: a query may write them in other letters. */
  private final Map<ExprId, String> names = new HashMap<ExprId, String>();
  /** Our columns by the names that the leaf has for them. */
  private final Map<String, SourceIndex.Column> columns = new HashMap<String, SourceIndex.Column>();
  /** What is in these columns of theirs. */
  private final Map<String, NestedField> theirs = new HashMap<String, NestedField>();
  /** Why a column of the query has no votes, by its name. */
  private final Map<String, String> refusals = new HashMap<String, String>();

  public SourceColumns(LogicalPlan leaf) {
    for (Attribute column : ScalaLists.toJava(leaf.output())) names.put(column.exprId(), column.name());
  }

  /** What a query calls its columns, and its leaf calls them; null of one that is computed. CHARs are none, though reading pads them. */
  public static Map<String, String> names(LogicalPlan query) {
    List<Attribute> output = ScalaLists.toJava(query.output());
    List<Expression> values = new ArrayList<Expression>(output);
    for (LogicalPlan plan = query; plan != Trees.below(query); plan = Trees.child(plan)) {
      if (plan instanceof Project) for (int i = 0; i < values.size(); i++) values.set(i, Trees.inline((Project) plan, (Expression) values.get(i)));
    }
    Map<String, String> names = new HashMap<String, String>();
    for (int i = 0; i < values.size(); i++) {
      Expression value = (Expression) values.get(i);
      if (isPadded(value)) value = (Expression) value.references().head();
      names.put(((Attribute) output.get(i)).name(), value instanceof Attribute ? ((Attribute) value).name() : null);
    }
    return names;
  }

  private static boolean isPadded(Expression value) {
    if (value instanceof StaticInvoke && ((StaticInvoke) value).staticObject() == CharVarcharCodegenUtils.class) return true;
    boolean padded = false;
    for (Expression part : ScalaLists.toJava(value.children())) padded |= isPadded(part);
    return padded;
  }

  void put(String name, NestedField column, SourceIndex.Column ours) {
    theirs.put(name, column);
    columns.put(name, ours);
  }

  public void refuse(String theirs, String why) { refusals.put(theirs, why); }

  public boolean isEmpty() { return columns.isEmpty(); }

  /** A column of a query as one of ours, with our names for all that is in it; null where the table does not have it. */
  private AttributeReference of(AttributeReference column) {
    String name = (String) names.get(column.exprId());
    SourceIndex.Column ours = (SourceIndex.Column) columns.get(name);
    DataType type = ours == null || ExpressionJson.isHidden(column) ? null : ours.field.inOurNames(column.dataType(), (NestedField) theirs.get(name));
    if (type == null) return null;
    return new AttributeReference(ours.name, type, column.nullable(), column.metadata(), column.exprId(), column.qualifier());
  }

  public static class Rename extends NodeRewrite<Expression> {
    private final SourceColumns columns;
    /** Columns of which nothing is said. */
    private final Map<Object, Boolean> without;
    boolean any;

    public Rename(SourceColumns columns, Map<Object, Boolean> without) {
      this.columns = columns;
      this.without = without;
    }

    protected Object rewrite(Object node) {
      if (!(node instanceof AttributeReference)) return null;
      AttributeReference ours = without.containsKey(node) ? null : columns.of((AttributeReference) node);
      any |= ours != null;
      return ours != null ? ours : ((AttributeReference) node).withName(NOBODY);
    }
  }

  /** The condition in the table's names; null if nobody can vote on it. */
  public Expression translate(Expression condition) {
    if (!condition.deterministic() || SubqueryExpression.hasSubquery(condition)) return null;
    Map<Object, Boolean> parts = new IdentityHashMap<Object, Boolean>();
    findParts(condition, parts);
    Rename rename = new Rename(this, parts);
    Expression renamed = (Expression) condition.transformUp(rename);
    return rename.any ? renamed : null;
  }

  /**
   * Finds where a condition is on a struct, or a list of such, that is read in part, and not on a value in it: before 4.1 Spark takes a
   * struct for NULL in files that lack the fields which it reads.
   */
  private void findParts(Expression term, Map<Object, Boolean> found) {
    Expression root = term;
    while (root instanceof GetStructField) root = (Expression) root.children().head();
    if (root != term && root instanceof AttributeReference && term.dataType() instanceof AtomicType) return;
    if (root instanceof AttributeReference) {
      AttributeReference ours = of((AttributeReference) root);
      SourceIndex.Column column = (SourceIndex.Column) columns.get(names.get(((AttributeReference) root).exprId()));
      if (ours != null && !ours.dataType().catalogString().equals(column.field.toString())) found.put(root, Boolean.TRUE);
    }
    for (Expression part : ScalaLists.toJava(root.children())) findParts(part, found);
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
      if (ours == null) continue;
      Map<Object, Boolean> parts = new IdentityHashMap<Object, Boolean>();
      findParts(condition, parts);
      if (!parts.isEmpty()) return "it is on " + column.name() + " as a whole, of which a part is read";
      String type = column.dataType().catalogString();
      if (type.equals(ours.field.toString())) return "fields within " + column.name() + " have other names in files than in those that the index knows";
      return "column " + column.name() + " is " + type + " here, and " + ours.field + " in the index";
    }
    return "the index has none of its columns";
  }
}
