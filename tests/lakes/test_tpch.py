"""TPC-H's 22 queries over Parquet, Delta and Iceberg have the rows with indexes that they have without."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.tpch.both import queries
from benchmarks.tpch.sources import PLACES, make_source
from benchmarks.tpch.tables import make_tables
from fuse_index import spark as fuse_spark
from tests.effort import everything
from tests.spark.foreign.ways import SWITCH, conf, uses

SCALE, FILE_ROWS = 0.005, 4_000
ALWAYS = {"q03": "delta", "q12": "parquet", "q18": "iceberg"}
"""Queries that each run of the tests asks, of one format; all of all are asked by EFFORT."""
THEIRS = ("customer", "lineitem", "orders")
"""The tables that these read."""

EMPTY = ("q20",)
"""Queries that have no rows at this scale."""

CASES = [
    pytest.param(format_, name, marks=[] if ALWAYS.get(name) == format_ else [pytest.mark.thorough])
    for format_ in PLACES
    for name in queries()
]


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder, made = tmp_path_factory.mktemp("tpch"), dict[str, str]()
    tables = {name: rows for name, rows in make_tables(SCALE).items() if everything() or name in THEIRS}
    fuse_spark.install(spark, warehouse=folder / "warehouse")

    class Places(dict[str, str]):
        def __missing__(self, format_: str) -> str:
            made[format_] = self[format_] = make_source(spark, format_, tables, Path(folder), FILE_ROWS)
            return self[format_]

    yield Places()
    spark.sql("USE spark_catalog.default")
    for place in made.values():
        for table in tables:
            spark.sql(f"DROP TABLE {place}.{table}")
        spark.sql(f"DROP NAMESPACE {place}")


@pytest.mark.parametrize(("format_", "name"), CASES)
def test_a_query_has_the_rows_that_it_has_without_indexes(
    spark: SparkSession, places: dict[str, str], format_: str, name: str
) -> None:
    spark.sql(f"USE {places[format_]}")
    rows: dict[str, list[Row]] = {}
    for asked in ("false", "true"):
        with conf(spark, **{SWITCH: asked}):
            df = spark.sql(queries()[name])
            rows[asked] = df.collect()
            told = uses(df)
            assert asked == "true" or told == []
            assert not any(use.problem or use.unknown for use in told)

    assert rows["true"] == rows["false"]
    assert rows["true"] or name in EMPTY
