package fuse_index.spark.java.named;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Stands for a catalogue of ours in a session that we are not installed in yet, so that it can be the current one.
 *
 * `setCurrentCatalog` asks neither parser nor rules. Whatever names something asks one of them, and by then ours is in its place.
 */
public class AwaitedCatalog implements CatalogPlugin {
  private String name;

  public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }

  public String name() { return name; }
}
