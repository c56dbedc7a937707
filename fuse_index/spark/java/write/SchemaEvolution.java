package fuse_index.spark.java.write;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * WITH SCHEMA EVOLUTION: Spark's analyzer alters the table by its catalogue, loads it again, and plans the statement for that. Here
 * nothing is altered: what is loaded next is the table as it will be, whose statement brings the change in the commit of its rows.
 */
public class SchemaEvolution {
  /** The state of the analysis that this thread does, between its two calls. */
  private static final ThreadLocal<Held> HELD = new ThreadLocal<Held>();

  public static class Held {
    private final Identifier table;
    public final TableChange[] changes;

    private Held(Identifier table, TableChange[] changes) {
      this.table = table;
      this.changes = changes;
    }
  }

  public static void hold(Identifier table, TableChange[] changes) { HELD.set(new Held(table, changes)); }

  /** What was held back for this table, once. */
  public static TableChange[] taken(Identifier table) {
    Held held = (Held) HELD.get();
    HELD.remove();
    return held != null && held.table.equals(table) ? held.changes : null;
  }
}
