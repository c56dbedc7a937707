"""GROUP BY in plain Spark SQL, answered from an index: the answers are Spark's own, whatever of the table is
indexed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import hll_sketch_agg, hll_sketch_estimate

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.aggregates.sketches import build_sketch, sketch_registers
from fuse_index.spark.native import snapshot_planner
from fuse_index.spark.session import _sessions
from fuse_storage import process_cache
from tests.effort import effort, in_turn
from tests.sketches import needs_sketches

SCHEMA = (
    "city STRING, n INT, big BIGINT, d DOUBLE, f FLOAT, price DECIMAL(10,2), wide DECIMAL(20,4), "
    "at TIMESTAMP, flag BOOLEAN"
)
KEYS = ["city", "date_trunc('day', at)", "d"]
KEPT = [
    "count(*)",
    "count(n)",
    "sum(n)",
    "avg(n)",
    "min(n)",
    "max(n)",
    "sum(big)",
    "avg(big)",
    "sum(d)",
    "avg(d)",
    "min(d)",
    "max(d)",
    "avg(f)",
    "max(f)",
    "sum(price)",
    "avg(price)",
    "min(price)",
    "sum(wide)",
    "avg(wide)",
    "min(city)",
    "max(at)",
    "max(flag)",
]
CHOICES: dict[str, list[Any]] = {
    "city": ["Ber", "Bern", "", "\U0001f600", "a"],
    "n": [1, -7, 2**31 - 1],
    "big": [3, 2**40, -(2**40)],
    "d": [math.nan, 0.0, -0.0, 1.5, -2.25, math.inf],
    "f": [0.5, -1.25, math.nan],
    "flag": [True, False],
    "price": [Decimal("0.01"), Decimal("99999999.99"), Decimal("-1.50")],
    "wide": [Decimal("1234567890123.4567"), Decimal("-0.0001")],
    "at": [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=7 * i) for i in range(9)],
}


URLS: dict[str, str] = {}
"""Of the tables behind the views."""


def rows(schema: pa.Schema, count: int, seed: int) -> pa.Table:
    pick = random.Random(seed)
    columns = [
        pa.array([None if pick.random() < 0.15 else pick.choice(CHOICES[f.name]) for _ in range(count)], f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def told(found: Iterable[Iterable[Any]]) -> list[str]:
    """Rows without their order; floats to nine digits, since sums depend on it, and 0.0 for -0.0, which are one
    group.
    """
    return sorted(repr([float(f"{v:.9g}") + 0.0 if isinstance(v, float) else v for v in row]) for row in found)


def plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString())


def answered(df: DataFrame) -> str:
    """ "whole" if no row is read, "partly" if some blocks are, "" if the plan is as it was."""
    if "LocalRelation" not in plan(df):
        return ""
    return "partly" if "RelationV2" in plan(df) else "whole"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views ``whole`` and ``part``, of which some blocks are indexed, and ``whole_plain`` and ``part_plain`` without
    indexes.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    fuse_spark.install(spark)
    for name in ("whole", "part"):
        url = str(tmp_path_factory.mktemp("answers") / name)
        table = fuse.create_table(url, SCHEMA, properties={"block_rows": 40, "zone_rows": 20})
        if name == "part":
            table.append(rows(table.schema, 100, 7))
        table.create_index("by_city", "aggregate", KEYS, build=False, aggregates=KEPT)
        for seed in range(3):
            table.append(rows(table.schema, 90, seed))
        URLS[name] = url
        fuse_spark.read(spark, url).createOrReplaceTempView(name)
        fuse_spark.read(spark, url, indexes=False).createOrReplaceTempView(f"{name}_plain")
    yield spark
    for name in ("whole", "part"):
        spark.catalog.dropTempView(name)
        spark.catalog.dropTempView(f"{name}_plain")


def both(spark: SparkSession, query: str, name: str) -> DataFrame:
    """The DataFrame over indexes, after its rows were compared with Spark's own."""
    df = spark.sql(query.format(t=name))

    assert told(df.collect()) == told(spark.sql(query.format(t=f"{name}_plain")).collect()), plan(df)
    return df


ALL = f"SELECT city, date_trunc('day', at) AS day, d, {', '.join(KEPT)} FROM {{t}} GROUP BY 1, 2, 3"
ANSWERED = [
    ALL,
    f"SELECT {', '.join(KEPT)} FROM {{t}}",
    "SELECT city, sum(n) / count(*) + 1 AS x, avg(price) FROM {t} GROUP BY city HAVING count(*) "
    "> 3 ORDER BY city LIMIT 4",
    "SELECT count(*) FROM {t} WHERE city = 'Bern' AND d >= 0.0",
    "SELECT d, count(*) FROM {t} WHERE date_trunc('day', at) > TIMESTAMP'2024-01-01 00:00:00' GROUP BY d",
    "WITH c AS (SELECT city, max(d) AS m FROM {t} GROUP BY city) SELECT a.city, a.m, b.m FROM c a "
    "JOIN c b ON a.city = b.city",
    "SELECT o.city, o.c, (SELECT max(price) - min(price) FROM {t}) AS m FROM (SELECT city, count(*) AS c "
    "FROM {t} GROUP BY city) o",
    "SELECT city, c FROM (SELECT city, count(*) AS c, avg(wide) AS w FROM {t} GROUP BY city) "
    "WHERE w IS NOT NULL AND c > 2",
    "SELECT upper(city) AS u, length(city), sum(n), avg(price) FROM {t} WHERE lower(city) <> 'a' "
    "GROUP BY 1, 2 HAVING u > ''",
    "SELECT year(at), date_trunc('month', at), count(*) FROM {t} WHERE CAST(at AS DATE) > "
    "DATE'2024-01-01' GROUP BY 1, 2",
    "SELECT substr(city, 1, 2) AS s, CASE WHEN city > 'B' THEN 1 END AS x, sum(n) + 1, avg(price), max(d), "
    "count(n) FROM {t} GROUP BY 1, 2",
    "SELECT concat(city, '!'), city, d, min(d) FROM {t} WHERE city < 'Bern' OR d > 1 GROUP BY 1, "
    "2, 3 HAVING count(*) > 1",
    "SELECT -count(*) FROM {t} WHERE city IS NULL UNION ALL SELECT id FROM range(3)",
]
LEFT = [
    "SELECT flag, count(*) FROM {t} GROUP BY flag",
    "SELECT city, max(big) FROM {t} GROUP BY city",
    "SELECT date_trunc('hour', at), count(*) FROM {t} GROUP BY 1",
    "SELECT CAST(d AS STRING), count(*) FROM {t} GROUP BY 1",
    "SELECT d + 1, count(*) FROM {t} GROUP BY 1",
    "SELECT 'all', count(*) FROM {t} GROUP BY 1",
    "SELECT concat(city, n), count(*) FROM {t} GROUP BY 1",
    "SELECT DISTINCT city FROM {t}",
    "SELECT city, count(DISTINCT n) FROM {t} GROUP BY city",
    "SELECT city, count(*) FILTER (WHERE n > 1) FROM {t} GROUP BY city",
    "SELECT city, stddev(n) FROM {t} GROUP BY city",
    "SELECT city, sum(n) FROM {t} WHERE flag AND n < 0 GROUP BY city",
    "SELECT city, d, count(*) FROM {t} GROUP BY ROLLUP (city, d)",
    "SELECT a.city, count(*) FROM {t} a JOIN {t} b ON a.city = b.city GROUP BY a.city",
    "SELECT city, sum(n) FROM {t} WHERE length(uuid()) = 36 GROUP BY city",
    "SELECT city, count(*) FROM {t} WHERE n > (SELECT max(id) FROM range(3)) GROUP BY city",
]


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize("query", ANSWERED)
def test_what_an_index_keeps_is_answered_from_it(tables: SparkSession, query: str) -> None:
    assert answered(both(tables, query, "whole")) == "whole"
    assert answered(both(tables, query, "part")) == "partly"


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize("query", LEFT)
def test_what_it_does_not_keep_is_left_as_it_was_and_explained(tables: SparkSession, query: str) -> None:
    df = both(tables, query, "whole")

    assert answered(df) == ""
    explained = fuse_spark.explain(df).to_dict()
    votes = [vote for scan in explained.get("scans", [explained]) for vote in scan["predicates"]]
    assert any("(aggregate)" in vote["leaf"] or "GROUP BY" in vote["leaf"] for vote in votes)


def test_of_a_constant_there_is_no_group_without_a_row(tables: SparkSession) -> None:
    assert both(tables, "SELECT 'all', count(*) FROM {t} WHERE length(city) = 99 GROUP BY 1", "whole").collect() == []


@pytest.mark.parametrize("seed", range(effort(2)))
def test_any_question_has_sparks_answer(tables: SparkSession, seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(3):
        keys = pick.sample(
            ["city", "date_trunc('day', at)", "d", "flag", "upper(city)", "day(at)", "left(city, 1)"],
            pick.randint(0, 2),
        )
        kept = pick.sample(KEPT, pick.randint(1, 4))
        conditions = [
            "city > 'B'",
            "d = 0.0",
            "d <> 1.5 OR city IS NULL",
            "n >= -7",
            "flag",
            "length(city) < 4",
            "at < TIMESTAMP'2024-01-02'",
        ]
        where = " AND ".join(pick.sample(conditions, pick.randint(0, 2))) or "TRUE"
        by = f"GROUP BY {', '.join(keys)}" if keys else ""
        both(
            tables, f"SELECT {', '.join([*keys, *kept])} FROM {{t}} WHERE {where} {by}", pick.choice(["whole", "part"])
        )


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Asia/Tokyo")]
)
def test_a_state_of_another_session_answers_nothing(tables: SparkSession, setting: str, value: str) -> None:
    before = tables.conf.get(setting)
    tables.conf.set(setting, value)
    try:
        df = both(tables, "SELECT date_trunc('day', at), sum(n) FROM {t} GROUP BY 1", "whole")
        assert answered(df) == ""
        assert any(vote.reason == "SESSION_SEMANTICS" for vote in fuse_spark.explain(df).votes)  # type: ignore[union-attr]
    finally:
        tables.conf.set(setting, before)


def test_the_local_answer_is_sparks_too(tables: SparkSession) -> None:
    questions = [
        (KEYS, None),
        (["city"], "n > 0 OR d = 0.0"),
        ([], "date_trunc('day', at) > TIMESTAMP'2024-01-02'"),
        (["flag"], None),
    ]
    for turn, (name, url) in enumerate(URLS.items()):
        for groups, where in in_turn(questions, turn):
            found = fuse.open_table(url).aggregate(groups, KEPT, where)
            rows = [tuple(_naive(value) for value in row.values()) for row in found.to_pylist()]
            by = f"GROUP BY {', '.join(groups)}" if groups else ""
            query = f"SELECT {', '.join([*groups, *KEPT])} FROM {name}_plain WHERE {where or 'TRUE'} {by}"

            assert told(rows) == told(tables.sql(query).collect())


def _naive(value: Any) -> Any:
    """As Spark hands instants to Python: in the time zone of the process."""
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value


def test_rows_that_are_deleted_and_blocks_that_are_joined_stay_right(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(str(tmp_path / "t"), SCHEMA, properties={"block_rows": 40, "zone_rows": 20})
    table.create_index("x", "aggregate", ["city"], aggregates=["count(*)", "sum(n)", "avg(price)"])
    for seed in range(4):
        table.append(rows(table.schema, 60, seed))
    table.delete("n = 1 AND d > 0")
    table.append(rows(table.schema, 30, 9))
    for _ in range(2):
        query = "SELECT city, count(*), sum(n), avg(price) FROM {t} GROUP BY city"
        for name, indexes in (("d", True), ("d_plain", False)):
            fuse_spark.read(spark, str(tmp_path / "t"), indexes=indexes).createOrReplaceTempView(name)
        assert answered(both(spark, query, "d")) == "whole"
        table.maintenance.compact()


@pytest.mark.every_spark
def test_a_count_of_the_whole_table_reads_nothing(tables: SparkSession) -> None:
    df = tables.table("part")

    assert answered(df.groupBy().count()) == "whole"
    assert df.count() == 370


@pytest.mark.parametrize(
    ("limit", "says"), [("MAX_PLAN_GROUPS", "6 groups are more"), ("MAX_PLAN_BYTES", "0 MiB of states are more")]
)
def test_states_too_large_for_a_plan_are_left_to_spark(
    tables: SparkSession, monkeypatch: pytest.MonkeyPatch, limit: str, says: str
) -> None:
    monkeypatch.setattr(snapshot_planner, limit, 5)
    df = both(
        tables,
        f"SELECT city, count(*) AS {limit}, max(n) FROM {{t}} WHERE city IS NULL OR city <> '{limit}' GROUP BY city",
        "whole",
    )

    assert answered(df) == ""
    assert any(says in vote.detail for vote in fuse_spark.explain(df).votes)  # type: ignore[union-attr]


def test_whatever_goes_wrong_the_query_is_sparks(tables: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, question: object) -> None:
        raise SystemExit("no luck")

    for session in _sessions.values():
        session.callback._answers = type(session.callback._answers)(1)
        monkeypatch.setattr(type(session.planner), "answer_aggregate", fails)
    query = "SELECT city, min(n), max(n) FROM {t} WHERE n > -77123 GROUP BY city"  # no other test has asked it

    assert answered(both(tables, query, "whole")) == ""


def test_a_damaged_state_costs_a_scan_of_its_block(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(str(tmp_path / "t"), SCHEMA, properties={"block_rows": 40, "zone_rows": 20})
    table.create_index("x", "aggregate", ["city"], aggregates=["count(*)"])
    for seed in range(2):
        table.append(rows(table.schema, 40, seed))
    pack = next(path for path in (tmp_path / "t" / "_i").rglob("*") if path.is_file())
    pack.write_bytes(pack.read_bytes()[:-9])
    process_cache.clear()
    df = fuse_spark.read(spark, str(tmp_path / "t")).groupBy("city").count()
    plain = fuse_spark.read(spark, str(tmp_path / "t"), indexes=False).groupBy("city").count()

    assert answered(df) == "partly"
    assert told(df.collect()) == told(plain.collect())
    assert any(vote.reason == "USED" and "1 of 2" in vote.detail for vote in fuse_spark.explain(df).votes)  # type: ignore[union-attr]


def test_a_sum_that_may_overflow_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(str(tmp_path / "t"), "k INT, big BIGINT")
    table.create_index("x", "aggregate", ["k"], aggregates=["sum(big)", "count(*)"])
    table.append(pa.table({"k": pa.array([1, 1, 2], pa.int32()), "big": [2**62, 2**62, 1]}))
    df = fuse_spark.read(spark, str(tmp_path / "t"))

    assert answered(df.groupBy("k").count()) == "whole"
    assert answered(df.groupBy("k").sum("big")) == ""
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        df.groupBy("k").sum("big").collect()


@needs_sketches
def test_sketches_are_those_that_spark_would_make(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(
        str(tmp_path / "t"), "city STRING, id BIGINT, name STRING", properties={"block_rows": 1500}
    )
    pick = random.Random(0)
    ids = [None if i % 9 == 0 else pick.randrange(-900, 900) for i in range(4500)]
    sales = pa.table({"city": [pick.choice("ab") for _ in ids], "id": ids, "name": [i and f"\u00e9{i}" for i in ids]})
    table.append(sales.slice(0, 1500))
    table.create_index(
        "x", "aggregate", ["city"], build=False, aggregates=["hll_sketch_agg(id)", "hll_sketch_agg(name, 8)"]
    )
    table.append(sales.slice(1500))
    for name, indexes in (("sketched", True), ("sketched_plain", False)):
        fuse_spark.read(spark, str(tmp_path / "t"), indexes=indexes).createOrReplaceTempView(name)
    for columns, by, size, outcome in (
        ("city, ", "GROUP BY city", "", "partly"),
        ("", "", "", "partly"),
        ("", "", ", 11", ""),
    ):
        query = (
            f"SELECT {columns} hll_sketch_agg(id{size}) a, hll_sketch_agg(name, 8) b FROM {{t}} WHERE city < 'c' {by}"
        )
        found, right = (spark.sql(query.format(t=name)) for name in ("sketched", "sketched_plain"))

        assert answered(found) == outcome
        assert [_sketches(row) for row in sorted(found.collect())] == [
            _sketches(row) for row in sorted(right.collect())
        ]
    table.maintenance.refresh_index("x")
    whole = (
        fuse_spark.read(spark, str(tmp_path / "t")).groupBy().agg(hll_sketch_estimate(hll_sketch_agg("id")).alias("n"))
    )

    assert answered(whole) == "whole"
    assert whole.collect()[0].n == pytest.approx(len(set(ids) - {None}), rel=0.05)


@needs_sketches
@pytest.mark.every_spark
def test_sketches_that_a_table_holds_are_united_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    url = str(tmp_path / "t")
    table = fuse.create_table(url, "city STRING, part INT, s BINARY")
    made = [build_sketch(range(300 * i, 300 * i + 500), 10) for i in range(4)]
    held = [
        [made[0], None],
        [None, made[2]],
        [made[2], made[3]],
    ]  # groups that have no sketch in one block have them in others
    keys = {"city": [*"aab", None], "part": pa.array([1, 2, 1, 1], pa.int32())}
    blocks = [pa.table({**keys, "s": [*pair, None, None]}) for pair in held]
    table.append(blocks[0])
    table.create_index("x", "aggregate", ["city", "part"], build=False, aggregates=["hll_union_agg(s)", "count(*)"])
    table.append(blocks[1])
    table.append(blocks[2])
    for name, indexes in (("united", True), ("united_plain", False)):
        fuse_spark.read(spark, url, indexes=indexes).createOrReplaceTempView(name)
    for key in ("city", "part", "concat(city, part)"):
        query = f"SELECT {key} AS k, hll_union_agg(s) AS u, count(*) FROM {{t}} GROUP BY 1 ORDER BY 1"
        found, right = (spark.sql(query.format(t=name)) for name in ("united", "united_plain"))

        assert answered(found) == "partly"
        assert list(map(_sketches, found.collect())) == list(map(_sketches, right.collect()))
    table.maintenance.refresh_index("x")
    for view, indexes in (("united", True), ("united_plain", False)):
        fuse_spark.read(spark, url, indexes=indexes).createOrReplaceTempView(view)
    for key in ("city", "left(city, 1)"):
        query = f"SELECT {key} AS k, hll_union_agg(s, false) AS u FROM {{t}} GROUP BY 1 ORDER BY 1"
        found, right = (spark.sql(query.format(t=name)) for name in ("united", "united_plain"))

        assert answered(found) == "whole"
        assert list(map(_sketches, found.collect())) == list(map(_sketches, right.collect()))
    assert answered(spark.sql("SELECT city, hll_union_agg(s, true) FROM united GROUP BY 1")) == ""


def _sketches(row: Any) -> list[Any]:
    """A sketch as what its registers hold: its estimate also depends on how rows were divided, in Spark itself too."""
    return [sketch_registers(bytes(value)) if isinstance(value, bytes | bytearray) else value for value in row]
