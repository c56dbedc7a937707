"""What fails, as a cast, raises on each row that is read, whoever reads it; what votes leave out is not read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn

CONDITIONS = [
    ("x = 5", True),
    ("CAST(x AS INT) = 5", True),
    ("CAST(x AS INT) = 5 AND n >= 0", True),
    ("CAST(x AS INT) = 5 AND n = 1", True),  # Spark looks at the cast first
    ("n = 1 AND CAST(x AS INT) = 5", False),
    ("x > DATE'2020-01-01'", True),
    ("TRY_CAST(x AS INT) = 5", False),
    ("CAST(n AS BIGINT) = 1", False),
    ("CAST(n AS STRING) = '1'", False),
    ("CAST(n AS TINYINT) = 1", True),
    ("10 / n = 5", True),
    ("n * n * 3000 = 1", True),
    ("make_date(2020, 1, n) = DATE'2020-01-02'", True),
    ("element_at(array(1, 2), n % 2) = 9", True),
    ("1000 % (n + 1) = 1 AND n % 5 < 9", False),
]
NUMBERS = {condition: number for number, (condition, _) in enumerate(CONDITIONS)}
ERRORS = (
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "OVERFLOW",
    "DATETIME_FIELD",
    "INDEX_OF_ZERO",
    "SQLSTATE",
)


ROWS = [("2", 10), ("3", 11), ("5", 1), ("5", 12), ("6", 13), ("7", 2), ("9", 1000), ("a", 0)]


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a table of two blocks."""
    place = tmp_path_factory.mktemp("casts") / "warehouse"
    fuse_spark.install(spark, warehouse=str(place))
    spark.sql("CREATE NAMESPACE fuse.db")
    spark.sql("CREATE TABLE fuse.db.t (x STRING, n INT) TBLPROPERTIES (block_rows = 4)")
    rows = "('a', 0), ('5', 1), ('7', 2), ('9', 1000), ('2', 10), ('3', 11), ('5', 12), ('6', 13)"
    spark.sql(f"INSERT INTO fuse.db.t SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    return place


@pytest.fixture
def table(spark: SparkSession, warehouse: Path) -> Iterator[str]:
    """The table's name; what a test changed is put back."""
    fuse_spark.install(spark, warehouse=str(warehouse))
    made = fuse.catalog(warehouse).load_table("db.t")
    version = made.version
    yield "fuse.db.t"
    spark.conf.unset("spark.fuse.index.rows.maxBytes")
    if made.refresh().version != version:
        made.restore(version)


def outcome(spark: SparkSession, sql: str) -> str:
    try:
        return str(sorted(map(tuple, spark.sql(sql).collect())))
    except PySparkException as raised:
        message = str(raised)
        assert any(error in message for error in ERRORS), message
        return "raises"


@pytest.mark.every_spark
@pytest.mark.parametrize(("condition", "raises"), CONDITIONS)
def test_the_driver_raises_where_executors_do(spark: SparkSession, table: str, condition: str, raises: bool) -> None:
    for columns in in_turn(("*", "count(*)"), NUMBERS[condition]):
        question = f"SELECT {columns} FROM {table} WHERE {condition}"
        by_driver = outcome(spark, question)
        spark.conf.set("spark.fuse.index.rows.maxBytes", "0")
        assert by_driver == outcome(spark, question)
        assert (by_driver == "raises") is raises
        spark.conf.unset("spark.fuse.index.rows.maxBytes")


@pytest.mark.every_spark
@pytest.mark.parametrize(("condition", "raises"), CONDITIONS)
def test_statements_raise_alike_and_leave_nothing_behind(
    spark: SparkSession, table: str, condition: str, raises: bool
) -> None:
    statements = (f"UPDATE {table} SET n = n WHERE {condition}", f"DELETE FROM {table} WHERE {condition}")
    for statement in in_turn(statements, NUMBERS[condition] // 2):
        assert (outcome(spark, statement) == "raises") is raises
        assert not raises or outcome(spark, f"SELECT * FROM {table}") == str(ROWS)


@pytest.mark.every_spark
def test_what_votes_leave_out_is_not_read(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET n = 3 WHERE n = 1000")  # so that no other block has numbers as high as these
    assert outcome(spark, f"SELECT * FROM {table} WHERE CAST(x AS INT) = 5 AND n BETWEEN 10 AND 13") == "[('5', 12)]"
    spark.sql(f"DELETE FROM {table} WHERE CAST(x AS INT) = 5 AND n BETWEEN 10 AND 13")
    assert spark.table(table).count() == 7


HIDDEN = ["CAST(x AS INT) = 99", "x = 99", "10 / n = 99", "make_date(2020, 1, n) = DATE'2999-01-01'"]


@pytest.mark.parametrize("tiered", [False, True])
def test_rows_that_are_no_more_do_not_raise(spark: SparkSession, tmp_path: Path, tiered: bool) -> None:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    catalog = fuse.catalog(tmp_path / "warehouse")
    made = catalog.create_table("t", "id BIGINT NOT NULL, x STRING, n INT", primary_key=["id"])
    made.upsert([{"id": 1, "x": "a", "n": 0}, {"id": 2, "x": "b", "n": 0}, {"id": 3, "x": "7", "n": 3}])
    if tiered:
        made.maintenance.tier()
    made.create_index("by_x", "bloom", ["x"])
    made.upsert([{"id": 1, "x": "5", "n": 1}])
    made.delete_keys([{"id": 2}])
    for condition in in_turn(HIDDEN, tiered):
        on = condition.replace("x", "t.x", 1) if "x" in condition else condition
        source = "(SELECT explode(array(1L, 2L, 3L)) AS id) s ON t.id = s.id"
        for statement in (
            f"SELECT * FROM fuse.t WHERE {condition}",
            f"SELECT max(n) FROM fuse.t WHERE {condition} HAVING max(n) > 0",
            f"DELETE FROM fuse.t WHERE {condition}",
            f"UPDATE fuse.t SET n = 5 WHERE {condition}",
            f"MERGE INTO fuse.t t USING {source} AND {on} WHEN MATCHED THEN DELETE",
            f"MERGE INTO fuse.t t USING {source} WHEN MATCHED AND {on} THEN DELETE",
        ):
            assert spark.sql(statement).collect() == []
    spark.conf.set("spark.fuse.index.rows.maxBytes", "0")
    assert [spark.sql(f"SELECT * FROM fuse.t WHERE {each}").collect() for each in HIDDEN] == [[]] * len(HIDDEN)
    spark.conf.unset("spark.fuse.index.rows.maxBytes")
    assert made.refresh().count() == 2
