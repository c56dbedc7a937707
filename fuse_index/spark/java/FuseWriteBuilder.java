import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** What becomes of the rows that are there: they stay, unless Spark says otherwise. */
public class FuseWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final RowStatement append;
  private boolean replaces;

  public FuseWriteBuilder(RowStatement append) { this.append = append; }

  public WriteBuilder truncate() { return replacing(); }

  /** Which rows go is said by the statement's own condition, which RowStatementRule finds: these predicates know less. */
  public WriteBuilder overwrite(Predicate[] predicates) { return replacing(); }

  /** Our tables have no partitions: all rows are of one. */
  public WriteBuilder overwriteDynamicPartitions() { return replacing(); }

  private WriteBuilder replacing() {
    replaces = true;
    return this;
  }

  public Write build() { return new FuseWrite(replaces ? append.as(RowStatement.OVERWRITE) : append, null); }
}
