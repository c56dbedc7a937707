package fuse_index.spark.java.catalyst;

import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;

/** Walks over plans and expressions of Spark's, and the nodes that we add to them. */
public class Trees {
  /** Replaces references to aliases by the expressions that these name. */
  public static class InlineAliases extends NodeRewrite<Expression> {
    private final Map<ExprId, Expression> aliases;

    public InlineAliases(Map<ExprId, Expression> aliases) { this.aliases = aliases; }

    protected Object rewrite(Object node) { return node instanceof Attribute ? aliases.get(((Attribute) node).exprId()) : null; }
  }

  /** Whether a condition is made of others. */
  public static boolean isConnective(Expression e) { return e instanceof And || e instanceof Or || e instanceof Not; }

  /** The first plan right below another. */
  public static LogicalPlan child(LogicalPlan plan) { return (LogicalPlan) plan.children().head(); }

  /** What lies below projections and filters. */
  public static LogicalPlan below(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter) below = child(below);
    return below;
  }

  /** The plan with `other` in the place of `old`, which is told from its equals and may be in `other` again. */
  public static LogicalPlan replace(LogicalPlan plan, LogicalPlan old, LogicalPlan other) {
    if (plan == old) return other;
    for (LogicalPlan child : ScalaLists.toJava(plan.children())) {
      LogicalPlan replaced = replace(child, old, other);
      if (replaced != child) return replaceChild(plan, child, replaced);
    }
    return plan;
  }

  /** The plan with `other` for the child that `old` is, and nothing deeper: that may stand below another child, too. */
  public static LogicalPlan replaceChild(LogicalPlan plan, LogicalPlan old, LogicalPlan other) {
    List<LogicalPlan> children = new ArrayList<LogicalPlan>(ScalaLists.toJava(plan.children()));
    for (int i = 0; i < children.size(); i++) if (children.get(i) == old) children.set(i, other);
    return (LogicalPlan) plan.withNewChildren(ScalaLists.toScala(children));
  }

  /** The terms of a condition's AND, in their order: itself alone if it is none. */
  public static List<Expression> conjuncts(Expression condition) {
    List<Expression> conjuncts = new ArrayList<Expression>();
    addConjuncts(condition, conjuncts);
    return conjuncts;
  }

  private static void addConjuncts(Expression condition, List<Expression> conjuncts) {
    if (condition instanceof And) {
      addConjuncts(((And) condition).left(), conjuncts);
      addConjuncts(((And) condition).right(), conjuncts);
    } else {
      conjuncts.add(condition);
    }
  }

  /** All of these conditions; TRUE if there are none. */
  public static Expression and(List<Expression> conditions) {
    Expression all = null;
    for (Expression condition : conditions) all = all == null ? condition : new And(all, condition);
    return all == null ? Literal.TrueLiteral() : all;
  }

  /** The strongest condition on these columns alone that is TRUE wherever `condition` is; null if there is none. */
  public static Expression impliedBy(Expression condition, AttributeSet columns) {
    if (condition instanceof And) {
      Expression left = impliedBy(((And) condition).left(), columns);
      Expression right = impliedBy(((And) condition).right(), columns);
      return left == null ? right : right == null ? left : new And(left, right);
    }
    if (condition instanceof Or) {
      Expression left = impliedBy(((Or) condition).left(), columns);
      Expression right = impliedBy(((Or) condition).right(), columns);
      return left == null || right == null ? null : new Or(left, right);
    }
    boolean possible = condition.deterministic() && !SubqueryExpression.hasSubquery(condition);
    return possible && condition.references().subsetOf(columns) ? condition : null;
  }

  /** The rows of a plan on which all of these conditions are true. */
  public static LogicalPlan filter(List<Expression> conditions, LogicalPlan plan) {
    return conditions.isEmpty() ? plan : new Filter(and(conditions), plan);
  }

  /** The column of this name; null if there is none. */
  public static Attribute find(List<Attribute> columns, String name) {
    for (Attribute column : columns) if (column.name().equals(name)) return column;
    return null;
  }

  /** The expressions of columns that have names of their own. */
  public static Map<ExprId, Expression> aliases(scala.collection.Seq<NamedExpression> columns) {
    Map<ExprId, Expression> aliases = new HashMap<ExprId, Expression>();
    for (NamedExpression column : ScalaLists.toJava(columns)) {
      if (column instanceof Alias) aliases.put(column.exprId(), ((Alias) column).child());
    }
    return aliases;
  }

  /** A term over a projection, in terms of the columns below that. */
  public static Expression inline(Project project, Expression term) { return inline(aliases(project.projectList()), term); }

  public static Expression inline(Map<ExprId, Expression> aliases, Expression term) { return (Expression) term.transformDown(new InlineAliases(aliases)); }

  /** A column of this value, with an id of its own. */
  public static Alias alias(Expression value, String name) {
    return alias(value, name, NamedExpression$.MODULE$.newExprId(), scala.Option.apply(Metadata.empty()));
  }

  /** A column of this value, with the metadata that the value has where it is a column itself. */
  public static Alias alias(Expression value, String name, ExprId id) { return alias(value, name, id, scala.Option.<Metadata>empty()); }

  private static Alias alias(Expression value, String name, ExprId id, scala.Option<Metadata> metadata) {
    return new Alias(value, name, id, ScalaLists.<String>of(), metadata, ScalaLists.<String>of());
  }

  /** A column in the place of another, of which nothing above notices. */
  public static Alias alias(Expression value, Attribute column) {
    return new Alias(value, column.name(), column.exprId(), column.qualifier(), scala.Option.apply(column.metadata()), ScalaLists.<String>of());
  }

  public static AttributeReference attribute(String name, DataType type, boolean nullable) {
    return new AttributeReference(name, type, nullable, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), ScalaLists.<String>of());
  }

  /** Whether each time that it is evaluated it is the same, in all expressions of a plan. */
  public static boolean isDeterministic(LogicalPlan plan) {
    for (Expression expression : ScalaLists.toJava(plan.expressions())) if (!expression.deterministic()) return false;
    return true;
  }
}
