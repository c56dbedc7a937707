package fuse_index.spark.java.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import fuse_index.spark.java.files.*;
import fuse_index.spark.java.rpc.*;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;

/** A table that is being made, or is to take another's place: it gets its name once its rows are written. */
public class StagedFuseTable extends CatalogFuseTable implements StagedTable {
  private final String number;

  public StagedFuseTable(CatalogClient client, Identifier identifier, String shown, TableSnapshot snapshot, JsonNode about) {
    super(client, identifier, shown, snapshot, about);
    this.number = about.get("staged").asText();
  }

  public void commitStagedChanges() { end(Protocol.COMMIT_STAGED); }

  public void abortStagedChanges() { end(Protocol.ABORT_STAGED); }

  private void end(String how) { client.ask(client.request(how, identifier).key("staged").text(number)); }
}
