import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** A catalogue of a session in which every statement is a question to Python: `endpoint.py` answers. */
public class FuseCatalog implements TableCatalog {
  private final SparkSession session;
  private final String name;
  private final String callbackKey;

  public FuseCatalog(SparkSession session, String name, String callbackKey) {
    this.session = session;
    this.name = name;
    this.callbackKey = callbackKey;
  }

  public void initialize(String given, CaseInsensitiveStringMap options) {}

  public String name() { return name; }

  public Table loadTable(Identifier table) { return load(table, ""); }

  public Table loadTable(Identifier table, String version) { return load(table, version); }

  public Table loadTable(Identifier table, long microseconds) { return load(table, "@" + microseconds); }

  /** `at`: a snapshot id or a tag, or @ and microseconds; empty for the head. */
  private Table load(Identifier table, String at) {
    byte[] reply = ask(request("load", table).key("at").text(at), null);
    if (reply.length == 0) Platform.throwException(new NoSuchTableException(table));
    ByteBuffer bytes = ByteBuffer.wrap(reply);
    int length = bytes.getInt(0);
    String description = new String(reply, 4, length, StandardCharsets.UTF_8);
    try {
      TableSnapshot snapshot = TableSnapshot.of(description, Arrays.copyOfRange(reply, 4 + length, reply.length));
      return new FuseTable(session, name + "." + table, snapshot);
    } catch (IOException malformed) {
      throw new IllegalStateException(malformed);
    }
  }

  public Identifier[] listTables(String[] namespace) { throw new UnsupportedOperationException("SHOW TABLES"); }

  public Table alterTable(Identifier table, TableChange... changes) { throw new UnsupportedOperationException("ALTER TABLE"); }

  public boolean dropTable(Identifier table) { throw new UnsupportedOperationException("DROP TABLE"); }

  public void renameTable(Identifier table, Identifier renamed) { throw new UnsupportedOperationException("ALTER TABLE RENAME"); }

  private Json request(String operation, Identifier table) {
    Json request = new Json().open('{').key("operation").text(operation).key("namespace").open('[');
    for (String part : table.namespace()) request.text(part);
    return request.close(']').key("name").text(table.name());
  }

  private byte[] ask(Json request, Object rows) { return (byte[]) PythonCallback.command(callbackKey, request, rows); }
}
