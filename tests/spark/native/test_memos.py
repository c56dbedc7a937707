"""What a read of Spark remembers is kept in one place: replies by the JVM, plans and tables by Python."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.pruning.explanation import Vote
from fuse_index.reasons import Reason
from fuse_index.spark.catalog import requests
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.protocol.questions import JoinKeys, Question
from fuse_index.spark.protocol.replies import AggregateReply, PruneReply
from tests.spark.plain import NOTHING

SCAN = {"url": "/t", "snapshot": "1", "mode": "indexes", "context": {}, "filters": []}
PRUNE = json.dumps({"question": "prune", **SCAN})
COUNT = json.dumps({"question": "answer aggregate", **SCAN, "groups": [], "aggregates": []})
ROWS = json.dumps({"question": "read rows", **SCAN, "columns": ["a"], "exact": False, "max_bytes": 9, "seconds": 1})
COLUMNS = json.dumps({"question": "estimate columns", **SCAN, "columns": ["a"]})


class Kept:
    nbytes = 5


class Counted:
    """A planner that tells what it was asked, and by which plan."""

    def __init__(self, *votes: Vote) -> None:
        self.asked: list[Any] = []
        self.plan = Kept()
        self.explanation = replace(NOTHING, votes=votes)

    def prune_blocks(self, question: Any) -> PruneReply:
        self.asked.append("prune")
        return PruneReply(np.array([True]), self.explanation, plan=self.plan)

    def answer_aggregate(self, question: Any) -> AggregateReply:
        self.asked.append("aggregate")
        return AggregateReply(np.array([True]), b"states", self.explanation)

    def read_rows(self, question: Any, planned: Any) -> bytes:
        self.asked.append(planned)
        return b"rows"

    def column_statistics(self, question: Any, planned: Any) -> dict[str, Any]:
        self.asked.append(planned)
        return {}


def test_a_reply_that_the_jvm_keeps_is_not_kept_here_but_its_explanation_is() -> None:
    planner = Counted()
    callback = PlannerCallback(planner)
    for request in (PRUNE, COUNT):
        assert callback.apply(request) == callback.apply(request)
        assert callback.explain(request) == planner.explanation
    assert planner.asked == ["prune", "prune", "aggregate", "aggregate"]


def test_a_reply_that_a_fault_has_spoiled_is_kept_as_the_jvm_asks_again() -> None:
    planner = Counted(Vote("a = 1", "by_a", "bloom", Reason.CORRUPT))
    callback = PlannerCallback(planner)
    for request in (PRUNE, COUNT):
        assert callback.apply(request) == callback.apply(request)
        assert callback.explain(request) == planner.explanation
    assert planner.asked == ["prune", "aggregate"]


@pytest.mark.every_spark
def test_rows_and_what_is_known_of_columns_are_by_the_plan_that_votes_are_of() -> None:
    planner = Counted()
    callback = PlannerCallback(planner)
    assert callback.apply(ROWS) == b"\1rows"
    callback.apply(PRUNE)
    callback.apply(COUNT)  # of the same rows, and without a plan of its own
    callback.apply(ROWS)
    callback.apply(COLUMNS)
    other = json.loads(ROWS) | {"off": "by_a"}
    callback.apply(json.dumps(other))
    assert planner.asked == [None, "prune", "aggregate", planner.plan, planner.plan, None]


def test_keys_of_a_join_are_asked_about_once_for_a_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is read again is the same: each of its DataFrames asked once more."""
    for name in ("large", "small"):
        table = fuse.create_table(tmp_path / name, "k BIGINT, n BIGINT", properties={"block_rows": 100})
        table.append([{"k": number, "n": number % 7} for number in range(1000 if name == "large" else 50)])
    asked: list[JoinKeys] = []
    reply = PlannerCallback._reply

    def count(self: PlannerCallback, text: str, question: Question) -> bytes:
        asked.extend([question] if isinstance(question, JoinKeys) else [])
        return reply(self, text, question)

    monkeypatch.setattr(PlannerCallback, "_reply", count)
    spark.conf.set("spark.fuse.index.join.minScanBytes", "0")
    try:
        for _ in range(3):
            large, small = (fuse_spark.read(spark, tmp_path / name) for name in ("large", "small"))
            assert large.join(small.where("n = 3"), "k").count() == 7
    finally:
        spark.conf.unset("spark.fuse.index.join.minScanBytes")
    large_ids = {each.url for each in asked if each.url.endswith("large")}
    assert len(large_ids) == 1
    assert len(asked) == len({(each.url, str(each.keys)) for each in asked})


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that Spark is told of anew."""
    told: list[str] = []
    describe = requests.native_scan

    def count(spark: Any, table: Any, *arguments: Any) -> Any:
        told.append(table.snapshot.id)
        return describe(spark, table, *arguments)

    monkeypatch.setattr(requests, "native_scan", count)
    return told


def test_spark_is_told_of_a_state_once_and_of_each_branch(
    spark: SparkSession, tmp_path: Path, described: list[str]
) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(tmp_path / "t", "id BIGINT")
    table.append([{"id": 1}])
    query = f"SELECT count(*) FROM fuse.`{tmp_path}/t`"
    for _ in range(3):
        assert spark.sql(query).first()[0] == 1  # type: ignore[index]
    assert len(described) == 1
    assert spark.sql(f"{query} VERSION AS OF {table.snapshot.version}").first()[0] == 1  # type: ignore[index]
    assert len(described) == 2
    table.append([{"id": 2}])
    assert spark.sql(query).first()[0] == 2  # type: ignore[index]
    assert len(set(described)) == 2
