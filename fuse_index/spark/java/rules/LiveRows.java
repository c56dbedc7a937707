package fuse_index.spark.java.rules;

import fuse_index.spark.java.catalyst.*;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.read.*;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.BitwiseGet;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OctetLength;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.ShiftRight;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Seq;

/**
 * Leaves out rows of a scan that no longer count, where some block of its table has such: by the number of a row in its file, which
 * Spark's reader gives, and the deletion vector of the file, which is a constant of each range. It is planned right over the scan, below
 * all conditions, so that none is ever asked of such a row. A scan that was planned otherwise refuses to read such a block.
 */
public class LiveRows extends SparkStrategy {
  private static final Expression NO_BIT = Literal$.MODULE$.apply(Byte.valueOf((byte) 0));

  /** Puts what gives the live rows in the place of a plan that scans. */
  public static class OverScans extends NodeRewrite<LogicalPlan> {
    protected Object rewrite(Object node) { return mustFilter(node) ? over((LogicalPlan) node) : null; }
  }

  private final SparkSession session;

  public LiveRows(SparkSession session) { this.session = session; }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (!mustFilter(Trees.below(plan))) return ScalaLists.<SparkPlan>of();
    LogicalPlan live = (LogicalPlan) plan.transformDown(new OverScans());
    SparkPlan planned = (SparkPlan) session.sessionState().planner().plan(live).next();
    return ScalaLists.of(planned);
  }

  private static boolean mustFilter(Object node) {
    FuseScan scan = FuseScan.below(node);
    return scan != null && scan.snapshot.listing.hasDeletedRows() && !scan.asked.metadata().tellsDeletedRows();
  }

  private static LogicalPlan over(LogicalPlan relation) {
    FuseScan scan = FuseScan.below(relation).tellingDeletedRows();
    List<Attribute> read = FlatScan.columns(relation, scan);
    Expression vector = (Expression) Trees.find(read, FileMetadata.DELETED);
    Expression row = (Expression) Trees.find(read, FileMetadata.ROW_INDEX);
    Filter filter = new Filter(isLive(vector, row), scan.replaceIn(relation, ScalaLists.toScala(read)));
    List<NamedExpression> columns = new ArrayList<NamedExpression>();
    for (Attribute column : ScalaLists.toJava(relation.output())) columns.add(column);
    return new Project(ScalaLists.toScala(columns), filter);
  }

  /** Whether there is no vector, or none as long, or its bit for the row is 0. */
  private static Expression isLive(Expression vector, Expression row) {
    Expression number = new ShiftRight(row, Literal$.MODULE$.apply(Integer.valueOf(3)));
    Expression length = Cast$.MODULE$.apply(new OctetLength(vector), DataTypes.LongType, false);
    Expression address = new Add(number, Literal$.MODULE$.apply(Long.valueOf(Platform.BYTE_ARRAY_OFFSET)));
    Expression bits = new StaticInvoke(Platform.class, DataTypes.ByteType, "getByte", ScalaLists.toScala(Arrays.asList(vector, address)),
        ScalaLists.toScala(new ArrayList<AbstractDataType>()), true, false, true, scala.Option.empty());
    Expression place = Cast$.MODULE$.apply(new BitwiseAnd(row, Literal$.MODULE$.apply(Long.valueOf(7L))), DataTypes.IntegerType, false);
    Expression none = new Or(new IsNull(vector), new GreaterThanOrEqual(number, length));
    return new Or(none, new EqualTo(new BitwiseGet(bits, place), NO_BIT));
  }
}
