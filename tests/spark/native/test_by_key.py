"""Spark reads a table with a primary key as it is: one row for each key; what would not keep the key is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark.source.data_source import register_source


def put(table: fuse.Table, ids: range, name: str) -> None:
    table.upsert([{"id": n, "name": name if n % 7 else None, "n": n % 10} for n in ids])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> fuse.Table:
    """A base with a vector, and a tail that hides rows of it and of its own."""
    url = str(tmp_path_factory.mktemp("keys") / "t")
    properties = {"block_rows": 100, "zone_rows": 20}
    made = fuse.create_table(url, "id BIGINT, name STRING, n INT", primary_key=["id"], properties=properties)
    put(made, range(400), "base")
    made.maintenance.tier()
    made.delete_keys(list(range(0, 400, 9)))
    made.maintenance.tier()
    put(made, range(0, 600, 5), "tail")
    made.delete_keys([1, 5, 10, 900])
    put(made, range(300, 340), "last")
    return made


@pytest.fixture(scope="module", params=["native", "python"])
def view(request: pytest.FixtureRequest, spark: SparkSession, table: fuse.Table) -> DataFrame:
    register_source(spark)
    url = table.stored.store.url
    return fuse_spark.read(spark, url) if request.param == "native" else spark.read.format("fuse").load(url)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, table: fuse.Table) -> DataFrame:
    """The rows as a local scan finds them."""
    return spark.createDataFrame(table.to_pandas(), "id BIGINT, name STRING, n INT")


QUERIES: list[Callable[[DataFrame], DataFrame]] = [
    lambda rows: rows,
    lambda rows: rows.where("name = 'base'").select("n"),
    lambda rows: rows.where("id BETWEEN 295 AND 345"),
    lambda rows: rows.groupBy("name").count(),
    lambda rows: rows.selectExpr("count(*)", "max(id)", "sum(n)", "min(name)"),
    lambda rows: rows.alias("a").join(rows.alias("b"), "id").selectExpr("count(*)", "sum(b.n)"),
    lambda rows: rows.orderBy("id").limit(7),
    lambda rows: rows.selectExpr("count(*)"),
    lambda rows: rows.limit(395).selectExpr("count(*)", "count(DISTINCT id)"),
    lambda rows: rows.join(rows.where("name = 'last'").select("n").distinct(), "n").groupBy("name").count(),
]


@pytest.mark.alike
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_spark_reads_what_counts(whole: DataFrame, view: DataFrame, number: int) -> None:
    found, expected = (sorted(map(tuple, QUERIES[number](rows).collect()), key=str) for rows in (view, whole))

    assert found == expected


def test_a_frame_stays_at_its_commit_until_it_is_refreshed(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = fuse.create_table(url, "id BIGINT, name STRING, n INT", primary_key=["id"], properties={"block_rows": 50})
    put(table, range(100), "base")
    table.maintenance.tier()
    put(table, range(50, 60), "tail")
    frame = fuse_spark.read(spark, url)
    cached = frame.where("name = 'tail'").cache()
    frame.createOrReplaceTempView("by_key")

    def counts() -> list[int]:
        names = spark.sql("SELECT count(*) AS all, count_if(name = 'tail') AS tail FROM by_key").first()
        return [frame.count(), cached.count(), *names]

    before = counts()
    put(table, range(55, 110), "late")
    table.delete_keys([0])
    stays = counts()
    table.maintenance.tier()
    tiered = counts()
    spark.sql("REFRESH TABLE by_key")
    moved = spark.sql("SELECT count(*), count_if(name = 'tail'), max(id) FROM by_key").first()
    cached.unpersist()

    assert (before, stays, tiered) == ([100, 9, 100, 9],) * 3
    assert tuple(moved) == (109, 5, 109)


@pytest.mark.every_spark
def test_the_base_is_what_was_tiered(spark: SparkSession, table: fuse.Table) -> None:
    base = fuse_spark.read(spark, table.stored.store.url, tail=False)

    assert base.count() == 400 - 45
    assert base.select("id").distinct().count() == 400 - 45


REFUSED: dict[str, Callable[[DataFrame, str], Any]] = {
    "overwrite": lambda rows, url: fuse_spark.overwrite(rows.sparkSession, url, rows),
    "merge": lambda rows, url: fuse_spark.merge(rows.sparkSession, url, rows, ["id"]),
}
RIGHT = "delete update write upsert upserting tier compact recluster build_index"
READS = (
    "Certificate Endpoints Explanations FallbackWarning Server explain index install install_in_new_sessions "
    "introspect read search serve use"
)


@pytest.mark.every_spark
@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_would_change_without_the_key_is_refused(spark: SparkSession, table: fuse.Table, name: str) -> None:
    url, version = table.stored.store.url, table.version
    rows = spark.sql("SELECT 5L AS id, 'spark' AS name, 3 AS n UNION ALL SELECT 900L, 'spark', 3")

    with pytest.raises(Exception, match=r"primary key"):
        REFUSED[name](rows, url)

    assert fuse.open_table(url).version == version


def test_no_public_function_was_forgotten() -> None:
    assert {*fuse_spark.__all__} == {*REFUSED, *RIGHT.split(), *READS.split()}


def test_jobs_that_move_or_change_rows_keep_the_key(spark: SparkSession, tmp_path: Path, table: fuse.Table) -> None:
    url = str(tmp_path / "copy")
    copy = fuse.create_table(url, table.schema, primary_key=["id"], properties={"block_rows": 50})
    copy.upsert(table.to_arrow())
    fuse_spark.tier(spark, url)
    put(copy.refresh(), range(0, 500, 3), "copy")
    before = copy.to_arrow().sort_by("id")
    fuse_spark.compact(spark, url)
    assert copy.refresh().to_arrow().sort_by("id") == before
    fuse_spark.tier(spark, url)

    assert copy.refresh().to_arrow().sort_by("id") == before
    assert copy.tail.blocks == 0
    assert fuse_spark.read(spark, url).count() == len(before)
    fuse_spark.delete(spark, url, "n = 3")
    fuse_spark.update(spark, url, "n = 4", {"n": "n - 1"})
    assert (copy.refresh().count("n = 4"), copy.count("n = 3")) == (0, before.column("n").to_pylist().count(4))
