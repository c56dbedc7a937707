"""Joins, aggregates and windows by partition columns shuffle nothing, and answer as over plain files."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from tests.spark.executed import plan_of, scans

SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.files.minPartitionNum": "2",
    "spark.sql.shuffle.partitions": "20",
    "spark.fuse.index.rows.maxBytes": "0",
}
DAYS = 6


def rows(seed: int, days: range, count: int = 300) -> pa.Table:
    """Rows of some days, and of none, in two regions."""
    draw = np.random.default_rng(seed)
    picked = draw.integers(days.start, days.stop, count)
    return pa.table(
        {
            "day": pa.array([None if v == days.start else date(2024, 1, 1) + timedelta(int(v)) for v in picked]),
            "region": [f"r{v % 2}" for v in draw.integers(0, 9, count)],
            "id": draw.integers(0, 40, count),
            "v": np.arange(count),
        }
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views ``a`` and ``b`` by day and region, ``c`` by day, ``h`` of attached files by day; plain ones beside them."""
    folder = tmp_path_factory.mktemp("partitioned")
    a, b, c = rows(1, range(DAYS)), rows(2, range(2, DAYS + 2)), rows(3, range(1, DAYS - 1))
    deleted = [True] * 5 + [False] * 295
    a_table = _create(folder / "a", a, ["day", "region"], {"delete_mode": "merge-on-read"})
    a_table.delete("v < 5")
    for name, table, by in (("b", b, ["day", "region"]), ("c", c, ["day"])):
        _create(folder / name, table, by)
    spark.createDataFrame(b.to_pylist(), "day date, region string, id bigint, v bigint").write.partitionBy(
        "day"
    ).parquet(f"{folder}/h_files")
    fuse.attach(f"{folder}/h_files", str(folder / "h"))
    plain = {"a": a.filter(pa.array([not gone for gone in deleted])), "b": b, "c": c, "h": b}
    for name, table in plain.items():
        fuse_spark.read(spark, str(folder / name)).createOrReplaceTempView(name)
        pq.write_table(table, folder / f"{name}_plain.parquet")
        spark.read.parquet(f"{folder}/{name}_plain.parquet").createOrReplaceTempView(f"{name}_plain")
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key, old in before.items():
        spark.conf.unset(key) if old is None else spark.conf.set(key, old)
    for name in plain:
        spark.catalog.dropTempView(name)
        spark.catalog.dropTempView(f"{name}_plain")


def _create(path: Path, table: pa.Table, by: list[str], properties: dict[str, Any] | None = None) -> fuse.Table:
    created = fuse.create_table(
        str(path), table.schema, partition_by=by, properties={"block_rows": 20, **(properties or {})}
    )
    created.append(table)
    return created


def compare(spark: SparkSession, query: str) -> DataFrame:
    """The query over our tables, after its rows were found to be those of the plain ones, in whatever order."""
    found = spark.sql(re.sub(r"\{(\w)\}", r"\1", query))
    plain = spark.sql(re.sub(r"\{(\w)\}", r"\1_plain", query))
    assert sorted(map(repr, found.collect())) == sorted(map(repr, plain.collect()))
    return found


def shuffles(df: DataFrame) -> int:
    return plan_of(df).split("== Initial Plan ==")[0].count("Exchange hashpartitioning")


@pytest.mark.alike
@pytest.mark.parametrize(
    ("kind", "sides", "by"),
    [
        *((kind, "a, b", "day, region") for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN")),
        *((kind, "a, c", "day, id") for kind in ("JOIN", "FULL JOIN", "LEFT ANTI JOIN")),
        ("JOIN", "a, b", "day, region, id"),
        ("JOIN", "b, h", "day"),
        ("FULL JOIN", "h, c", "day, id"),
        ("JOIN", "a, b", "Day, REGION"),
    ],
)
def test_joins_by_partition_columns_shuffle_nothing(tables: SparkSession, kind: str, by: str, sides: str) -> None:
    left, right = sides.split(", ")
    condition = " AND ".join(f"x.{name} = y.{name}" for name in by.split(", "))
    found = compare(tables, f"SELECT x.day, x.region, x.id, x.v FROM {{{left}}} x {kind} {{{right}}} y ON {condition}")
    assert shuffles(found) == 0


def test_rows_without_a_day_find_each_other(tables: SparkSession) -> None:
    found = compare(tables, "SELECT x.v, y.v FROM {a} x JOIN {b} y ON x.day <=> y.day AND x.id = y.id")
    assert found.count() > 0


@pytest.mark.alike
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT day, id, sum(v) FROM {a} GROUP BY day, id", 0),
        ("SELECT region, day, count(DISTINCT id) FROM {a} WHERE v > 20 GROUP BY day, region", 0),
        ("SELECT DAY, id, sum(v) FROM {a} GROUP BY DAY, id", 0),
        ("SELECT id, sum(v) FROM {a} GROUP BY id", 1),
        (
            "SELECT (SELECT max(s) FROM (SELECT day, id, sum(v) s FROM {a} GROUP BY day, id)), "
            "(SELECT min(n) FROM (SELECT day, id, max(region) n FROM {a} GROUP BY day, id))",
            0,
        ),
        ("SELECT v, row_number() OVER (PARTITION BY day ORDER BY v) FROM {b}", 0),
        ("SELECT x.day, x.id, count(*) FROM {a} x JOIN {c} y ON x.day = y.day GROUP BY x.day, x.id", 0),
        ("SELECT x.v, y.n FROM {a} x JOIN (SELECT day, count(*) n FROM {b} GROUP BY day) y ON x.day = y.day", 0),
        ("SELECT x.v, z.v FROM {a} x JOIN {b} y ON x.day = y.day JOIN {c} z ON y.day = z.day WHERE y.v < 9", 0),
        ("SELECT x.v FROM {a} x JOIN {b} y ON x.day = y.day + 1", 2),
        ("SELECT x.v FROM {a} x JOIN {b} y ON x.id = y.id", 2),
        ("SELECT day, id, sum(v) FROM {a} WHERE day = DATE'2024-01-03' GROUP BY day, id", 1),
    ],
)
def test_what_is_over_a_scan_decides(tables: SparkSession, query: str, expected: int) -> None:
    assert shuffles(compare(tables, query)) == expected


def test_runtime_filters_take_whole_partitions_away(tables: SparkSession) -> None:
    tables.conf.set("spark.fuse.index.join.minScanBytes", "0")
    try:
        compare(tables, "SELECT x.v, y.v FROM {a} x JOIN {b} y ON x.day = y.day WHERE y.region = 'r1' AND y.v < 3")
    finally:
        tables.conf.unset("spark.fuse.index.join.minScanBytes")


def test_without_use_for_it_scans_keep_tasks_of_equal_size(tables: SparkSession) -> None:
    found = tables.sql("SELECT v FROM a")
    found.collect()
    [scan] = scans(found._jdf.queryExecution().executedPlan())
    assert scan.partitions().length() == 2
    tables.conf.set("spark.sql.shuffle.partitions", str(DAYS - 3))
    try:
        assert shuffles(compare(tables, "SELECT day, id, sum(v) FROM {a} GROUP BY day, id")) == 1
    finally:
        tables.conf.set("spark.sql.shuffle.partitions", SETTINGS["spark.sql.shuffle.partitions"])


def test_rows_of_the_tail_are_of_any_partition(tables: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), rows(1, range(DAYS)).schema, partition_by=["day"])
    table.append(rows(4, range(DAYS)))
    table.append(rows(5, range(DAYS)), hot=True)
    view = fuse_spark.read(tables, table.stored.store.url)
    view.createOrReplaceTempView("t")
    query = "SELECT day, id, sum(v) FROM t GROUP BY day, id"
    found, expected = tables.sql(query), table.scan().to_arrow().group_by(["day", "id"]).aggregate([("v", "sum")])
    assert sorted(map(repr, map(tuple, found.collect()))) == sorted(
        map(repr, zip(*(expected[name].to_pylist() for name in ("day", "id", "v_sum")), strict=True))
    )
    assert shuffles(found) == 1
    table.maintenance.tier()
    tiered = fuse_spark.read(tables, table.stored.store.url)
    tiered.createOrReplaceTempView("t")
    again = tables.sql(query)
    assert sorted(again.collect(), key=repr) == sorted(found.collect(), key=repr)
    assert shuffles(again) == 0
