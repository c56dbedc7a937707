"""Plain Parquet files read through the native scan, with a judge that tests tell what to say."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fuse_index.pruning.explanation import Explanation, Totals
from fuse_index.spark.native.column_estimates import ColumnEstimate
from fuse_index.spark.native.file_listing import ListedFiles, pack_file_listing
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.relation import NativeScan, snapshot_dataframe
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.protocol.questions import AnswerAggregate, EstimateColumns, JoinKeys, Prune, Refresh
from fuse_index.spark.protocol.replies import AggregateReply, PruneReply, RefreshReply
from fuse_storage import Schema

Tree = dict[str, Any]
NOTHING = Explanation("s1", None, *[Totals(0, 0)] * 5)
Say = Callable[[list[Tree]], npt.NDArray[np.bool_]]


class Judge:
    """Says what it was told to; keeps what it was asked, and on which threads."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.asked: list[list[Tree]] = []
        self.questions: list[Prune] = []
        self.threads: set[int] = set()
        self.next: RefreshReply | Exception | None = None

    def prune_blocks(self, question: Prune) -> PruneReply:
        self.threads.add(threading.get_ident())
        self.questions.append(question)
        self.asked.append(question.filters)
        return PruneReply(self.say(question.filters), NOTHING)

    def answer_aggregate(self, question: AnswerAggregate) -> AggregateReply:
        return AggregateReply(self.say(question.filters), None, NOTHING)

    def column_statistics(self, question: EstimateColumns, planned: object) -> dict[str, ColumnEstimate]:
        return {}

    def may_prune_by_keys(self, question: JoinKeys) -> list[bool]:
        return [True] * len(question.keys)

    def refresh_snapshot(self, question: Refresh) -> RefreshReply | None:
        if isinstance(self.next, Exception):
            raise self.next
        return self.next


def write(folder: Path, tables: Sequence[pa.Table], **options: Any) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{uuid4().hex}.parquet" for _ in tables]
    for file, table in zip(files, tables, strict=True):
        pq.write_table(table, file, **options)
    return files


def listing(files: Sequence[Path]) -> bytes:
    sizes = np.array([file.stat().st_size for file in files], np.int64)
    rows = np.array([pq.read_metadata(file).num_rows for file in files], np.int64)
    return pack_file_listing(
        ListedFiles([f"file:{file}" for file in files], sizes, rows, np.zeros(len(files), np.int64))
    )


def read(
    spark: SparkSession, files: Sequence[Path], schema: Schema, judge: Judge, url: str = "/plain", mode: str = "indexes"
) -> DataFrame:
    """A DataFrame whose votes ``judge`` casts."""
    voter = uuid4().hex
    serve_requests(spark, voter, PlannerCallback(judge).apply)
    return snapshot_dataframe(spark, NativeScan(voter, url, "main", mode, "s1", listing(files), schema))


def names(trees: Sequence[Tree]) -> list[str]:
    return sorted(tree["node"] for tree in trees)


FILES, ROWS = 8, 100
"""Of the numbered files; file n holds the ids from n * ROWS."""


def by_id(trees: list[Tree]) -> np.ndarray:
    """Votes on ``id = constant`` alone."""
    keep = np.ones(FILES, np.bool_)
    for tree in trees:
        match tree:
            case {"node": "EqualTo", "children": [{"name": "id"}, {"node": "Literal", "value": value}]}:
                keep &= np.arange(FILES) == int(value) // ROWS
    return keep


def rows(n: int) -> pa.Table:
    ids = np.arange(n * ROWS, (n + 1) * ROWS)
    point = pa.array([{"x": int(i), "y": None if i % 3 else str(i)} for i in ids])
    return pa.table({"id": ids, "kind": [f"k{i % 5}" for i in ids], "point": point})
