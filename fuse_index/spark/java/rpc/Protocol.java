package fuse_index.spark.java.rpc;

/** What the JVM and Python say to each other in the same words, and the limits that both keep to: `protocol.py` says what each means. */
public class Protocol {
  public static final int MAX_KEYS = 10000;
  public static final int DOUBTFUL_SECONDS = 30;
  public static final String LATE_ROWS = "the driver had not read them within %d ms";
  public static final String CALL_MARK = "fuse_index call {";
  public static final String ARGUMENT = "fuse argument ";
  public static final String UDF = "fuse udf";

  public static final String PRUNE = "prune";
  public static final String READ_ROWS = "read rows";
  public static final String ESTIMATE_COLUMNS = "estimate columns";
  public static final String JOIN_KEYS = "join keys";
  public static final String ANSWER_AGGREGATE = "answer aggregate";
  public static final String REFRESH = "refresh";
  public static final String FIND_SOURCE_INDEX = "find source index";

  public static final String APPEND = "append";
  public static final String OVERWRITE = "overwrite";
  public static final String OVERWRITE_PARTITIONS = "overwrite partitions";
  public static final String TRUNCATE = "truncate";
  public static final String DELETE = "delete";
  public static final String UPDATE = "update";
  public static final String MERGE = "merge";
  public static final String INSERT_UNMATCHED = "insert unmatched";
}
