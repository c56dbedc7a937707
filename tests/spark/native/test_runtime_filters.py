"""What the rest of a query finds out reaches the indexes of a scan: keys of joins, and values of subqueries."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.protocol.questions import Prune, Question
from tests.spark.executed import PASSES_VALUES, files_read, plan_of

BLOCKS, ROWS = 8, 500
LEAST_BYTES = "spark.fuse.index.subquery.minScanBytes"
LEAST_SCAN_BYTES = "spark.fuse.index.join.minScanBytes"
MAX_ROW_BYTES = "spark.fuse.index.rows.maxBytes"
KEYS = np.random.default_rng(3).permutation(BLOCKS * ROWS)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views: ``big``, of which bloom indexes know ``k`` and ``name``, ``big_plain``, and small ones."""
    folder = str(tmp_path_factory.mktemp("joins") / "big")
    ids = np.arange(BLOCKS * ROWS)
    rows = pa.table(
        {
            "id": ids,
            "k": pa.array([None if i % 97 == 0 else int(KEYS[i]) for i in ids], pa.int64()),
            "name": [f"n{KEYS[i]}" for i in ids],
            "half": KEYS / 2,
            "number": pa.array(KEYS, pa.int32()),
            "doc": [f'{{"n": "n{key}"}}' for key in KEYS],
        }
    )
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": ROWS})
    table.append(rows)
    for column in ("k", "name", "half", "number"):
        table.create_index(f"by_{column}", "bloom", [column], fpp=0.0001)
    table.create_index("by_path", "json_path", ["doc"], paths=["$.n"])
    fuse_spark.read(spark, folder).createOrReplaceTempView("big")
    pq.write_table(rows, f"{folder}.parquet")
    spark.read.parquet(f"{folder}.parquet").createOrReplaceTempView("big_plain")
    near = [int(KEYS[place]) for place in (3, 4, 490)]
    values = ", ".join(f"({key}L, 'n{key}', {key / 2}D, '{'a' if key % 2 else 'b'}')" for key in near)
    spark.sql(f"CREATE TEMPORARY VIEW small AS SELECT * FROM VALUES {values} AS s(k2, name2, h, tag)")
    spark.sql("CREATE TEMPORARY VIEW nothing AS SELECT * FROM VALUES (CAST(NULL AS BIGINT), 'x') AS n(k3, what)")
    spark.conf.set(LEAST_BYTES, "0")
    yield spark
    spark.conf.unset(LEAST_BYTES)
    for name in ("big", "big_plain", "small", "nothing"):
        spark.catalog.dropTempView(name)


PLAIN: dict[str, list[str]] = {}
"""Rows over the plain table, by query: the same, however Spark plans it."""


def compare(spark: SparkSession, query: str, asked: str | None = None) -> DataFrame:
    """The query over indexes, after its rows were compared with those over the plain table.

    ``asked``: what has the same rows, where the query says how it is to be planned.
    """
    found, plain = spark.sql(query.format(big="big")), asked or query
    if plain not in PLAIN:
        PLAIN[plain] = sorted(map(repr, spark.sql(plain.format(big="big_plain")).collect()))
    assert sorted(map(repr, found.collect())) == PLAIN[plain]
    return found


ONE_BLOCK = [
    "SELECT id, tag FROM {big} JOIN small ON k = k2",
    "SELECT id, tag FROM small JOIN {big} ON k = k2",
    "SELECT id, tag FROM small LEFT JOIN {big} ON k = k2",
    "SELECT id, tag FROM {big} RIGHT JOIN small ON k = k2",
    "SELECT id FROM {big} WHERE k IN (SELECT k2 FROM small)",
    "SELECT id FROM {big} WHERE EXISTS (SELECT 1 FROM small WHERE name2 = name)",
    "SELECT id, tag FROM {big} JOIN small ON half = h",
    "SELECT id, tag FROM {big} JOIN small ON name = name2 AND k = k2 WHERE id % 2 >= 0",
    "SELECT id, a.tag FROM {big} JOIN small a ON k = a.k2 JOIN small b ON name = b.name2",
    "SELECT count(*), max(half) FROM (SELECT id + 1 AS i, k, half FROM {big} WHERE id >= 0) JOIN small ON k = k2",
    "SELECT id FROM {big} WHERE k = (SELECT min(k2) FROM small)",
    "SELECT id FROM {big} WHERE (SELECT max(name2) FROM small) = name AND id >= 0",
]
TERMS = [
    "SELECT id, tag FROM {big} JOIN small ON get_json_object(doc, '$.n') = name2",
    "SELECT id FROM {big} WHERE get_json_object(doc, '$.n') IN (SELECT name2 FROM small)",
    "SELECT i, tag FROM (SELECT id AS i, get_json_object(doc, '$.n') AS n FROM {big}) JOIN small ON n = name2",
    "SELECT id, tag FROM {big} JOIN small ON number = k2",
    "SELECT i, tag FROM (SELECT id AS i, k AS kk FROM {big}) JOIN small ON kk = k2",
    "SELECT id FROM (SELECT id, name FROM {big} JOIN small ON number = k2) JOIN small b ON name = name2",
]
"""Joins by what a query makes of columns, of which an index knows it, or what it is made of."""
NO_BLOCK = [
    "SELECT id FROM {big} JOIN nothing ON k = k3",
    "SELECT id FROM {big} WHERE k = (SELECT max(k3) FROM nothing)",
]
EVERY_BLOCK = [
    "SELECT id, tag FROM {big} LEFT JOIN small ON k = k2",
    "SELECT id FROM {big} LEFT ANTI JOIN small ON k = k2",
    "SELECT id, tag FROM {big} FULL JOIN small ON k = k2",
    "SELECT id FROM {big} WHERE k NOT IN (SELECT k2 FROM small)",
    "SELECT id, tag FROM {big} JOIN small ON k <=> k2",
    "SELECT id, tag FROM {big} JOIN small ON k % 5000 = k2",
    "SELECT id, tag FROM {big} RIGHT JOIN small ON get_json_object(doc, '$.n') = name2",
    "SELECT id, what FROM {big} LEFT JOIN nothing ON k = k3",
    "SELECT id FROM {big} WHERE k = (SELECT max(id) FROM range(9) WHERE rand() + id >= 0)",
]


@pytest.mark.alike
@pytest.mark.parametrize("query", [*ONE_BLOCK, *TERMS])
def test_keys_of_the_small_side_choose_blocks(tables: SparkSession, query: str) -> None:
    assert files_read(compare(tables, query)) == 1


@pytest.mark.every_spark
@pytest.mark.parametrize("query", NO_BLOCK)
def test_no_key_is_no_block(tables: SparkSession, query: str) -> None:
    assert files_read(compare(tables, query)) == 0


@pytest.mark.every_spark
@pytest.mark.parametrize("query", EVERY_BLOCK)
def test_rows_without_a_match_that_the_query_keeps_are_read(tables: SparkSession, query: str) -> None:
    assert files_read(compare(tables, query)) == BLOCKS


@pytest.mark.alike
@pytest.mark.parametrize("query", [*ONE_BLOCK, *TERMS, *NO_BLOCK, *EVERY_BLOCK])
@pytest.mark.parametrize("setting", ["spark.sql.adaptive.enabled", "spark.sql.exchange.reuse"])
def test_rows_are_the_same_under_other_planners(tables: SparkSession, query: str, setting: str) -> None:
    tables.conf.set(setting, "false")
    try:
        compare(tables, query)
    finally:
        tables.conf.unset(setting)


@pytest.mark.alike
@pytest.mark.parametrize(
    ("query", "blocks"),
    [
        *((query, 1) for query in [*ONE_BLOCK, *TERMS]),
        *((query, 0) for query in NO_BLOCK),
        *((query, BLOCKS) for query in EVERY_BLOCK),
    ],
)
def test_executors_read_by_the_same_keys(tables: SparkSession, query: str, blocks: int) -> None:
    tables.conf.set(MAX_ROW_BYTES, "0")
    try:
        found = compare(tables, query)
        assert files_read(found) == blocks
        assert "FuseRows" not in plan_of(found)
    finally:
        tables.conf.unset(MAX_ROW_BYTES)


@pytest.mark.alike
@pytest.mark.parametrize("query", [*ONE_BLOCK, *TERMS])
def test_rows_are_the_same_where_sides_are_shuffled(tables: SparkSession, query: str) -> None:
    compare(tables, query.replace("SELECT", "SELECT /*+ SHUFFLE_HASH(small), SHUFFLE_MERGE(b) */", 1), query)


@pytest.mark.parametrize("key", ["k = k2", "get_json_object(doc, '$.n') = name2"])
def test_rows_are_the_same_where_a_scan_is_shuffled_below_the_join(tables: SparkSession, key: str) -> None:
    shuffled = "SELECT /*+ MERGE(a, b) */ a.* FROM {big} a JOIN {big} b ON a.id = b.id + 1"
    compare(tables, f"SELECT id, tag FROM ({shuffled}) JOIN small ON {key}")


@pytest.mark.every_spark
def test_a_join_of_a_table_with_itself(tables: SparkSession) -> None:
    found = compare(tables, "SELECT a.id, b.id FROM {big} a JOIN {big} b ON a.k = b.k WHERE b.id = 77")

    assert files_read(found) == 2


@pytest.mark.every_spark
def test_what_a_join_removed_is_explained(tables: SparkSession) -> None:
    found = compare(tables, "SELECT id, tag FROM {big} JOIN small ON k = k2")
    explained = fuse_spark.explain(found)

    assert explained.blocks.kept == 1
    assert "IN (" in str(explained)


def test_a_shuffled_scan_does_not_wait_for_what_it_is_never_told(tables: SparkSession) -> None:
    term = "get_json_object(doc, '$.n') = name2"
    found = compare(tables, f"SELECT /*+ MERGE(small) */ id, tag FROM {{big}} JOIN small ON {term}")

    assert "dynamicpruning" not in plan_of(found)
    assert "a hint says how to join, and not by a broadcast" in str(fuse_spark.explain(found))


def test_rows_that_are_numbered_are_all_there(tables: SparkSession) -> None:
    numbered = "SELECT k, row_number() OVER (ORDER BY id) AS place, rand(7) AS drawn FROM {big}"
    compare(tables, f"SELECT place, tag FROM ({numbered}) JOIN small ON k = k2")
    drawn = tables.sql("SELECT drawn FROM (SELECT k, rand(7) AS drawn FROM big) JOIN small ON k = k2")
    alone = tables.sql("SELECT k, rand(7) AS drawn FROM big")
    keys = {row.k2 for row in tables.table("small").collect()}
    assert sorted(row.drawn for row in drawn.collect()) == sorted(row.drawn for row in alone.collect() if row.k in keys)


JOIN = "SELECT id FROM {big} JOIN small ON %s = k2"


def test_a_scan_does_not_wait_for_keys_by_which_nothing_can_go(tables: SparkSession) -> None:
    unknown = compare(tables, JOIN % "k % 4000")
    known = compare(tables, JOIN % "k")
    tables.conf.set(LEAST_SCAN_BYTES, "1g")
    try:
        small = compare(tables, JOIN % "k")
        assert LEAST_SCAN_BYTES in str(fuse_spark.explain(small))
    finally:
        tables.conf.set(LEAST_SCAN_BYTES, "0")

    waits = ["dynamicpruning" in str(found._jdf.queryExecution().optimizedPlan()) for found in (unknown, known, small)]
    assert waits == [False, True, False]
    assert "no index understands it" in str(fuse_spark.explain(unknown))


@pytest.mark.every_spark
def test_for_a_small_scan_no_subquery_is_run_twice(tables: SparkSession) -> None:
    tables.conf.unset(LEAST_BYTES)
    try:
        found = compare(tables, "SELECT id FROM {big} WHERE k = (SELECT min(k2) FROM small)")
        assert files_read(found) == (1 if PASSES_VALUES else BLOCKS)
    finally:
        tables.conf.set(LEAST_BYTES, "0")


@pytest.mark.every_spark
@pytest.mark.skipif(not PASSES_VALUES, reason="older versions of Spark hand over no value that is compared otherwise")
def test_a_value_that_a_column_is_compared_with_chooses_blocks(tables: SparkSession) -> None:
    found = compare(tables, "SELECT id FROM {big} WHERE id > (SELECT max(k2) - max(k2) + 3999 - 5 FROM small)")
    turned = compare(tables, "SELECT id FROM {big} WHERE (SELECT min(id) + 700 FROM range(9)) >= id AND half >= 0")
    nothing = compare(tables, "SELECT id FROM {big} WHERE id < (SELECT max(id) FROM range(9) WHERE id > 90)")

    assert [files_read(each) for each in (found, turned, nothing)] == [1, 2, 0]
    assert ">=" in str(fuse_spark.explain(turned))


def test_so_many_keys_that_every_block_has_one_are_not_asked_about(tables: SparkSession) -> None:
    tables.range(20_000).createOrReplaceTempView("many")
    try:
        found = compare(tables, "SELECT /*+ BROADCAST(many) */ big.id FROM {big} big JOIN many ON k = many.id")
        assert files_read(found) == BLOCKS
    finally:
        tables.catalog.dropTempView("many")


def last_broadcast(spark: SparkSession) -> int:
    """The number of a broadcast that is made now: Spark counts them."""
    made = spark.sparkContext._jsc.broadcast("to be counted")
    made.destroy()
    return int(made.id())


def test_a_plan_that_does_not_run_sends_executors_nothing(tables: SparkSession) -> None:
    first = last_broadcast(tables)
    found = tables.sql("SELECT a.id FROM big a JOIN big b ON a.number = b.number JOIN big c ON a.half = c.half")
    assert "BatchScan" in found._jdf.queryExecution().executedPlan().toString()
    assert last_broadcast(tables) == first + 1


def test_adaptive_execution_asks_once_about_keys(tables: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    reply = PlannerCallback._reply

    def count(self: PlannerCallback, text: str, question: Question) -> bytes:
        asked.extend([text] if isinstance(question, Prune) else [])
        return reply(self, text, question)

    monkeypatch.setattr(PlannerCallback, "_reply", count)
    tables.conf.set(MAX_ROW_BYTES, "0")  # executors read them, which is known after asking
    try:
        new = "id > -275"  # a question that no other test has asked: replies are remembered
        compare(tables, f"SELECT tag, count(*) FROM {{big}} JOIN small ON k = k2 WHERE {new} GROUP BY tag ORDER BY tag")
    finally:
        tables.conf.unset(MAX_ROW_BYTES)

    assert len([text for text in asked if '"node":"InSet"' in text]) == 1


@pytest.mark.every_spark
def test_of_a_chain_of_joins_scans_wait_for_few_others(tables: SparkSession) -> None:
    """Spark has each table wait for the join of all before it, and these within that: twice the plan with each join."""
    joins = " ".join(f"JOIN {{big}} t{n} ON t{n - 1}.number = t{n}.k" for n in range(1, 11))
    found = compare(tables, f"SELECT t0.id, t10.id FROM {{big}} t0 {joins} WHERE t0.id IN (3, 4)")
    assert found._jdf.queryExecution().optimizedPlan().toString().count("RelationV2") < 60
    assert files_read(found) < 11 * BLOCKS / 2
