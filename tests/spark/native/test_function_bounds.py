"""Comparisons of monotone functions skip blocks by the bounds of the column, in Spark as in a local scan."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.pruning.explanation import Explanation

COUNT, BLOCKS = 600, 20
CONDITIONS = {
    "year(ts) = 2022": 8,
    "date_trunc('MONTH', ts) = TIMESTAMP'2023-03-01 00:00:00'": 3,
    "CAST(ts AS DATE) = DATE'2023-03-04'": 2,
    "last_day(day) = DATE'2023-02-28'": 2,
    "add_months(day, 2) > DATE'2024-09-01'": 3,
    "day + 5 = DATE'2022-06-01'": 2,
    "substring(name, 1, 4) = 'n050'": 2,
    "left(name, 3) = 'n59'": 1,
    "n + 1 = 40": 1,
    "3 - n >= 0 AND name IS NOT NULL": 1,
    "n * 2 IN (1000, 1002)": 1,
    "NOT (n + 1 = 40)": 20,
    "n + 1 = 40 OR n IS NULL": 2,
}
WRAPS = ("n + 1 = 40", "3 - n >= 0 AND name IS NOT NULL", "n * 2 IN (1000, 1002)")
"""Where integers wrap, nothing is concluded."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("bounds") / "t")
    table = fuse.create_table(
        folder, "n BIGINT, ts TIMESTAMP, day DATE, name STRING", ["n"], {"block_rows": COUNT // BLOCKS}
    )
    start = datetime(2021, 12, 20, tzinfo=UTC)
    times = [start + timedelta(days=number * 1.7) for number in range(COUNT)]
    table.append(
        pa.table(
            {
                "n": [None if number % 29 == 7 else number for number in range(COUNT)],
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "day": pa.array([each.date() for each in times]),
                "name": [f"n{number:03}ü" for number in range(COUNT)],
            }
        )
    )
    return folder


@pytest.fixture(params=[("true", "UTC"), ("false", "America/New_York")], ids=["ansi", "legacy"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[tuple[SparkSession, bool]]:
    names = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
    before = [spark.conf.get(name) for name in names]
    for name, value in zip(names, request.param, strict=True):
        spark.conf.set(name, value)
    yield spark, request.param[0] == "true"
    for name, value in zip(names, before, strict=True):
        spark.conf.set(name, value)


@pytest.mark.alike
@pytest.mark.parametrize("where", CONDITIONS)
def test_a_function_s_values_imply_bounds(session: tuple[SparkSession, bool], place: str, where: str) -> None:
    spark, ansi = session
    indexed = fuse_spark.read(spark, place).where(where)
    plain = fuse_spark.read(spark, place, indexes=False).where(where)

    found = fuse_spark.explain(indexed)
    assert isinstance(found, Explanation)
    assert sorted(map(str, indexed.collect())) == sorted(map(str, plain.collect()))
    if ansi:
        assert found.blocks.kept == CONDITIONS[where], found
    elif where in WRAPS:
        assert found.blocks.kept > CONDITIONS[where]


def test_integers_that_wrap_are_found(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path / "t", "n BIGINT", ["n"], {"block_rows": 1})
    table.append([{"n": number} for number in (-5, 7, (1 << 63) - 1)])
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = fuse_spark.read(spark, tmp_path / "t").where("n + 1 < -10").collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    assert [row.n for row in found] == [(1 << 63) - 1]
