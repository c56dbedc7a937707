"""Spark's own reader leaves out rows that deletion vectors hide: in splits, under filters, beside nested columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark.source.data_source import register_source

COUNT = 600
GONE = ["id BETWEEN 120 AND 139", "k IN (3, 14)", "name LIKE 'bad%'", "id IN (0, 599)"]


def rows() -> pa.Table:
    ids = np.arange(COUNT)
    return pa.table(
        {
            "id": ids,
            "k": ids * 7 % 40,
            "name": [f"bad {n}" if n % 97 == 1 else str(n) for n in ids.tolist()],
            "s": [{"a": n, "b": [n, None], "c": {"d": f"x{n}"}} if n % 5 else None for n in ids.tolist()],
            "l": [[{"x": n / 4}] * (n % 3) for n in ids.tolist()],
            "m": pa.array([{"k": n} for n in ids.tolist()], pa.map_(pa.string(), pa.int64())),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def views(spark: SparkSession, folder: Path) -> Iterator[SparkSession]:
    """``t``: rows deleted by vectors. ``p``: the same, rewritten. ``python``: ``t`` by Python."""
    for view, mode in (("t", "merge-on-read"), ("p", "copy-on-write")):
        url = str(folder / view)
        properties = {"block_rows": 150, "zone_rows": 25, "delete_mode": mode}
        table = fuse.create_table(url, rows().schema, properties=properties)
        table.append(rows())
        table.create_index("by_k", "bloom", ["k"])
        table.create_index("sums", "aggregate", ["k"], aggregates=["count(*)", "sum(id)", "max(k)"])
        for where in GONE:
            table.delete(where)
        if mode == "merge-on-read":
            assert (table.stored.blocks().row_counts == 150).all()
            assert table.stored.blocks().has_all_rows.tolist() == [False] * 4
        fuse_spark.read(spark, url).createOrReplaceTempView(view)
    register_source(spark)
    spark.read.format("fuse").load(str(folder / "t")).createOrReplaceTempView("python")
    yield spark
    for view in ("t", "p", "python"):
        spark.catalog.dropTempView(view)


@contextmanager
def session(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def compare(spark: SparkSession, query: str, view: str = "t") -> None:
    found, expected = (sorted(map(repr, spark.sql(query.format(t=of)).collect())) for of in (view, "p"))
    assert found == expected, query


QUERIES = [
    "SELECT * FROM {t}",
    "SELECT s.c.d, get(l, 0).x, m['k'] FROM {t} WHERE id > 100",
    "SELECT s.a FROM {t} WHERE s.a BETWEEN 115 AND 150",
    "SELECT id FROM {t} WHERE k = 3",
    "SELECT id FROM {t} WHERE k IN (3, 4) AND id < 300",
    "SELECT id FROM {t} WHERE id = 0",
    "SELECT count(*) FROM {t}",
    "SELECT count(*), sum(id), max(k), min(id), max(id) FROM {t}",
    "SELECT count(*), sum(id) FROM {t} WHERE id >= 150",
    "SELECT count(1) FROM {t} WHERE name LIKE '1%'",
    "SELECT k, count(*) FROM {t} GROUP BY k",
    "SELECT id FROM {t} ORDER BY id LIMIT 4",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 4",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 590)",
    "SELECT CAST(name AS INT) n FROM {t} WHERE CAST(name AS INT) % 2 = 0",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.id = b.k WHERE b.id < 200",
    "SELECT /*+ BROADCAST(b) */ a.id FROM {t} a JOIN (SELECT DISTINCT k FROM {t} WHERE id < 9) b ON a.k = b.k",
    "SELECT id FROM {t} WHERE id IN (SELECT k FROM {t} WHERE id > 500)",
    "SELECT id FROM {t} WHERE id > (SELECT max(k) * 10 FROM {t})",
    "SELECT id FROM {t} WHERE rand() < 2 AND id < 160",
]


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_the_rows_that_rewritten_blocks_would(views: SparkSession, query: str) -> None:
    compare(views, query)


@pytest.mark.every_spark
def test_small_splits_and_readers_of_single_rows_give_the_same(views: SparkSession) -> None:
    few = {"spark__sql__files__maxPartitionBytes": "2000", "spark__sql__files__openCostInBytes": "1"}
    with session(views, **few):
        compare(views, "SELECT * FROM {t} WHERE id > 20")
    with session(views, spark__sql__parquet__enableVectorizedReader="false"):
        compare(views, "SELECT * FROM {t} WHERE id > 20")
    with session(views, spark__sql__codegen__wholeStage="false", spark__sql__codegen__factoryMode="NO_CODEGEN"):
        compare(views, "SELECT id, s FROM {t} WHERE id > 20")
    with session(views, spark__sql__adaptive__enabled="false", spark__fuse__index__rows__maxBytes="0"):
        compare(views, "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.k WHERE a.id < 30")
        compare(views, "SELECT id FROM {t} WHERE id BETWEEN 1 AND 3")


@pytest.mark.every_spark
def test_the_number_of_a_row_is_that_in_its_file(views: SparkSession, folder: Path) -> None:
    rows = fuse_spark.read(views, str(folder / "t")).where("id < 160")
    found = rows.select("id", "_metadata.row_index", "_metadata.file_name").collect()
    assert [row.row_index for row in found] == [row.id % 150 for row in found]
    assert len({row.file_name for row in found}) == 2
    assert len(found) == views.sql("SELECT id FROM p WHERE id < 160").count()


def test_an_account_names_the_conditions_of_the_query_alone(views: SparkSession) -> None:
    found = views.sql("SELECT id FROM t WHERE k = 5 AND id * rand() >= 0")
    found.collect()
    account = fuse_spark.explain(found)
    conditions = {vote.leaf for vote in account.votes}
    assert "k = 5" in conditions
    assert any("rand" in each for each in conditions)
    assert not any("deleted" in each for each in conditions)


def test_a_cached_table_and_the_python_source_give_the_same(views: SparkSession) -> None:
    compare(views, "SELECT * FROM {t}", "python")
    compare(views, "SELECT id FROM {t} WHERE k = 4", "python")
    views.sql("CACHE TABLE cached AS SELECT id, k FROM t")
    found = views.sql("SELECT count(*), sum(id) FROM cached").collect()
    views.sql("UNCACHE TABLE cached")
    assert found == views.sql("SELECT count(*), sum(id) FROM p").collect()


def test_a_plan_that_would_read_rows_that_were_deleted_is_refused(views: SparkSession) -> None:
    """As in a session that was never told how to leave them out, and is handed a plan."""
    methods = views._jsparkSession.experimental()
    strategies = methods.extraStrategies()
    replace = getattr(methods, "extraStrategies_$eq")
    replace(strategies.take(0))
    try:
        with pytest.raises(Exception, match="were deleted, and this session does not leave them out"):
            views.sql("SELECT * FROM t WHERE id < 500").collect()
    finally:
        replace(strategies)
    compare(views, "SELECT id FROM {t} WHERE id < 500")
