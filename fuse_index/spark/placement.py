"""Work on a table itself, done where the table can be reached.

A classic driver reaches it as well as its executors do. A Spark Connect client may be a laptop that sees nothing but
the server: there the same work runs in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from fuse_index.spark.answers import ANSWER_SCHEMA, capture_answer, decode_answer
from fuse_index.spark.native.java_compiler import java_class
from fuse_index.spark.workers import map_in_workers, worker_problems_explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")


def is_connect(spark: SparkSession) -> bool:
    """Whether this process is a client of Spark Connect, without a JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


_DRIVER_BYTES = 16 << 20
"""Rows of up to so many bytes are written by the driver that has them: a Python worker takes a second to start."""


def is_on_driver(rows: DataFrame) -> bool:
    """Whether few rows are already in the driver's memory, as those of VALUES are, also after expressions on them."""
    if is_connect(rows.sparkSession):
        return False
    plan: Any = rows._jdf.queryExecution().optimizedPlan()
    is_local = plan.getClass().getSimpleName() == "LocalRelation"
    return is_local and int(str(plan.stats().sizeInBytes())) <= _DRIVER_BYTES


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Make this the session in which Spark looks for data sources: not always that of the DataFrame at hand."""
    if is_connect(spark):
        yield
        return
    sessions = java_class(spark.sparkContext._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def run_where_reachable(spark: SparkSession, work: Callable[[], _T]) -> _T:
    """Run ``work`` here or, on Connect, in a task; raises what it raises of ours. It must be safe to do twice.

    It returns what ``capture_answer`` takes.
    """
    if not is_connect(spark):
        return work()
    (answer,) = run_as_tasks(spark, lambda _: work(), [None])
    return answer


def run_as_tasks(spark: SparkSession, work: Callable[[Any], _T], items: Sequence[Any]) -> list[_T]:
    """Run ``work`` on each item in a Spark task of its own; returns results in their order, raises errors of ours."""
    if not items:
        return []

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield capture_answer(lambda number=number: work(items[number]))  # type: ignore[misc]

    return collect_answers(map_in_workers(spark.range(0, len(items), 1, len(items)), run, ANSWER_SCHEMA))


def collect_answers(df: DataFrame) -> list[Any]:
    """The results that ``capture_answer`` encoded in tasks.

    Raises the first error of ours among them, FuseIndexError where executors lack a package.
    """
    trusted = not is_connect(df.sparkSession)
    with worker_problems_explained():
        rows = df.collect()
    return [decode_answer(row.answer, row.attachments, trusted) for row in rows]
