package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.read.*;
import fuse_index.spark.java.rpc.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/** How many keys a side of a join has, where nothing but NULLs are left out of one of our tables. */
public class KeyCount {
  /**
   * Whether these are more than scans are told, by the rows that are not NULL and by how far the bounds of the values are apart: to wait
   * for them is to collect them for nothing. False where that is not known.
   */
  public static boolean isTooLarge(LogicalPlan side, Expression key) {
    Expression term = key;
    LogicalPlan plan = side;
    Set<String> notNull = new HashSet<String>();
    while (FuseScan.below(plan) == null) {
      if (plan instanceof Project) term = Trees.inline((Project) plan, term);
      else if (!(plan instanceof Filter) || !leavesOutNulls((Filter) plan, notNull)) return false;
      plan = Trees.child(plan);
    }
    if (!(term instanceof Attribute)) return false;
    notNull.add(((Attribute) term).name());
    return FuseScan.below(plan).hasMoreValues(((Attribute) term).name(), notNull, Protocol.MAX_KEYS);
  }

  /** Whether this is all that a filter does; then the names of the columns are added. */
  private static boolean leavesOutNulls(Filter filter, Set<String> notNull) {
    for (Expression conjunct : Trees.conjuncts(filter.condition())) {
      if (!(conjunct instanceof IsNotNull) || !(((IsNotNull) conjunct).child() instanceof Attribute)) return false;
      notNull.add(((Attribute) ((IsNotNull) conjunct).child()).name());
    }
    return true;
  }
}
