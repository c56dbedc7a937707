"""Errors of statements: each kind has a condition and an SQLSTATE, and says what to do in words of SQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark

T = "fuse.e.t"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("errors") / "warehouse"


@pytest.fixture(scope="module")
def errors(spark: SparkSession, warehouse: Path) -> Iterator[SparkSession]:
    fuse_spark.install(spark, warehouse=str(warehouse))
    spark.conf.set("spark.sql.scripting.enabled", "true")  # as it is from 4.1 on
    spark.sql("CREATE NAMESPACE fuse.e")
    spark.sql(f"CREATE TABLE {T} (id BIGINT, name STRING)")
    spark.sql(f"INSERT INTO {T} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"CREATE INDEX by_id ON {T} USING bloom (id)")
    spark.sql(f"CALL fuse.system.tag('{T}', 'monday')")
    spark.sql("CREATE TABLE fuse.e.keyed (id BIGINT, name STRING) TBLPROPERTIES ('primary_key' = 'id')")
    yield spark
    spark.conf.unset("spark.sql.scripting.enabled")
    spark.catalog.setCurrentCatalog("spark_catalog")


def refusal(spark: SparkSession, sql: str) -> PySparkException:
    with pytest.raises(PySparkException) as raised:
        spark.sql(sql).collect()
    return raised.value


MISDEEDS = [
    (f"CALL fuse.system.untag('{T}', 'x')", "FUSE_NOT_FOUND", "42704", f"{T} has no tag 'x': it has ['monday']"),
    (
        "CALL fuse.system.undrop('e.never')",
        "FUSE_NOT_FOUND",
        "42704",
        "no table 'e.never' was dropped, or it was purged: look at CALL fuse.system.dropped()",
    ),
    (
        f"CALL fuse.system.tag('{T}', 'monday')",
        "FUSE_ALREADY_EXISTS",
        "42710",
        f"{T} already has a tag 'monday': choose another name, or untag it first",
    ),
    (
        "DROP NAMESPACE fuse.e",
        "FUSE_NOT_EMPTY",
        "2BP01",
        "namespace 'e' holds table 'e.t': drop what it holds first, or all at once with CASCADE",
    ),
    (
        f"CALL fuse.system.recluster('{T}')",
        "FUSE_INVALID_INPUT",
        "22000",
        "the table has no clustering key: give it one with ALTER TABLE … CLUSTER BY (…)",
    ),
    (
        f"CALL fuse.system.vacuum('{T}', retention => '1m')",
        "FUSE_INVALID_ARGUMENT",
        "22023",
        "retention=0:01:00: readers may still need what was replaced in the last hour; say force => true to risk it",
    ),
    (
        f"CALL fuse.system.compact('{T}.tag_monday')",
        "FUSE_READ_ONLY",
        "25006",
        f"{T}.tag_monday is the table as it was at 'monday': change a branch of it",
    ),
    (
        f"DELETE FROM {T}.tag_monday WHERE id = 1",
        "FUSE_READ_ONLY",
        "25006",
        f"{T}.tag_monday is the table as it was at 'monday': change a branch of it",
    ),
    (
        f"TRUNCATE TABLE {T}.base",
        "FUSE_READ_ONLY",
        "25006",
        f"{T}.base is the table without its hot rows: change the table itself",
    ),
    (
        f"INSERT INTO {T}.snapshots SELECT * FROM {T}.snapshots",
        "FUSE_READ_ONLY",
        "25006",
        f"{T}.snapshots shows what there is to see of a table, and cannot be written to: change the table",
    ),
    (
        f"CALL fuse.system.set_not_null('{T}', 'nmae')",
        "FUSE_SCHEMA_MISMATCH",
        "42804",
        "no column 'nmae': the table has no 'nmae'; did you mean ['name']?",
    ),
    (
        f"CREATE INDEX other ON {T} USING blom (id)",
        "FUSE_INVALID_INDEX",
        "42P17",
        "no index kind 'blom': did you mean 'bloom'?; installed are aggregate, bloom, full_text, json_path, min_max, "
        "zone_map",
    ),
    (
        "DESCRIBE NAMESPACE fuse.nowhere",
        "SCHEMA_NOT_FOUND",
        "42704",
        "there is no namespace 'nowhere': it has ['e']",
    ),
    *(
        (sql, "TABLE_OR_VIEW_NOT_FOUND", "42P01", "there is no table 'e.nope': it has ['keyed', 't']")
        for sql in (
            "SELECT * FROM fuse.e.nope",
            "OPTIMIZE fuse.e.nope",
            "DESCRIBE HISTORY fuse.e.nope",
            "SHOW INDEXES ON fuse.e.nope",
            "CALL fuse.system.compact('e.nope')",
            "CALL fuse.system.explain('SELECT * FROM fuse.e.nope')",
        )
    ),
    (
        f"ALTER TABLE {T} RENAME TO fuse.e.keyed",
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "42P07",
        "there is a table 'e.keyed' already: choose another name, or drop it first",
    ),
    (
        f"CREATE INDEX by_id ON {T} USING bloom (id)",
        "INDEX_ALREADY_EXISTS",
        "42710",
        "there is an index 'by_id' already: drop it first, or choose another name",
    ),
    (f"DROP INDEX by_di ON {T}", "INDEX_NOT_FOUND", "42704", "no index 'by_di': did you mean 'by_id'?"),
]


@pytest.mark.parametrize(("sql", "condition", "state", "message"), MISDEEDS, ids=[each[0] for each in MISDEEDS])
def test_a_misdeed_has_a_condition_a_state_and_words(
    errors: SparkSession, sql: str, condition: str, state: str, message: str
) -> None:
    told = refusal(errors, sql)

    assert (told.getCondition(), told.getSqlState()) == (condition, state)
    assert str(told) == f"[{condition}] {message} SQLSTATE: {state}"


def test_a_tag_is_named_with_its_namespace_where_that_is_the_current_one(errors: SparkSession) -> None:
    errors.sql("USE fuse.e")
    try:
        told = refusal(errors, "UPDATE t.tag_monday SET id = 1")
    finally:
        errors.sql("USE spark_catalog.default")
    assert f"] {T}.tag_monday is the table as it was at 'monday'" in str(told)


def test_a_namespace_that_is_taken_has_sparks_condition(errors: SparkSession) -> None:
    told = refusal(errors, "CREATE NAMESPACE fuse.e")  # in Spark's words, where that looks first

    assert (told.getCondition(), told.getSqlState()) == ("SCHEMA_ALREADY_EXISTS", "42P06")


def test_what_spark_finds_out_about_rows_has_sparks_condition(errors: SparkSession) -> None:
    told = refusal(errors, f"UPDATE {T} SET id = (SELECT id FROM range(5))")

    assert (told.getCondition(), told.getSqlState()) == ("SCALAR_SUBQUERY_TOO_MANY_ROWS", "21000")
    assert str(told).count("SQLSTATE") == 1


ROW_ERRORS = [
    (f"INSERT INTO {T} SELECT CAST(name AS BIGINT), name FROM {T}", "CAST_INVALID_INPUT", "22018"),
    (f"DELETE FROM {T} WHERE 1 / (id - 1) > 0", "DIVIDE_BY_ZERO", "22012"),
    (f"UPDATE {T} SET id = id + 9223372036854775807", "ARITHMETIC_OVERFLOW", "22003"),
    (f"UPDATE {T} SET name = raise_error('no')", "USER_RAISED_EXCEPTION", "P0001"),
    (
        f"MERGE INTO {T} USING (SELECT 1L id) s ON {T}.id = s.id WHEN MATCHED THEN UPDATE SET id = CAST(name AS INT)",
        "CAST_INVALID_INPUT",
        "22018",
    ),
    (
        f"MERGE INTO {T} USING (SELECT 1L k FROM range(2)) ON id = k WHEN MATCHED THEN UPDATE SET name = 'x'",
        "MERGE_CARDINALITY_VIOLATION",
        "23K01",
    ),
]


@pytest.mark.every_spark
@pytest.mark.parametrize(("sql", "condition", "state"), ROW_ERRORS, ids=[each[0] for each in ROW_ERRORS])
def test_a_row_that_fails_has_sparks_condition(errors: SparkSession, sql: str, condition: str, state: str) -> None:
    told = refusal(errors, sql)

    assert (told.getCondition(), told.getSqlState()) == (condition, state)
    assert str(told).startswith(f"[{condition}] ")
    assert str(told).count("SQLSTATE") == 1


@pytest.mark.every_spark
@pytest.mark.parametrize("sql", ["BEGIN SELECT 1; DECLARE x INT; END", "BEGIN LEAVE x; END"])
def test_what_sparks_parser_throws_comes_as_it_is(errors: SparkSession, sql: str) -> None:
    with pytest.raises(Py4JJavaError) as raised:  # an exception that the parser's interface does not declare
        errors.sql(sql)

    assert raised.value.java_exception.getClass().getSimpleName() == "SqlScriptingException"


@pytest.mark.parametrize(
    ("handler", "sql"),
    [
        ("SQLSTATE '42704'", f"CALL fuse.system.untag('{T}', 'x')"),
        ("FUSE_NOT_FOUND", f"CALL fuse.system.untag('{T}', 'x')"),
        ("SQLEXCEPTION", f"CALL fuse.system.untag('{T}', 'x')"),
        ("SQLSTATE '2BP01'", "DROP NAMESPACE fuse.e"),
        ("FUSE_READ_ONLY", f"INSERT INTO {T}.snapshots SELECT * FROM {T}.snapshots"),
        ("SCHEMA_ALREADY_EXISTS", "CREATE NAMESPACE fuse.e"),
        ("TABLE_OR_VIEW_NOT_FOUND", "CALL fuse.system.compact('e.nope')"),
        ("CAST_INVALID_INPUT", f"INSERT INTO {T} SELECT CAST(name AS BIGINT), name FROM {T}"),
        ("DIVIDE_BY_ZERO", f"DELETE FROM {T} WHERE 1 / (id - 1) > 0"),
        ("SCALAR_SUBQUERY_TOO_MANY_ROWS", f"UPDATE {T} SET id = (SELECT id FROM range(5))"),
    ],
)
def test_a_handler_of_a_script_catches_them(errors: SparkSession, handler: str, sql: str) -> None:
    [row] = errors.sql(
        f"BEGIN DECLARE EXIT HANDLER FOR {handler} BEGIN SELECT 'caught'; END; {sql}; SELECT 'done'; END"
    ).collect()

    assert row[0] == "caught"


def test_a_handler_of_another_kind_does_not(errors: SparkSession) -> None:
    script = "BEGIN DECLARE EXIT HANDLER FOR FUSE_CONFLICT, SQLSTATE '40001' BEGIN SELECT 1; END; {}; END"

    told = refusal(errors, script.format(f"CALL fuse.system.untag('{T}', 'x')"))
    assert told.getCondition() == "FUSE_NOT_FOUND"


def test_a_name_that_is_taken_or_missing_is_let_pass_where_a_statement_says_so(errors: SparkSession) -> None:
    errors.sql("CREATE NAMESPACE IF NOT EXISTS fuse.e")
    errors.sql(f"CREATE TABLE IF NOT EXISTS {T} (id INT)")
    errors.sql(f"CREATE INDEX IF NOT EXISTS by_id ON {T} USING bloom (id)")
    errors.sql(f"DROP INDEX IF EXISTS nothing ON {T}")
    errors.sql("DROP TABLE IF EXISTS fuse.e.nothing")
    errors.sql("DROP NAMESPACE IF EXISTS fuse.nothing")
    assert not errors.catalog.tableExists("fuse.e.nothing")


def test_a_damaged_block_has_a_condition(errors: SparkSession, warehouse: Path) -> None:
    errors.sql("CREATE TABLE fuse.e.damaged (id BIGINT)")
    errors.sql("INSERT INTO fuse.e.damaged SELECT id FROM range(100)")
    [first] = Path(fuse.catalog(warehouse).table_url("e.damaged"), "_b").iterdir()
    errors.sql("INSERT INTO fuse.e.damaged SELECT id FROM range(100, 200)")
    [second] = set(first.parent.iterdir()) - {first}
    first.write_bytes(second.read_bytes())

    told = refusal(errors, "SELECT sum(id) FROM fuse.e.damaged")
    assert (told.getCondition(), told.getSqlState()) == ("FUSE_CORRUPT", "58P02"), str(told)
