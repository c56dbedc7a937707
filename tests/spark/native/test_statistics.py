"""What Spark's cost-based optimizer knows of our tables, judged by its own ANALYZE of the same rows."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.spark.native.column_estimates import estimate_columns

ROWS, BLOCK = 400, 100
EXACT = ("part", "one", "nothing", "id")
"""Columns of which the number of values is told exactly; of the others it is told how many there can be."""


def rows() -> pa.Table:
    draw = np.random.default_rng(5)
    number = draw.integers(-40, 60, ROWS)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "part": pa.array(np.arange(ROWS) // BLOCK, pa.int32()),
            "one": ["same"] * ROWS,
            "number": pa.array([None if v % 7 == 0 else int(v) for v in number], pa.int16()),
            "day": pa.array([date(1969, 12, 1) + timedelta(int(v)) for v in number]),
            "flag": number % 2 == 0,
            "nothing": pa.nulls(ROWS, pa.int64()),
            "text": [f"t{v}" for v in number],
            "price": [Decimal(int(v)) / 4 for v in number],
            "x": pa.array([float("nan") if v % 5 == 0 else float(v) for v in number]),
            "s": pa.array([{"a": int(v)} for v in number]),
        }
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """View ``t`` of one of our tables with key ``id``, and an analysed table ``t_plain`` of the same rows."""
    folder = str(tmp_path_factory.mktemp("statistics") / "t")
    table = fuse.create_table(
        folder, rows().schema, properties={"block_rows": BLOCK, "zone_rows": BLOCK}, primary_key=["id"]
    )
    table.upsert(rows())
    table.maintenance.tier()
    fuse_spark.read(spark, folder).createOrReplaceTempView("t")
    pq.write_table(rows(), f"{folder}.parquet")
    spark.sql("DROP TABLE IF EXISTS t_plain")
    spark.sql(f"CREATE TABLE t_plain USING parquet LOCATION '{folder}.parquet'")
    plain = ", ".join(name for name in rows().column_names if name != "s")
    spark.sql(f"ANALYZE TABLE t_plain COMPUTE STATISTICS FOR COLUMNS {plain}")
    yield spark
    spark.catalog.dropTempView("t")
    spark.sql("DROP TABLE t_plain")


@pytest.fixture
def by_cost(tables: SparkSession) -> Iterator[SparkSession]:
    tables.conf.set("spark.sql.cbo.enabled", "true")
    yield tables
    tables.conf.unset("spark.sql.cbo.enabled")


def row_count(df: DataFrame) -> int:
    """How many rows a query has, as its plan by costs estimates."""
    return int(str(df._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


def scan_of(df: DataFrame) -> Any:
    return df._jdf.queryExecution().optimizedPlan().collectLeaves().head().stats()


def rows_scanned(df: DataFrame) -> int:
    return int(str(scan_of(df).rowCount().get()))


def columns(df: DataFrame) -> dict[str, dict[str, str | None]]:
    """What is known of each column that is known at all, as texts."""
    found: dict[str, dict[str, str | None]] = {}
    known = scan_of(df).attributeStats().iterator()
    while known.hasNext():
        pair = known.next()
        parts = {name: getattr(pair._2(), name)() for name in ("distinctCount", "nullCount", "min", "max")}
        found[pair._1().name()] = {
            name: str(value.get()) if value.isDefined() else None for name, value in parts.items()
        }
    return found


def test_the_rows_of_what_votes_left_are_known(by_cost: SparkSession) -> None:
    assert rows_scanned(by_cost.sql("SELECT * FROM t")) == ROWS
    assert rows_scanned(by_cost.sql("SELECT part FROM t WHERE id = 105")) == BLOCK
    assert rows_scanned(by_cost.sql("SELECT part FROM t WHERE id = -5")) == 0


def test_nobody_is_asked_about_columns_where_plans_do_not_go_by_costs(tables: SparkSession) -> None:
    assert columns(tables.sql("SELECT * FROM t")) == {}


def test_rows_that_do_not_count_are_not_counted(by_cost: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = fuse.create_table(
        url, rows().schema, primary_key=["id"], properties={"block_rows": BLOCK, "delete_mode": "merge-on-read"}
    )
    table.upsert(rows())
    table.maintenance.tier()
    table.delete("number = 3 OR id < 50")
    table.upsert(rows().slice(60, 20))  # hides as many
    left = table.count()
    assert left < ROWS - 50
    assert rows_scanned(fuse_spark.read(by_cost, url)) == left


def test_a_column_of_a_block_that_lost_rows_still_has_values(tmp_path: Path) -> None:
    few = pa.table({"id": np.arange(10), "v": pa.array([None] * 8 + [3, 7], pa.int64())})
    table = fuse.create_table(str(tmp_path / "t"), few.schema, properties={"delete_mode": "merge-on-read"})
    table.append(few)
    table.delete("id < 2")
    found = estimate_columns(table.stored.blocks(), ["v"])["v"]
    assert (found.null_count, found.distinct_count, found.min, found.max) == (6, 2, "3", "7")


def test_few_values_that_are_null_are_not_none_where_rows_were_deleted(tmp_path: Path) -> None:
    few = pa.table({"id": np.arange(10), "v": pa.array([None, *range(9)], pa.int64())})
    table = fuse.create_table(str(tmp_path / "t"), few.schema, properties={"delete_mode": "merge-on-read"})
    table.append(few)
    for left in (9, 8, 7):
        table.delete(f"id BETWEEN {left} AND 9")
        found = estimate_columns(table.stored.blocks(), ["v"])["v"]
        assert (found.null_count, found.min) == (1, "0")


def test_columns_are_known_as_spark_would_find_them(by_cost: SparkSession) -> None:
    ours, plain = (columns(by_cost.sql(f"SELECT * FROM {name}")) for name in ("t", "t_plain"))
    assert set(ours) == {"id", "part", "one", "number", "day", "flag", "nothing"}
    for name, found in ours.items():
        judge = plain[name]
        assert [found[part] for part in ("nullCount", "min", "max")] == [
            judge[part] for part in ("nullCount", "min", "max")
        ], name
        exact = len({value for value in rows()[name].to_pylist() if value is not None})
        told = int(found["distinctCount"] or -1)
        assert told == exact if name in EXACT else exact <= told <= 100, name


def test_what_votes_left_is_all_that_is_known_of(by_cost: SparkSession) -> None:
    found = columns(by_cost.sql("SELECT id, part FROM t WHERE id BETWEEN 110 AND 119"))
    assert [found["part"][part] for part in ("min", "max", "distinctCount")] == ["1", "1", "1"]
    estimate = row_count(by_cost.sql("SELECT id FROM t WHERE id BETWEEN 110 AND 119"))
    assert 5 <= estimate <= 20


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM {t} a JOIN {t} b ON a.number = b.number",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.day = b.day WHERE b.part = 2",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id AND a.one = b.one",
        "SELECT day, count(*) FROM {t} GROUP BY day",
        "SELECT id FROM {t} WHERE day < DATE'1969-12-01' AND flag",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.nothing = b.nothing",
    ],
)
def test_joins_and_groups_are_estimated_as_over_an_analysed_table(by_cost: SparkSession, query: str) -> None:
    ours, plain = (row_count(by_cost.sql(query.format(t=name))) for name in ("t", "t_plain"))
    assert plain / 2 <= ours <= 2 * plain
    answers = [sorted(map(repr, by_cost.sql(query.format(t=name)).collect())) for name in ("t", "t_plain")]
    assert answers[0] == answers[1]


def test_an_empty_table_has_no_row(by_cost: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    fuse.create_table(url, rows().schema)
    found = fuse_spark.read(by_cost, url)
    assert rows_scanned(found) == 0
    assert columns(found) == {}
    assert found.join(found.withColumnRenamed("part", "other"), "id").collect() == []
