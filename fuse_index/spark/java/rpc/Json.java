package fuse_index.spark.java.rpc;

import java.util.*;

/** Writes JSON, compact and in the order of the calls: replies are remembered by the text of a request. */
public class Json {
  private final StringBuilder out = new StringBuilder();

  /** A JSON list of values that are JSON already. */
  public static String list(Collection<String> values) { return "[" + String.join(",", values) + "]"; }

  /** Begins an object or a list: `bracket` is { or [. */
  public Json open(char bracket) {
    separate();
    out.append(bracket);
    return this;
  }

  /** Ends an object or a list: `bracket` is } or ]. */
  public Json close(char bracket) {
    out.append(bracket);
    return this;
  }

  /** The name of an object's next member; its value follows. */
  public Json key(String name) {
    text(name);
    out.append(':');
    return this;
  }

  /** A string. */
  public Json text(String value) {
    separate();
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32) out.append("\\u00").append(Character.forDigit(c >> 4, 16)).append(Character.forDigit(c & 15, 16));
      else out.append(c);
    }
    out.append('"');
    return this;
  }

  /** A list of strings. */
  public Json texts(String[] values) {
    open('[');
    for (String value : values) text(value);
    return close(']');
  }

  public Json bool(boolean value) { return json(String.valueOf(value)); }

  /** A value that is JSON already. */
  public Json json(String value) {
    separate();
    out.append(value);
    return this;
  }

  public String toString() { return out.toString(); }

  /** A comma, unless this is the first value of what it is in, or the value of a key. Strings end with a quote, so these are brackets. */
  private void separate() {
    char last = out.length() == 0 ? '[' : out.charAt(out.length() - 1);
    if (last != '[' && last != '{' && last != ':') out.append(',');
  }
}
