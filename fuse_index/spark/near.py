"""Work on a table itself, done where the table can be reached.

A classic driver reaches it as well as its executors do. A Spark Connect client may be a laptop that sees nothing but the
server: there the same work runs in a task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle

from fuse_index.errors import FuseIndexError
from fuse_storage import StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def is_connect(spark: SparkSession) -> bool:
    """Whether this process is a client of Spark Connect, without a JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make this the session in which Spark looks for data sources: not always that of the DataFrame at hand."""
    if is_connect(spark):
        yield
        return
    jvm: Any = spark.sparkContext._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def near_table(spark: SparkSession, work: Callable[[], T]) -> T:
    """What ``work()`` returns, or raises of ours; it must be safe to do twice, as a task may be."""
    if not is_connect(spark):
        return work()
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(_task(work), "answer binary").collect()
    answer = pickle.loads(row.answer)
    if isinstance(answer, (StorageError, FuseIndexError)):
        raise answer
    return answer  # type: ignore[no-any-return]


def _task(work: Callable[[], Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            answer: Any
            try:
                answer = work()
            except (StorageError, FuseIndexError) as refusal:
                answer = refusal
            yield pa.record_batch({"answer": pa.array([cloudpickle.dumps(answer)], pa.binary())})  # type: ignore[no-untyped-call]

    return run
