"""Votes that fail in every way, and what the host leaves behind: no query is wrong, none fails, and no thread is
leaked.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from fuse_index.pruning.explanation import Explanation, Vote
from fuse_index.reasons import Reason
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.lru_cache import LruCache
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.relation import NativeScan, snapshot_dataframe
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.protocol.replies import PruneReply
from fuse_storage import Schema
from tests.effort import effort
from tests.spark.plain import NOTHING, Judge, Tree, listing, read, write

FILES, ROWS = 9, 10
DEADLINE = "spark.fuse.index.deadline"
PRUNE = json.dumps({"question": "prune", "url": "/t", "snapshot": "1", "mode": "indexes", "context": {}, "filters": []})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write(tmp_path_factory.mktemp("host"), [rows(n) for n in range(FILES)])


def rows(n: int) -> pa.Table:
    return pa.table({"id": np.arange(n * ROWS, (n + 1) * ROWS), "kind": [f"k{i % 5}" for i in range(ROWS)]})


def everything(trees: list[Tree]) -> np.ndarray:
    return np.ones(FILES, np.bool_)


def table(spark: SparkSession, files: list[Path], say: Callable[[list[Tree]], Any]) -> DataFrame:
    jvm_bridge(spark).optimize(spark._jsparkSession)
    return read(spark, files, Schema.create(rows(0).schema), Judge(say))


def raw(spark: SparkSession, files: list[Path], answer: Callable[[str], Any], key: str) -> DataFrame:
    """A DataFrame whose callback has none of the care that ``PlannerCallback`` takes."""
    serve_requests(spark, key, answer)
    return snapshot_dataframe(
        spark, NativeScan(key, f"/{key}", "main", "indexes", "s1", listing(files), Schema.create(rows(0).schema))
    )


@pytest.fixture
def deadline(spark: SparkSession) -> Iterator[float]:
    spark.conf.set(DEADLINE, "300ms")
    yield 0.3
    spark.conf.unset(DEADLINE)


def python_threads() -> int:
    return threading.active_count()


@pytest.mark.every_spark
@pytest.mark.parametrize("failure", [ValueError("bad"), MemoryError(), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_a_vote_that_raises_reads_everything_and_says_why(
    spark: SparkSession, files: list[Path], failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def say(trees: list[Tree]) -> np.ndarray:
        raise failure

    with caplog.at_level(logging.WARNING, "fuse_index.spark"):
        assert table(spark, files, say).filter("id = 42").collect() == [(42, "k2")]
    assert type(failure).__name__ in caplog.text


def test_a_vote_that_hangs_is_given_up_on(spark: SparkSession, files: list[Path], deadline: float) -> None:
    release = threading.Event()

    def say(trees: list[Tree]) -> np.ndarray:
        release.wait(30)
        return everything(trees)

    hanging = table(spark, files, say)
    started = time.monotonic()
    try:
        assert hanging.filter("id = 42").collect() == [(42, "k2")]
    finally:
        release.set()
    assert time.monotonic() - started < 20


def test_a_vote_that_comes_late_serves_the_next_query(spark: SparkSession, files: list[Path], deadline: float) -> None:
    release = threading.Event()

    def say(trees: list[Tree]) -> np.ndarray:
        release.wait(60)
        return np.arange(FILES) == 4

    slow = table(spark, files, say)
    try:
        assert slow.filter("id > 0").count() == FILES * ROWS - 1
    finally:
        release.set()
    ends = time.monotonic() + 30
    while slow.filter("id > 0").count() != ROWS:  # what the (wrong) vote says, so it was asked
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="nothing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\1", id="no number"),
        pytest.param(b"\1\0\0\0\x09", id="no bits"),
        pytest.param(b"\1\0\0\0\x09\0", id="too few bits"),
        pytest.param(b"\1\0\0\0\x08\0\0", id="for fewer blocks"),
        pytest.param(b"\1\0\0\0\x09\0\0\0", id="too many bits"),
        pytest.param(b"\2\0\0\0\x09\0\0", id="unknown kind"),
        pytest.param("text", id="text"),
        pytest.param(7, id="number"),
        pytest.param(b"\0why", id="refusal"),
        pytest.param(bytes(10_000), id="zeros"),
    ],
)
def test_an_answer_of_the_wrong_form_reads_everything(spark: SparkSession, files: list[Path], answer: Any) -> None:
    strange = raw(spark, files, lambda request: answer, f"strange {answer!r:.20}")

    assert strange.filter("id = 42").collect() == [(42, "k2")]


def test_a_raw_callback_that_raises_reads_everything(spark: SparkSession, files: list[Path]) -> None:
    def fail(request: str) -> bytes:
        raise OSError("socket closed")

    assert raw(spark, files, fail, "raising").filter("id = 42").collect() == [(42, "k2")]


def test_a_judge_that_answers_for_another_number_of_blocks_is_not_believed(
    spark: SparkSession, files: list[Path]
) -> None:
    fewer = table(spark, files, lambda trees: np.zeros(FILES - 1, np.bool_))

    assert fewer.filter("id = 42").collect() == [(42, "k2")]


def test_a_dataframe_whose_voter_is_gone_reads_everything(spark: SparkSession, files: list[Path]) -> None:
    orphan = snapshot_dataframe(
        spark, NativeScan("nobody", "/orphan", "main", "indexes", "s1", listing(files), Schema.create(rows(0).schema))
    )

    assert orphan.filter("id = 42").collect() == [(42, "k2")]


def test_queries_with_a_shuffle_leak_no_thread(spark: SparkSession, files: list[Path]) -> None:
    asked = table(spark, files, everything)

    def query(n: int) -> None:
        asked.filter(f"id > {n}").groupBy("kind").count().orderBy("kind").collect()

    query(-1)
    before = python_threads()
    for n in range(effort(8)):
        query(n)

    assert python_threads() <= before


def test_several_threads_may_query_at_once(spark: SparkSession, files: list[Path]) -> None:
    asked = table(spark, files, lambda trees: np.arange(FILES) >= 4)

    def count(n: int) -> int:
        return asked.filter(f"id >= {40 + n}").count()

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(count, range(24))]
    assert found == [FILES * ROWS - 40 - n for n in range(24)]


def test_one_class_is_compiled_once_however_many_ask(spark: SparkSession) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: jvm_bridge(spark), range(16))]

    assert len({made.hashCode() for made in found}) == 1


@pytest.mark.every_spark
def test_our_rule_is_added_once_and_keeps_those_of_others(spark: SparkSession) -> None:
    methods = spark._jsparkSession.experimental()
    before = methods.extraOptimizations()
    put = getattr(methods, "extraOptimizations_$eq")  # a name that Python has no syntax for
    theirs = getattr(getattr(spark._jvm.org.apache.spark.sql.catalyst.optimizer, "CollapseProject$"), "MODULE$")
    try:
        put(spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq([theirs]))
        for _ in range(3):
            jvm_bridge(spark).optimize(spark._jsparkSession)
        rules = methods.extraOptimizations()
        assert [rules.apply(i).getClass().getSimpleName() for i in range(rules.length())] == [
            "CollapseProject$",
            "CatalogTableRule",
            "RefreshRule",
            "StreamMetadataRule",
            "ChangedRowsRule",
            "RowStatementRule",
            "AggregateRule",
            "PruneRule",
            "RuntimePruneRule",
            "TopRule",
            "PartitionedScanRule",
            "RecursionRule",
        ]
    finally:
        put(before)


def test_a_view_cannot_be_written_and_loses_no_file(spark: SparkSession, files: list[Path]) -> None:
    target = table(spark, files, everything)
    target.createOrReplaceTempView("readonly")
    try:
        for attempt in (
            "INSERT INTO readonly SELECT * FROM readonly",
            "INSERT OVERWRITE readonly SELECT * FROM readonly",
        ):
            with pytest.raises(AnalysisException):
                spark.sql(attempt)
        for overwrite in (False, True):
            with pytest.raises(AnalysisException):
                target.write.insertInto("readonly", overwrite=overwrite)
    finally:
        spark.catalog.dropTempView("readonly")
    assert all(file.exists() for file in files)
    assert target.count() == FILES * ROWS


def test_what_was_used_last_is_kept() -> None:
    recent: LruCache[int, str] = LruCache(2)
    for number in (1, 2, 1, 3):
        recent.get(number, lambda number=number: f"made {number}")  # type: ignore[misc]

    made: list[int] = []
    for number in (3, 1, 2):
        recent.get(number, lambda number=number: made.append(number) or "anew")  # type: ignore[misc, func-returns-value]
    assert made == [2]


def test_a_memo_has_at_most_so_many_bytes() -> None:
    recent: LruCache[str, bytes] = LruCache(10, 6, len)
    for key, value in (("a", b"12"), ("b", b"34"), ("a", b"123"), ("c", b"4")):
        recent.put(key, value)
    assert recent.get("b", lambda: b"") == b"34"
    assert recent.put("d", b"1234567") == b"1234567"

    made: list[str] = []
    for key in "abcd":
        recent.get(key, lambda key=key: made.append(key) or b"1")  # type: ignore[misc, func-returns-value]
    assert made == ["a", "b", "c", "d"]


def test_a_failed_vote_is_not_remembered() -> None:
    answers = iter([ValueError("once"), np.array([True])])

    class Flaky:
        def prune_blocks(self, question: Any) -> PruneReply:
            answer = next(answers)
            if isinstance(answer, ValueError):
                raise answer
            return PruneReply(answer, NOTHING)

        def refresh_snapshot(self, question: Any) -> None:
            return None

    voter = PlannerCallback(Flaky())
    assert voter.apply(PRUNE) == b"\0ValueError: once"
    no_zones, no_certain_rows, unknown_rows = bytes(8), bytes(4), b"\x7f\xff\xff\xff"
    no_doubt, no_ranges = bytes(4), bytes(4)
    counts = no_zones + no_certain_rows + unknown_rows + no_doubt + no_ranges
    assert voter.apply(PRUNE) == b"\1\0\0\0\1\1" + counts


def test_a_vote_that_a_fault_has_spoiled_is_soon_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled = replace(NOTHING, votes=(Vote("a = 1", "by_a", "bloom", Reason.CORRUPT),))
    asked: list[Explanation] = []

    class Faulty:
        def prune_blocks(self, question: Any) -> PruneReply:
            asked.append(spoiled if len(asked) < 2 else NOTHING)
            return PruneReply(np.array([True]), asked[-1])

        def refresh_snapshot(self, question: Any) -> None:
            return None

    voter = PlannerCallback(Faulty())
    assert voter.explain(PRUNE) == voter.explain(PRUNE) == spoiled
    assert len(asked) == 1

    monkeypatch.setattr(PlannerCallback, "FAULTY_REPLY_SECONDS", 0.0)
    assert PlannerCallback(Faulty()).explain(PRUNE) == spoiled
    assert voter.explain(PRUNE) == spoiled  # remembered for as long as it was said then

    forgetful = PlannerCallback(Faulty())
    asked.clear()
    assert [forgetful.explain(PRUNE) for _ in range(4)] == [spoiled, spoiled, NOTHING, NOTHING]
    assert len(asked) == 3
