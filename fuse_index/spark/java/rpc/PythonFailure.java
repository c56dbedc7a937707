package fuse_index.spark.java.rpc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

/** What went wrong in Python, as `failures.py` encodes it. */
public class PythonFailure extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  /** The kind of error, which is called the same by all surfaces. */
  public final String code;
  /** The name by which a statement raises it: ours, or one of Spark's own. */
  public final String condition;
  /** Null for a condition of Spark's own, which has one. */
  public final String sqlState;

  private PythonFailure(JsonNode failure) {
    super(failure.get("message").asText());
    this.code = failure.get("code").asText();
    this.condition = failure.get("condition").asText();
    this.sqlState = failure.has("sqlState") ? failure.get("sqlState").asText() : null;
  }

  public static PythonFailure decode(String failure) {
    try {
      return new PythonFailure(new ObjectMapper().readTree(failure));
    } catch (IOException malformed) {
      throw new IllegalStateException(malformed);
    }
  }

  public String toString() { return code + ": " + getMessage(); }
}
