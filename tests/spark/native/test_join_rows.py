"""The rows of a table that a join's small side names are read by the driver, once that side was broadcast."""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from tests.spark.executed import job_count, plan_of

COUNT, ZONE = 4000, 100
MAX_BYTES = "spark.fuse.index.rows.maxBytes"
KEYS = np.random.default_rng(7).permutation(COUNT)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """``big``, of 4 blocks with 10 zones each, of which bloom indexes know each column, and the small ``dim``.

    Key 4 of ``dim`` is in ``name``, ``half`` and ``whole`` of ``big``, and not in ``k``, which is NULL there.
    """
    folder = tmp_path_factory.mktemp("joined")
    rows = pa.table(
        {
            "id": np.arange(COUNT),
            "k": pa.array([None if i % 97 == 0 else int(KEYS[i]) for i in range(COUNT)], pa.int64()),
            "short": pa.array([int(key) % 30_000 for key in KEYS], pa.int16()),
            "whole": pa.array([int(key) * 3 for key in KEYS], pa.int32()),
            "name": [f"n{key}" for key in KEYS],
            "half": [float("nan") if key == 5 else -0.0 if key == 6 else float(key) for key in KEYS],
        }
    )
    table = fuse.create_table(
        str(folder / "big"), rows.schema, properties={"block_rows": COUNT // 4, "zone_rows": ZONE}
    )
    table.append(rows)
    for column in rows.column_names:
        table.create_index(f"by_{column}", "bloom", [column], fpp=0.0001)
    fuse_spark.read(spark, str(folder / "big")).createOrReplaceTempView("big")
    spark.sql("""
        CREATE TEMPORARY VIEW dim AS
        SELECT *, CAST(key AS SMALLINT) AS s, CAST(key * 3 AS INT) AS w, concat('n', key) AS n, CAST(key AS DOUBLE) AS d
        FROM VALUES (3L, 'a'), (4L, 'b'), (490L, 'a'), (490L, 'c'), (NULL, 'd'), (9999L, 'e') AS t(key, tag)
    """)
    spark.sql("CREATE TEMPORARY VIEW odd AS SELECT * FROM VALUES (DOUBLE('NaN')), (DOUBLE(0.0)) AS t(d)")
    yield spark
    for name in ("big", "dim", "odd"):
        spark.catalog.dropTempView(name)


def compare(spark: SparkSession, query: str) -> DataFrame:
    """The query, after its rows were compared with those that executors read."""
    spark.conf.set(MAX_BYTES, "0")
    try:
        expected = sorted(map(repr, spark.sql(query).collect()))
    finally:
        spark.conf.unset(MAX_BYTES)
    found = spark.sql(query)
    assert sorted(map(repr, found.collect())) == expected, query
    return found


@pytest.mark.alike
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id, tag FROM big JOIN dim ON k = key", 2),
        ("SELECT id, tag FROM dim JOIN big ON k = key ORDER BY id, tag", 2),
        ("SELECT tag, count(*), sum(id) FROM big JOIN dim ON k = key GROUP BY tag", 2),
        ("SELECT id FROM big WHERE k IN (SELECT key FROM dim) AND id % 2 >= 0", 2),
        ("SELECT id FROM big WHERE EXISTS (SELECT 1 FROM dim WHERE n = name)", 3),
        ("SELECT id, tag FROM big JOIN dim ON name = n", 3),
        ("SELECT id, tag FROM big JOIN dim ON half = d", 3),
        ("SELECT id FROM big JOIN odd ON half = d", 3),  # NaN, 0.0, and -0.0, which is 0.0
        ("SELECT id, tag FROM big JOIN dim ON short = s AND whole = w", 3),  # two keys in one of 64 bits
        ("SELECT id, tag FROM big JOIN dim ON name = n AND k = key", 2),
        ("SELECT id, a.tag FROM big JOIN dim a ON k = a.key JOIN dim b ON name = b.n", 2),
        ("SELECT i, tag FROM (SELECT id + 1 AS i, k FROM big WHERE id >= 0) JOIN dim ON k = key", 2),
    ],
)
def test_rows_that_keys_name_are_read_by_the_driver(tables: SparkSession, query: str, rows: int) -> None:
    assert f"FuseRows {rows} rows on the driver" in plan_of(compare(tables, query))


@pytest.mark.every_spark
def test_only_the_small_side_is_a_job(tables: SparkSession) -> None:
    """The rest is one task: rows of one partition are sorted and added up without an exchange."""
    query = "SELECT tag, sum(id) FROM big JOIN dim ON k = key GROUP BY tag ORDER BY tag"
    before = job_count(tables)
    found = tables.sql(query)
    found.collect()

    assert job_count(tables) - before <= 2
    assert "Exchange" not in plan_of(found).partition("Initial Plan")[0].replace("BroadcastExchange", "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, tag FROM big LEFT JOIN dim ON k = key",
        "SELECT id, tag FROM big RIGHT JOIN dim ON k = key",  # whose small side is not broadcast
        "SELECT id, tag FROM big FULL JOIN dim ON k = key",
        "SELECT id FROM big LEFT ANTI JOIN dim ON k = key",
        "SELECT id, tag FROM big JOIN dim ON k <=> key",
        "SELECT id, tag FROM big JOIN dim ON k % 5000 = key",
        "SELECT big.id FROM big JOIN (SELECT /*+ BROADCAST */ id FROM range(3000)) r ON k = r.id",  # too many rows
    ],
)
def test_where_keys_decide_too_little_executors_read(tables: SparkSession, query: str) -> None:
    assert "FuseRows" not in plan_of(compare(tables, query))


def test_an_explanation_counts_the_keys_among_the_conditions(tables: SparkSession) -> None:
    explained = fuse_spark.explain(compare(tables, "SELECT id, tag FROM big JOIN dim ON k = key WHERE id >= 0"))

    keys = re.search(r"k IN \(([\d, ]+)\)", str(explained))
    assert keys is not None
    assert sorted(map(int, keys[1].split(", "))) == [3, 4, 490, 9999]
    assert "NOT_PUSHED" not in str(explained)
    assert explained.zones.kept <= 3


@pytest.mark.every_spark
def test_beyond_the_bounds_executors_read_by_these_keys(tables: SparkSession) -> None:
    tables.conf.set(MAX_BYTES, "30")
    try:
        found = tables.sql("SELECT id, tag FROM big JOIN dim ON k = key")
        assert len(found.collect()) == 3
        plan = plan_of(found)
    finally:
        tables.conf.unset(MAX_BYTES)

    assert "by executors, because they have more than 30 bytes" in plan
    assert "2 of 40 zones" in plan.partition("Initial Plan")[0]


def test_other_keys_are_other_rows(tables: SparkSession) -> None:
    """What was planned by keys is of one run: the same query finds what its small side has by then."""
    found = []
    for key in (3, 490):
        tables.sql(f"SELECT {key}L AS key").createOrReplaceTempView("one")
        found.append(compare(tables, "SELECT k FROM big JOIN one ON k = key").collect())
    tables.catalog.dropTempView("one")

    assert found == [[(3,)], [(490,)]]


def test_a_cached_join_and_its_reuse(tables: SparkSession) -> None:
    query = "SELECT id, tag FROM big JOIN dim ON k = key"
    expected = sorted(map(repr, compare(tables, query).collect()))
    cached = tables.sql(query).cache()
    try:
        assert sorted(map(repr, cached.collect())) == sorted(map(repr, cached.collect())) == expected
        both = compare(tables, f"SELECT a.id, b.tag FROM ({query}) a JOIN ({query}) b ON a.id = b.id")
        assert both.count() == len(both.collect())
    finally:
        cached.unpersist()
