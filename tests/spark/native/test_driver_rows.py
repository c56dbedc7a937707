"""Where votes leave few rows, the driver reads them and no job starts; the rows are those that executors would find."""

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from tests.effort import effort, in_turn
from tests.spark.executed import job_count, plan_of

COUNT = 400
MAX_BYTES = "spark.fuse.index.rows.maxBytes"


def mixed_rows(count: int = COUNT) -> pa.Table:
    """Every type that a table has, each column with NULLs and with what is odd of its type."""
    draw = random.Random(3)
    odd_floats = [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 5e-324]
    moments = [datetime.datetime(2, 1, 1), datetime.datetime(1582, 10, 10), datetime.datetime(2024, 3, 31, 2, 30, 0, 7)]

    def column(make: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if draw.random() < 0.15 else make(i) for i in range(count)], kind)

    struct = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.decimal128(20, 3)))])
    return pa.table(
        {
            "id": np.arange(count),
            "key": pa.array(draw.sample(range(count), count), pa.int64()),
            "tiny": column(lambda i: i % 256 - 128, pa.int8()),
            "short": column(lambda i: i - 300, pa.int16()),
            "int": column(lambda i: i * 7919, pa.int32()),
            "real": column(lambda i: draw.choice(odd_floats[:5]) if i % 3 else i / 8, pa.float32()),
            "double": column(lambda i: draw.choice(odd_floats) if i % 3 else i / 7, pa.float64()),
            "flag": column(lambda i: i % 2 == 0, pa.bool_()),
            "text": column(lambda i: draw.choice(["", "ß", "İ", "\0x", "a b", "𝒳"]) + str(i % 9), pa.string()),
            "bytes": column(lambda i: bytes([i % 256, 255]), pa.binary()),
            "small": column(lambda i: Decimal(i - 200) / 100, pa.decimal128(9, 2)),
            "large": column(lambda i: Decimal(10) ** 30 * (i - 200) + i, pa.decimal128(38, 4)),
            "day": column(lambda i: draw.choice(moments).date() + datetime.timedelta(i), pa.date32()),
            "at": column(lambda i: draw.choice(moments) + datetime.timedelta(hours=i), pa.timestamp("us", "UTC")),
            "wall": column(lambda i: draw.choice(moments) + datetime.timedelta(hours=i), pa.timestamp("us")),
            "s": column(lambda i: {"a": i, "b": None, "c": [Decimal(i) / 8, None]}, struct),
            "list": column(lambda i: [None, {"x": i / 3}][: i % 3], pa.list_(pa.struct([("x", pa.float64())]))),
            "map": column(lambda i: {f"k{i}": [i, None]}, pa.map_(pa.string(), pa.list_(pa.int64()))),
        }
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A view ``t`` of 4 blocks with 5 zones each; a bloom index knows ``key``."""
    folder = str(tmp_path_factory.mktemp("driver") / "t")
    rows = mixed_rows()
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": 100, "zone_rows": 20})
    table.append(rows)
    table.create_index("by_key", "bloom", ["key"])
    fuse_spark.read(spark, folder).createOrReplaceTempView("t")
    yield spark
    spark.catalog.dropTempView("t")


def by_executors(spark: SparkSession, query: str) -> list[str]:
    spark.conf.set(MAX_BYTES, "0")
    try:
        df = spark.sql(query)
        assert "FuseRows" not in plan_of(df)
        return sorted(map(repr, df.collect()))
    finally:
        spark.conf.unset(MAX_BYTES)


def compare(spark: SparkSession, query: str, jobs: int | None = 0) -> DataFrame:
    """The query, after its rows were compared with those that executors read; ``jobs``: how many it may start."""
    expected = by_executors(spark, query)
    before = job_count(spark)
    df = spark.sql(query)
    found = df.collect()
    started = job_count(spark) - before
    assert sorted(map(repr, found)) == expected, query
    assert jobs is None or started == jobs, f"{query}: {started} jobs"
    return df


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE key = 77",
        "SELECT * FROM t WHERE key IN (1, 2, 3, 300)",
        "SELECT * FROM t WHERE id BETWEEN 120 AND 131",
        "SELECT * FROM t WHERE key = -1",
        "SELECT id + 1 AS n, upper(text) FROM t WHERE key IN (5, 6) AND text LIKE '%1%'",
        "SELECT id FROM t WHERE key = 9 LIMIT 3",
        "SELECT id FROM t WHERE key IN (9, 10, 11) AND id % 2 = 1",  # of which we know nothing
        "SELECT key FROM t WHERE id < 15 AND (double > 0 OR double IS NULL)",
        "SELECT s, s.a, list[0].x, map FROM t WHERE key = 8",
    ],
)
def test_lookups_start_no_job(tables: SparkSession, query: str) -> None:
    compare(tables, query)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_of_every_type_are_those_of_spark_s_reader(tables: SparkSession, zone: str) -> None:
    tables.conf.set("spark.sql.session.timeZone", zone)
    try:
        expected = set(by_executors(tables, "SELECT * FROM t"))
        for start in in_turn(range(0, COUNT, 20), zone == "UTC"):
            before = job_count(tables)
            found = tables.sql(f"SELECT * FROM t WHERE id BETWEEN {start} AND {start + 19}")
            rows = found.collect()
            assert job_count(tables) == before
            assert sorted(row.id for row in rows) == list(range(start, start + 20))
            assert set(map(repr, rows)) <= expected
            assert "20 rows on the driver" in plan_of(found)
    finally:
        tables.conf.unset("spark.sql.session.timeZone")


LEAVES = [
    "key = {0}",
    "key IN ({0}, {1}, NULL)",
    "id BETWEEN {0} AND {0} + 9",
    "double > {1}.5",
    "double = 'NaN'",
    "real = 0",
    "small < 1.25",
    "text LIKE '%{2}'",
    "text IS NULL",
    "at > TIMESTAMP'2024-01-01 00:00:00'",
    "day <=> NULL",
    "flag",
    "s.a = {0}",
    "int % 3 = {3}",
    "size(list) = 1",
    "large > 1",
    "array_contains(map['k{0}'], {0})",
]


@pytest.mark.parametrize("seed", range(effort(2)))
def test_any_condition_leaves_the_rows_that_executors_find(tables: SparkSession, seed: int) -> None:
    draw = random.Random(seed)

    def leaf() -> str:
        text = draw.choice(LEAVES).format(
            *(draw.randrange(COUNT) for _ in range(2)), draw.randrange(9), draw.randrange(3)
        )
        return f"NOT ({text})" if draw.random() < 0.2 else text

    columns = ["*", "id, text", "key, s, map", "double, real, at, wall", "id + key AS n, list"]
    for _ in range(12):
        keys = ", ".join(str(draw.randrange(COUNT)) for _ in range(draw.randrange(1, 4)))
        few = draw.choice([f"key IN ({keys})", f"id BETWEEN {(start := draw.randrange(COUNT))} AND {start + 25}"])
        condition = f"{few} AND ({leaf()} {draw.choice(['AND', 'OR'])} {leaf()})"
        compare(tables, f"SELECT {draw.choice(columns)} FROM t WHERE {condition}", jobs=None)


def test_what_is_over_the_rows_needs_no_exchange(tables: SparkSession) -> None:
    for query in (
        "SELECT count(*), sum(id), max(text) FROM t WHERE key IN (5, 6, 7)",
        "SELECT flag, count(*) FROM t WHERE key IN (5, 6, 7) GROUP BY flag",
        "SELECT id FROM t WHERE key IN (5, 6, 7) ORDER BY text, id",
    ):
        assert "Exchange" not in plan_of(compare(tables, query, jobs=1))
    assert compare(tables, "SELECT count(*), sum(id) FROM t WHERE key = -1", jobs=1).collect() == [(0, None)]


def test_executors_need_none_of_our_classes(tables: SparkSession) -> None:
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        tables.conf.set(name, value)
    try:
        for query in (
            "SELECT id FROM t WHERE key IN (5, 6, 7) ORDER BY text, id",
            "SELECT text, collect_list(id) FROM t WHERE key IN (5, 6) GROUP BY text",
            "SELECT explode(array(id, key)) FROM t WHERE key IN (5, 6) ORDER BY 1 LIMIT 3",
            "SELECT a.id FROM t a JOIN t b ON a.key = b.id WHERE a.key IN (5, 6)",
        ):
            compare(tables, query, jobs=None)
    finally:
        for name in settings:
            tables.conf.unset(name)


def test_a_join_broadcasts_the_driver_s_rows(tables: SparkSession) -> None:
    query = "SELECT a.id, b.text FROM t a JOIN t b ON a.id = b.key WHERE a.key = 7 AND b.id < 5000"
    assert "FuseRows 1 rows on the driver" in plan_of(compare(tables, query, jobs=None))


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t",  # nothing was asked
        "SELECT id FROM t WHERE text IS NOT NULL",  # votes left everything
        "SELECT s.a FROM t WHERE key = 7",  # of a column that has more
        "SELECT id, rand() FROM t WHERE key = 7",
        "SELECT id FROM t WHERE key = 7 AND input_file_name() LIKE '%x%'",
        "SELECT id FROM t WHERE key = (SELECT max(id) FROM t)",
    ],
)
def test_what_the_driver_cannot_know_is_left_to_executors(tables: SparkSession, query: str) -> None:
    df = tables.sql(query)
    assert "FuseRows" not in str(df._jdf.queryExecution().executedPlan().toString()).partition("Subquery")[0]


@pytest.mark.every_spark
def test_users_functions_run_on_executors(tables: SparkSession) -> None:
    tables.udf.register("odd", lambda value: value % 2 == 1, "boolean")
    compare(tables, "SELECT id FROM t WHERE key IN (7, 8, 9) AND odd(id)", jobs=None)


def test_beyond_the_bounds_executors_read(tables: SparkSession) -> None:
    query = "SELECT * FROM t WHERE id BETWEEN 100 AND 119"
    tables.conf.set("spark.fuse.index.rows.maxScanBytes", "10")
    try:
        assert "FuseRows" not in plan_of(compare(tables, query, jobs=None))
    finally:
        tables.conf.unset("spark.fuse.index.rows.maxScanBytes")
    expected = by_executors(tables, "SELECT * FROM t WHERE key IN (5, 6, 7)")
    tables.conf.set(MAX_BYTES, "100")
    try:
        found = tables.sql("SELECT * FROM t WHERE key IN (5, 6, 7)")
        assert sorted(map(repr, found.collect())) == expected
        assert "by executors, because they have more than 100 bytes" in plan_of(found)
        counted = tables.sql("SELECT count(*) FROM t WHERE key IN (5, 6, 7, 8, 9) AND length(text) >= 0 AND id >= 0")
        assert counted.collect() == [
            (len(by_executors(tables, "SELECT 1 FROM t WHERE key IN (5, 6, 7, 8, 9) AND length(text) >= 0")),)
        ]
    finally:
        tables.conf.unset(MAX_BYTES)


def test_columns_that_no_condition_looks_at_hardly_count(tables: SparkSession) -> None:
    query = "SELECT * FROM t WHERE key = 77"
    whole = int(tables.sql(query)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    tables.conf.set("spark.fuse.index.rows.maxScanBytes", str(whole // 4))
    try:
        compare(tables, query)
        every = "SELECT * FROM t WHERE key = 77 AND " + " AND ".join(
            f"{name} IS NOT NULL" for name in mixed_rows(1).column_names
        )
        assert "FuseRows" not in plan_of(tables.sql(every))
    finally:
        tables.conf.unset("spark.fuse.index.rows.maxScanBytes")


def test_a_deadline_that_passes_leaves_the_rows_to_executors(tables: SparkSession) -> None:
    tables.conf.set("spark.fuse.index.rows.deadline", "0ms")
    try:
        found = tables.sql("SELECT id FROM t WHERE key = 7")
        assert len(found.collect()) == 1
        assert "by executors, because the driver had not read them within 0 ms" in plan_of(found)
    finally:
        tables.conf.unset("spark.fuse.index.rows.deadline")


def test_what_raises_raises_as_before(tables: SparkSession) -> None:
    query = "SELECT CAST(concat('x', text) AS INT) FROM t WHERE key IN (5, 6, 7, 8, 9, 10)"
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        tables.sql(query).collect()
    tables.sql(query).explain()  # which evaluates nothing


def test_a_plan_that_is_held_reads_its_own_snapshot(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("held") / "t")
    table = fuse.create_table(folder, pa.schema([("id", pa.int64())]), properties={"block_rows": 5, "zone_rows": 1})
    table.append(pa.table({"id": np.arange(40)}))
    df = fuse_spark.read(spark, folder).where("id IN (3, 4)")
    df._jdf.queryExecution().executedPlan()
    fuse.open_table(folder).delete("id = 3")
    assert sorted(df.collect()) == [(3,), (4,)]
    assert fuse_spark.read(spark, folder).where("id IN (3, 4)").collect() == [(4,)]


def test_cached_and_equal_plans(tables: SparkSession) -> None:
    df = tables.sql("SELECT id, text FROM t WHERE key IN (5, 6, 7)")
    expected = sorted(map(repr, df.collect()))
    assert (
        df._jdf.queryExecution()
        .executedPlan()
        .sameResult(tables.sql("SELECT id, text FROM t WHERE key IN (5, 6, 7)")._jdf.queryExecution().executedPlan())
    )
    cached = df.cache()
    try:
        assert sorted(map(repr, cached.collect())) == expected == sorted(map(repr, cached.collect()))
        assert "InMemoryTableScan" in plan_of(tables.sql("SELECT id, text FROM t WHERE key IN (5, 6, 7)"))
    finally:
        cached.unpersist()
    assert df.take(2) == df.collect()[:2]
    assert df.tail(1) == df.collect()[-1:]
    assert list(df.toLocalIterator()) == df.collect()
    assert len(df.toPandas()) == len(expected)
    assert df.rdd.count() == len(expected)


@pytest.mark.every_spark
def test_calls_of_plugins_functions_are_evaluated_by_python(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("words") / "t")
    fuse_spark.install(spark)
    rows = pa.table({"id": np.arange(200), "text": [f"common word{i % 50} number{i}" for i in range(200)]})
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": 50, "zone_rows": 5})
    table.append(rows)
    table.create_index("words", "full_text", ["text"])
    fuse_spark.read(spark, folder).createOrReplaceTempView("texts")
    try:
        compare(spark, "SELECT id, text FROM texts WHERE match(text, 'number77')")
        compare(
            spark, "SELECT id FROM texts WHERE match(text, 'word7') AND match(text, 'number7 number107') AND id > 9"
        )
        compare(spark, "SELECT id FROM texts WHERE match(text, 'word7') AND NOT match(text, 'number107')", jobs=None)
        compare(spark, "SELECT id FROM texts WHERE match(text, 'word7') OR id = 5", jobs=None)
        compare(spark, "SELECT id, match(text, 'common') AS m FROM texts WHERE match(text, 'word7')", jobs=None)
        compare(spark, "SELECT id FROM texts WHERE match(text, 'word7') AND id % 2 = 1")
    finally:
        spark.catalog.dropTempView("texts")


def test_rows_that_an_index_names_are_read_from_many_zones(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nine rows in nine of twelve zones: votes leave out little, and yet the driver reads what they name."""
    folder = str(tmp_path_factory.mktemp("named") / "t")
    fuse_spark.install(spark)
    texts = [f"common {'seldom' if i % 20 == 7 and i < 180 else 'often'} number{i}" for i in range(200)]
    table = fuse.create_table(
        folder, pa.schema([("text", pa.string())]), properties={"block_rows": 50, "zone_rows": 20}
    )
    table.append(pa.table({"text": texts}))
    table.create_index("words", "full_text", ["text"])
    fuse_spark.read(spark, folder).createOrReplaceTempView("texts")
    try:
        found = compare(spark, "SELECT text FROM texts WHERE match(text, 'seldom')")
        assert "9 rows on the driver" in plan_of(found)
        assert "9 of 12 zones" in plan_of(found)
        often = "SELECT text FROM texts WHERE text LIKE '%seldom%'"  # which names none
        assert "FuseRows" not in plan_of(spark.sql(often))
    finally:
        spark.catalog.dropTempView("texts")
