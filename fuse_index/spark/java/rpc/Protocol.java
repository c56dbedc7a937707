package fuse_index.spark.java.rpc;

/** What the JVM and Python say to each other in the same words, and the limits that both keep to: the room `protocol` of Python says what each means. */
public class Protocol {
  public static final int MAX_KEYS = 10000;
  public static final int DOUBTFUL_SECONDS = 30;
  public static final String LATE_ROWS = "the driver had not read them within %d ms";
  public static final String CALL_MARK = "fuse_index call {";
  public static final String VALUE_MARK = "fuse_index value {";
  public static final String CONDITION = "condition";
  public static final String VALUE = "fuse value";
  public static final String ARGUMENT = "fuse_argument_";
  public static final String UDF = "fuse_udf";

  public static final String PRUNE = "prune";
  public static final String READ_ROWS = "read rows";
  public static final String ESTIMATE_COLUMNS = "estimate columns";
  public static final String JOIN_KEYS = "join keys";
  public static final String ANSWER_AGGREGATE = "answer aggregate";
  public static final String REFRESH = "refresh";
  public static final String FIND_SOURCE_INDEX = "find source index";

  public static final String LOAD_TABLE = "load table";
  public static final String READ_METADATA = "read metadata";
  public static final String TABLE_EXISTS = "table exists";
  public static final String LIST_TABLES = "list tables";
  public static final String CREATE_TABLE = "create table";
  public static final String STAGE_TABLE = "stage table";
  public static final String COMMIT_STAGED = "commit staged";
  public static final String ABORT_STAGED = "abort staged";
  public static final String ALTER_TABLE = "alter table";
  public static final String WIDENS_COLUMN = "widens column";
  public static final String DROP_TABLE = "drop table";
  public static final String RENAME_TABLE = "rename table";
  public static final String LIST_NAMESPACES = "list namespaces";
  public static final String NAMESPACE_EXISTS = "namespace exists";
  public static final String LOAD_NAMESPACE = "load namespace";
  public static final String CREATE_NAMESPACE = "create namespace";
  public static final String ALTER_NAMESPACE = "alter namespace";
  public static final String DROP_NAMESPACE = "drop namespace";
  public static final String CREATE_INDEX = "create index";
  public static final String DROP_INDEX = "drop index";
  public static final String CREATE_SOURCE_INDEX = "create source index";
  public static final String DROP_SOURCE_INDEX = "drop source index";
  public static final String DESCRIBE_PROCEDURE = "describe procedure";
  public static final String LIST_PROCEDURES = "list procedures";
  public static final String CALL_PROCEDURE = "call procedure";
  public static final String CHANGE_ROWS = "change rows";
  public static final String TYPED_STATEMENT = "typed statement";

  public static final String APPEND = "append";
  public static final String OVERWRITE = "overwrite";
  public static final String OVERWRITE_PARTITIONS = "overwrite partitions";
  public static final String TRUNCATE = "truncate";
  public static final String DELETE = "delete";
  public static final String UPDATE = "update";
  public static final String MERGE = "merge";
  public static final String INSERT_UNMATCHED = "insert unmatched";
}
