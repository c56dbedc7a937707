"""Settings of a session that change between when a query is written and when it runs, and names in two cases."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn
from tests.spark.foreign import typed
from tests.spark.foreign.sources import use_index
from tests.spark.foreign.ways import Ways, conf

CLOCKS = [
    "ts = TIMESTAMP'2021-03-28 03:01:10'",
    "CAST(ts AS DATE) = DATE'2021-03-29'",
    "CAST(ts AS STRING) LIKE '2021-03-29 0%'",
    "ts < DATE'2021-03-29' AND n > 3",
    "CAST(d AS TIMESTAMP) = TIMESTAMP'2020-03-30 00:00:00'",
    "CAST(nt AS TIMESTAMP) = TIMESTAMP'2021-03-28 02:30:00'",
    "hour(ts) = 3 OR date_trunc('day', ts) = TIMESTAMP'2021-03-30'",
    "d = '2020-03-30'",
]
OVERFLOWS = [
    "n * 3000000 > 5",
    "CAST(b AS INT) = 5 OR a = 'a07919'",
    "CAST(n + 2147483600 AS INT) IS NULL",
    "arr[7] = 3",
]
"""Conditions that raise, or are NULL, as a session says."""


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, chosen = tmp_path_factory.mktemp("settings"), {"d", "ts", "nt", "n", "a", "b"}
    spark.sql(typed.rows_sql(0, typed.FILES * typed.ROWS, typed.FILES)).write.parquet(str(home / "lake"))
    use_index(spark, home / "lake", home / "index", columns=sorted(chosen))
    spark.read.parquet(f"{home}/lake").createOrReplaceTempView("lake_of_settings")  # whose files are listed once
    yield "lake_of_settings"
    spark.catalog.dropTempView("lake_of_settings")


def written_under(ways: Ways, settings: dict[str, str], query: str) -> Callable[[], DataFrame]:
    """What gives a query that was written under other settings than it runs in."""

    def given() -> DataFrame:
        with conf(ways.spark, **settings):
            return ways.spark.sql(query)

    return given


@pytest.mark.every_spark
@pytest.mark.parametrize(("before", "after"), [("UTC", "Asia/Kathmandu"), ("America/New_York", "Europe/Berlin")])
def test_another_time_zone(ways: Ways, source: str, before: str, after: str) -> None:
    for number, where in enumerate(CLOCKS):
        query = f"SELECT id FROM {source} WHERE {where}"
        ways.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_before AS {query}")
        written = [
            written_under(ways, {"spark.sql.session.timeZone": before}, query),
            "SELECT * FROM of_before WHERE id % 3 > 0",
        ]
        with conf(ways.spark, spark_sql_session_timeZone=after):
            for each in in_turn(written, number + (before == "UTC")):  # by each pair of zones in another way
                ways.same(each)


@pytest.mark.parametrize(("before", "after"), [("true", "false"), ("false", "true")])
def test_other_arithmetic(ways: Ways, source: str, before: str, after: str) -> None:
    for where in OVERFLOWS:
        query = f"SELECT id FROM {source} WHERE {where}"
        with conf(ways.spark, spark_sql_ansi_enabled=after):
            ways.same(written_under(ways, {"spark.sql.ansi.enabled": before}, query))


def test_names_that_differ_in_case(ways: Ways, tmp_path: Path) -> None:
    spark, lake = ways.spark, tmp_path / "lake"
    lake.mkdir()
    for number in range(4):
        values = list(range(number * 10, number * 10 + 10))
        names = {"id": values, "a": [f"x{v}" for v in values], "n": [39 - v for v in values]}
        if number % 2:  # the same column for a reader that is told so, and another for one that is not
            names = {name.upper() if name == "a" else name: column for name, column in names.items()}
        pq.write_table(pa.table(names), lake / f"{number}.parquet")
    table = fuse.attach(lake, tmp_path / "index", votes_only=True)
    for name in ("id", "a", "n"):
        if name in {field.name for field in table.snapshot.schema.fields}:
            table.create_index(f"by_{name}", "bloom", [name])
    fuse_spark.use(spark, tmp_path / "index")

    for sensitive in ("true", "false"):
        with conf(spark, spark_sql_caseSensitive=sensitive):
            for turn, schema in enumerate(("id BIGINT, a STRING, n BIGINT", "id BIGINT, A STRING, n BIGINT")):
                spark.read.schema(schema).parquet(str(lake)).createOrReplaceTempView("two_cases")
                name = schema.split(", ")[1].split()[0]
                of_both = in_turn(("id = 15", "n = 24", "n = 34"), turn)
                for where in (f"{name} = 'x5'", f"{name} = 'x15'", f"{name} IS NULL", *of_both):
                    ways.same(f"SELECT * FROM two_cases WHERE {where}")


@pytest.mark.every_spark
def test_a_cache_that_votes_filled(ways: Ways, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE cached_of USING parquet LOCATION '{tmp_path}/lake' AS SELECT * FROM range(0, 90, 1, 6)")
    use_index(spark, tmp_path / "lake", tmp_path / "index", columns=["id"])
    try:
        ways.same("SELECT * FROM cached_of WHERE id = 50")
        some = spark.sql("SELECT * FROM cached_of WHERE id IN (50, 200)").cache()
        assert [row.id for row in some.collect()] == [50]
        spark.sql("INSERT INTO cached_of VALUES (200)")
        assert sorted(row.id for row in spark.sql("SELECT * FROM cached_of WHERE id IN (50, 200)").collect()) == [
            50,
            200,
        ]
        ways.same("SELECT * FROM cached_of WHERE id IN (51, 200)")
        some.unpersist()
        spark.sql("INSERT OVERWRITE cached_of SELECT id + 200 FROM range(5)")
        ways.same("SELECT * FROM cached_of WHERE id IN (51, 203)")
    finally:
        spark.sql("DROP TABLE cached_of")
