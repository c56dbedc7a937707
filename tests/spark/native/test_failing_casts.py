"""A cast that fails raises on each row that is read, whoever reads it; a block that votes leave out is not read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark

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
]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    spark.sql("CREATE NAMESPACE fuse.db")
    spark.sql("CREATE TABLE fuse.db.t (x STRING, n INT) TBLPROPERTIES (block_rows = 4)")
    rows = "('a', 0), ('5', 1), ('7', 2), ('9', 1000), ('2', 10), ('3', 11), ('5', 12), ('6', 13)"
    spark.sql(f"INSERT INTO fuse.db.t SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    yield "fuse.db.t"
    spark.conf.unset("spark.fuse.index.rows.maxBytes")


def outcome(spark: SparkSession, sql: str) -> str:
    try:
        return str(sorted(map(tuple, spark.sql(sql).collect())))
    except PySparkException as raised:
        message = str(raised)
        assert "CAST_INVALID_INPUT" in message or "CAST_OVERFLOW" in message, message
        return "raises"


@pytest.mark.every_spark
@pytest.mark.parametrize(("condition", "raises"), CONDITIONS)
def test_the_driver_raises_where_executors_do(spark: SparkSession, table: str, condition: str, raises: bool) -> None:
    for question in (f"SELECT * FROM {table} WHERE {condition}", f"SELECT count(*) FROM {table} WHERE {condition}"):
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
    before = outcome(spark, f"SELECT * FROM {table}")
    for statement in (f"UPDATE {table} SET n = n WHERE {condition}", f"DELETE FROM {table} WHERE {condition}"):
        assert (outcome(spark, statement) == "raises") is raises
        assert not raises or outcome(spark, f"SELECT * FROM {table}") == before


@pytest.mark.every_spark
def test_what_votes_leave_out_is_not_read(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET n = 3 WHERE n = 1000")  # so that no other block has numbers as high as these
    assert outcome(spark, f"SELECT * FROM {table} WHERE CAST(x AS INT) = 5 AND n BETWEEN 10 AND 13") == "[('5', 12)]"
    spark.sql(f"DELETE FROM {table} WHERE CAST(x AS INT) = 5 AND n BETWEEN 10 AND 13")
    assert spark.table(table).count() == 7
