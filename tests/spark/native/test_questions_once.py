"""A query asks each question once, however often it scans a table, and none whose answer is no use to it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.pruning.explanation import Vote
from fuse_index.reasons import Reason
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.relation import NativeScan, snapshot_dataframe
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.protocol.questions import AnswerAggregate, EstimateColumns, Prune, Question
from fuse_index.spark.protocol.replies import AggregateReply, PruneReply
from fuse_storage import Schema
from tests.spark.executed import plan_of
from tests.spark.plain import FILES, NOTHING, Judge, by_id, listing, rows, write

BLOCKS, ROWS = 8, 2_000
MANY = 16_000
"""Rows of a side that may have more keys than a scan is told."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views: ``sold``, whose blocks are of days, ``days``, each once, and ``kinds``: as many rows, with few keys."""
    folder, ids = tmp_path_factory.mktemp("once"), np.arange(BLOCKS * ROWS)
    tables = {
        "sold": pa.table({"id": ids, "day": ids, "kind": ids % 7, "v": ids % 11}),
        "days": pa.table({"d": pa.array([None if i % 100 == 0 else i for i in range(MANY)]), "w": np.arange(MANY) % 5}),
        "kinds": pa.table({"d": np.arange(MANY) % 40, "w": np.arange(MANY) % 5}),
    }
    for name, content in tables.items():
        table = fuse.create_table(
            folder / name, content.schema, properties={"block_rows": ROWS if name == "sold" else MANY // 2}
        )
        table.append(content)
        fuse_spark.read(spark, folder / name).createOrReplaceTempView(name)
    yield spark
    for name in tables:
        spark.catalog.dropTempView(name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Question, str]]:
    """What the JVM asks from now on, each time that it does."""
    questions: list[tuple[Question, str]] = []
    reply = PlannerCallback._reply

    def count(self: PlannerCallback, text: str, question: Question) -> bytes:
        questions.append((question, text))
        return reply(self, text, question)

    monkeypatch.setattr(PlannerCallback, "_reply", count)
    return questions


def prunes(asked: list[tuple[Question, str]]) -> list[str]:
    return [text for question, text in asked if isinstance(question, Prune)]


def aggregates(asked: list[tuple[Question, str]]) -> list[str]:
    return [text for question, text in asked if isinstance(question, AnswerAggregate)]


def planned(spark: SparkSession, query: str) -> DataFrame:
    found = spark.sql(query)
    found._jdf.queryExecution().executedPlan()
    return found


FIVE_SCANS = """SELECT a.id FROM sold a JOIN sold b ON a.id = b.id WHERE a.day < {n} AND b.day < {n}
UNION ALL SELECT id FROM sold WHERE day < {n} UNION ALL SELECT id FROM sold WHERE day < {n} AND v = 3
UNION ALL SELECT (SELECT max(v) FROM sold WHERE day < {n} AND v = 3)"""


def test_scans_of_one_condition_ask_once_and_so_does_the_next_query(
    tables: SparkSession, asked: list[tuple[Question, str]]
) -> None:
    found = planned(tables, FIVE_SCANS.format(n=1_000))
    assert len(prunes(asked)) == len(set(prunes(asked))) == 3  # with ``v = 3``, with ``id IS NOT NULL``, with neither

    rows_of_three = sum(n % 11 == 3 for n in range(1_000))
    assert len(found.collect()) == 1_000 + 1_000 + rows_of_three + 1
    before = len(prunes(asked))
    planned(tables, FIVE_SCANS.format(n=1_000))
    assert len(prunes(asked)) == before


CHANNELS = """WITH common AS (
    SELECT kind AS k FROM sold JOIN days ON day = d WHERE w BETWEEN 1 AND 3
    INTERSECT SELECT v AS k FROM sold JOIN kinds ON day = d WHERE w BETWEEN 1 AND 3
    INTERSECT SELECT w AS k FROM days WHERE d > 100),
mean AS (SELECT avg(q) AS m FROM (
    SELECT v AS q FROM sold JOIN days ON day = d WHERE w BETWEEN 1 AND 3
    UNION ALL SELECT w AS q FROM kinds WHERE d < 30))
SELECT channel, item, sum(amount) FROM (
    SELECT 'shop' AS channel, kind AS item, sum(v) AS amount FROM sold JOIN days ON day = d
    WHERE kind IN (SELECT k FROM common) AND w = 2 GROUP BY kind HAVING sum(v) > (SELECT m FROM mean)
    UNION ALL SELECT 'post', v, sum(kind) FROM sold JOIN kinds ON day = d
    WHERE v IN (SELECT k FROM common) AND w = 2 GROUP BY v HAVING sum(kind) > (SELECT m FROM mean)
    UNION ALL SELECT 'web', w, sum(d) FROM days
    WHERE w IN (SELECT k FROM common) AND d > 50 GROUP BY w HAVING sum(d) > (SELECT m FROM mean))
GROUP BY ROLLUP (channel, item)"""
"""In the shape of TPC-DS's fourteenth: what is sold in all channels, in each of them where it is above the mean."""


def test_a_query_of_many_channels_asks_as_often_as_it_has_other_conditions(
    tables: SparkSession, asked: list[tuple[Question, str]]
) -> None:
    found = planned(tables, CHANNELS)
    assert len(prunes(asked)) == len(set(prunes(asked))) == 8

    asked.clear()
    planned(tables, CHANNELS)
    assert asked == []
    assert len(found.collect()) > 3


BUCKETS = "SELECT {}".format(
    ", ".join(f"(SELECT {f} FROM sold WHERE v BETWEEN {n} AND {n + 1})" for n in (1, 4) for f in ("count(*)", "avg(v)"))
)


def test_aggregates_are_asked_about_once(tables: SparkSession, asked: list[tuple[Question, str]]) -> None:
    found = planned(tables, BUCKETS)
    assert len(aggregates(asked)) == len(set(aggregates(asked))) == 6
    planned(tables, BUCKETS)
    assert len(aggregates(asked)) == 6

    first, mean = (sum(n % 11 in (1, 2) for n in range(BLOCKS * ROWS)), 1.5)
    assert tuple(found.collect()[0])[:2] == (first, pytest.approx(mean, abs=0.01))


@pytest.mark.parametrize("reason", [Reason.CORRUPT, Reason.USED_NO_GAIN])
def test_an_aggregate_is_asked_about_again_where_a_fault_spoiled_the_answer(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[Question, str]], reason: Reason
) -> None:
    class Spoiled(Judge):
        def answer_aggregate(self, question: AnswerAggregate) -> AggregateReply:
            votes = (Vote("(aggregate)", "by_id", "aggregate", reason),)
            return AggregateReply(self.say(question.filters), None, replace(NOTHING, votes=votes))

    parts = [rows(n) for n in range(FILES)]
    files, voter = write(tmp_path_factory.mktemp("spoiled"), parts), uuid4().hex
    serve_requests(spark, voter, PlannerCallback(Spoiled(by_id)).apply)
    schema = Schema.create(parts[0].schema)
    found = snapshot_dataframe(spark, NativeScan(voter, "/spoiled", "main", "indexes", "s1", listing(files), schema))

    for expected in (1, 1 if reason is Reason.USED_NO_GAIN else 2):
        found.groupBy().count()._jdf.queryExecution().optimizedPlan()
        assert len(aggregates(asked)) >= expected
        assert reason is Reason.CORRUPT or len(aggregates(asked)) == 1


def test_another_state_of_a_table_is_another_question(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[Question, str]]
) -> None:
    folder = tmp_path_factory.mktemp("states") / "t"
    table = fuse.create_table(folder, "id BIGINT", properties={"block_rows": 10})
    for first in (0, 10):
        table.append([{"id": first + n} for n in range(10)])
        found = fuse_spark.read(spark, folder).where("id >= 5")
        assert found.count() == first + 5
    assert len({question.snapshot for question, _ in asked if isinstance(question, Prune)}) == 2


def test_an_index_that_is_switched_off_is_another_question(
    tables: SparkSession, asked: list[tuple[Question, str]]
) -> None:
    query = "SELECT id FROM sold WHERE day = 1234"
    assert planned(tables, query).collect() == planned(tables, query).collect()
    tables.conf.set("spark.fuse.index.off", "min_max")
    try:
        planned(tables, query)
    finally:
        tables.conf.unset("spark.fuse.index.off")
    assert len(prunes(asked)) == 2


def test_what_a_fault_has_spoiled_is_asked_again(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[Question, str]]
) -> None:
    """Replies of an index that was read in vain, and of another Python that answers under the same key."""
    faults = [True]

    class Faulty(Judge):
        def prune_blocks(self, question: Prune) -> PruneReply:
            votes = (Vote("id = 250", "by_id", "bloom", Reason.CORRUPT),) if faults[0] else ()
            return PruneReply(self.say(question.filters), replace(NOTHING, votes=votes))

    parts = [rows(n) for n in range(FILES)]
    files, voter = write(tmp_path_factory.mktemp("faulty"), parts), uuid4().hex
    serve_requests(spark, voter, PlannerCallback(Faulty(by_id)).apply)
    schema = Schema.create(parts[0].schema)
    found = snapshot_dataframe(spark, NativeScan(voter, "/faulty", "main", "indexes", "s1", listing(files), schema))

    def asked_by(query: DataFrame) -> int:
        asked.clear()
        assert query.count() == 1
        return len(prunes(asked))

    assert asked_by(found.where("id = 250")) > 0
    assert asked_by(found.where("id = 250")) > 0
    faults[0] = False
    serve_requests(spark, voter, PlannerCallback(Faulty(by_id)).apply)
    assert asked_by(found.where("id = 250")) > 0
    assert asked_by(found.where("id = 250")) == 0
    serve_requests(spark, voter, PlannerCallback(Faulty(by_id)).apply)
    assert asked_by(found.where("id = 250")) > 0


@pytest.mark.parametrize(
    ("query", "waits"),
    [
        ("SELECT id FROM sold JOIN days ON day = d", False),
        ("SELECT id FROM sold JOIN (SELECT d AS other FROM days WHERE w IS NOT NULL) ON day = other", False),
        ("SELECT id FROM sold JOIN days ON day = d WHERE w = 3", True),  # who knows how many those are
        ("SELECT id FROM sold JOIN kinds ON day = d", True),  # 40 keys
    ],
)
def test_a_scan_waits_for_no_more_keys_than_it_is_told(tables: SparkSession, query: str, waits: bool) -> None:
    df = planned(tables, query)
    assert ("dynamicpruning" in plan_of(df).lower()) == waits
    found = sorted(each.id for each in df.collect())
    tables.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
    try:
        assert found == sorted(each.id for each in tables.sql(query).collect())
    finally:
        tables.conf.unset("spark.sql.optimizer.dynamicPartitionPruning.enabled")


UNTOLD = {
    "SELECT id FROM sold JOIN days ON day = d": "the other side has as many as 15,840 keys, by its rows and their "
    "bounds, and a scan is told 10,000 at most",
    # Who knows what the condition leaves; the join finds it out.
    "SELECT id FROM sold JOIN days ON day = d WHERE w < 9": "the other side has 15,840 keys, and a scan is told 10,000 "
    "at most",
    "SELECT id FROM sold JOIN days ON day = d + 0 WHERE w < 9": "the other side has 15,840 keys, and a scan is told "
    "10,000 at most",
    "SELECT id FROM sold LEFT JOIN kinds ON day = d": "the join keeps rows of this side that match none of the other",
    "SELECT /*+ MERGE(kinds) */ id FROM sold JOIN kinds ON day = d": "a hint says how to join, and not by a broadcast",
}
"""Why the scan of ``sold`` is not told of keys, by query."""


@pytest.mark.parametrize("query", UNTOLD)
def test_an_explanation_says_why_keys_of_a_join_were_not_told(tables: SparkSession, query: str) -> None:
    found = planned(tables, query)
    found.collect()
    told = fuse_spark.explain(found)
    [sold] = [each for each in told if each.blocks.total == BLOCKS]
    assert [vote.detail for vote in sold.votes if vote.reason is Reason.NOT_PUSHED] == [UNTOLD[query]]


@pytest.mark.every_spark
def test_an_explanation_says_by_which_size_a_side_is_not_broadcast(tables: SparkSession) -> None:
    tables.conf.set("spark.sql.autoBroadcastJoinThreshold", "1000")
    try:
        told = fuse_spark.explain(planned(tables, "SELECT id FROM sold JOIN kinds ON day = d"))
    finally:
        tables.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    [sold] = [each for each in told if each.blocks.total == BLOCKS]
    [why] = [vote.detail for vote in sold.votes if vote.reason is Reason.NOT_PUSHED]
    assert re.fullmatch(
        r"the other side is too large to be broadcast, [\d.]+ KiB by Spark's estimate "
        r"\(spark.sql.autoBroadcastJoinThreshold\)",
        why,
    )


@pytest.mark.every_spark
def test_few_rows_are_not_asked_about_their_columns(tables: SparkSession, asked: list[tuple[Question, str]]) -> None:
    planned(tables, "SELECT id FROM sold JOIN (SELECT * FROM days WHERE d < 50) ON day = d")
    assert not [question for question, _ in asked if isinstance(question, EstimateColumns)]


def test_the_driver_reads_no_table_of_which_nothing_but_nulls_is_left_out(tables: SparkSession) -> None:
    """Executors are done as soon; few rows, and rows of other conditions, the driver reads."""
    assert "FuseRows" not in plan_of(planned(tables, "SELECT d, w FROM days WHERE d IS NOT NULL"))
    assert "FuseRows" in plan_of(planned(tables, "SELECT d, w FROM days WHERE d IS NOT NULL AND d < 50"))
    tables.conf.set("spark.fuse.index.rows.maxBytes", "4m")
    try:
        assert "FuseRows" in plan_of(planned(tables, "SELECT d, w FROM days WHERE d IS NOT NULL"))
    finally:
        tables.conf.unset("spark.fuse.index.rows.maxBytes")
