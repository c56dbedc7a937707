"""Rows deleted, updated, merged and overwritten, blocks compacted and reclustered, by all executors, as
``fuse_index.Table`` does it.

The blocks in question are found where the table is planned, rewritten in tasks, and committed at once. On classic
sessions and on Connect. Conditions mean what they mean in the session: its time zone, ANSI mode and case sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from fuse_index.clustering.recluster import (
    DEFAULT_PASSES,
    DEFAULT_STEP_BLOCKS,
    DEFAULT_STEP_BYTES,
    ReclusterCallback,
    ReclusterJob,
    recluster_steps,
    run_recluster_task,
)
from fuse_index.indexes.registry import Host
from fuse_index.operations.compact import CompactJob, run_compact_task
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.operations.rewrite_job import RewriteJob
from fuse_index.operations.row_edits import RewriteResult, run_rewrite_task, stage_rows
from fuse_index.predicate import Context
from fuse_index.spark.jobs.write import target_location, task_slots
from fuse_index.spark.placement import ANSWER_SCHEMA, capture_answer, collect_answers, run_as_tasks, run_where_reachable
from fuse_index.spark.source.data_source import session_context
from fuse_index.spark.source.options import TableLocation
from fuse_index.table.arguments import check_arguments
from fuse_index.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_RepeatedJob = TypeVar("_RepeatedJob", CompactJob, ReclusterJob)
"""Work that is planned, done in tasks and committed, again and again until nothing is left."""


@dataclass(frozen=True)
class DmlTarget:
    """A table to be changed, as the session sees it. Picklable."""

    location: TableLocation
    host: Host | None
    context: Context
    task_count: int

    @staticmethod
    def for_session(spark: SparkSession, url: str, branch: str, host: Host | None, store: dict[str, str]) -> DmlTarget:
        return DmlTarget(target_location(url, branch, store), host, session_context(spark), task_slots(spark) * 4)

    def open(self) -> Table:
        return Table(self.location.open(), self.host or Host.discover(), self.context)


@check_arguments
def delete(
    spark: SparkSession, url: str, where: str, *, branch: str = "main", host: Host | None = None, **store: str
) -> None:
    """Delete the rows that the condition is true on; see ``StoredTable.delete``."""
    to = DmlTarget.for_session(spark, url, branch, host, store)
    _run_rewrite(spark, run_where_reachable(spark, lambda: to.open().deleting(where, to.task_count)))


@check_arguments
def update(
    spark: SparkSession,
    url: str,
    where: str | None,
    set: Mapping[str, Any],
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Give columns other values in the rows that the condition is true on; see ``StoredTable.update``."""
    to = DmlTarget.for_session(spark, url, branch, host, store)
    _run_rewrite(spark, run_where_reachable(spark, lambda: to.open().updating(where, set, to.task_count)))


@check_arguments
def merge(
    spark: SparkSession,
    url: str,
    source: DataFrame,
    on: Sequence[str] | None = None,
    matched: MergeClauseSpec = "update",
    not_matched: MergeClauseSpec = "insert",
    not_matched_by_source: MergeClauseSpec = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Bring in the rows of ``source`` by their keys; see ``Table.merge``. Each task holds all of ``source`` in
    memory.
    """
    to, rows = DmlTarget.for_session(spark, url, branch, host, store), source.toArrow()
    _run_rewrite(
        spark,
        run_where_reachable(
            spark, lambda: to.open().merging(rows, on, matched, not_matched, not_matched_by_source, to.task_count)
        ),
    )


@check_arguments
def overwrite(
    spark: SparkSession,
    url: str,
    rows: DataFrame,
    where: str | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Replace the rows that the condition is true on, by default all, with ``rows``; see ``StoredTable.overwrite``."""
    to = DmlTarget.for_session(spark, url, branch, host, store)
    work = run_where_reachable(spark, lambda: to.open().overwriting(where, to.task_count))
    numbered = rows.toDF(
        *map(str, range(len(rows.columns)))
    )  # mapInArrow reads names as paths: dots and back-quotes mislead it
    for staged in collect_answers(numbered.mapInArrow(_stage_rows(work, rows.columns), ANSWER_SCHEMA)):
        work.add_staged(staged)
    _run_rewrite(spark, work)


@check_arguments
def compact(spark: SparkSession, url: str, *, branch: str = "main", host: Host | None = None, **store: str) -> None:
    """Join small blocks and segments; see ``Table.compact``."""
    to = DmlTarget.for_session(spark, url, branch, host, store)
    work = run_where_reachable(spark, lambda: to.open().compacting())
    while True:
        work, portions = run_where_reachable(spark, partial(_plan_round, work, to.task_count))
        if not portions:
            break
        work = run_where_reachable(spark, partial(_commit_round, work, run_as_tasks(spark, run_compact_task, portions)))
    run_where_reachable(spark, partial(_finish_compaction, work))


@check_arguments
def recluster(
    spark: SparkSession,
    url: str,
    depth: int = 2,
    step_blocks: int = DEFAULT_STEP_BLOCKS,
    step_bytes: int = DEFAULT_STEP_BYTES,
    passes: int = DEFAULT_PASSES,
    progress: ReclusterCallback | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Sort blocks that overlap by the clustering key; see ``Table.recluster``.

    Each task sorts a group of blocks that has none in common with another's, and the groups of a round are one commit.
    So executors need the memory of a step for each task that they run at a time.
    """
    to, steps = DmlTarget.for_session(spark, url, branch, host, store), 0
    work = run_where_reachable(spark, lambda: to.open().reclustering(depth, step_blocks, step_bytes, passes))
    while True:
        work, portions = run_where_reachable(spark, partial(_plan_round, work, task_slots(spark)))
        if not portions:
            break
        done = run_as_tasks(spark, run_recluster_task, portions)
        work = run_where_reachable(spark, partial(_commit_round, work, done))
        for step in recluster_steps(done, steps):
            steps = step.number
            if progress is not None:
                progress(step)


def _plan_round(work: _RepeatedJob, pieces: int) -> tuple[_RepeatedJob, list[Any]]:
    portions = work.plan_tasks(pieces)
    return work, portions


def _commit_round(work: _RepeatedJob, done: Sequence[Any]) -> _RepeatedJob:
    work.commit_results(done)
    return work


def _finish_compaction(work: CompactJob) -> None:
    work.finalize()


def _stage_rows(work: RewriteJob, names: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        yield capture_answer(lambda: stage_rows(work.stored, work.builders, named, work.condition))

    return run


def _run_rewrite(spark: SparkSession, work: RewriteJob) -> None:
    done = run_as_tasks(spark, run_rewrite_task, work.tasks)
    run_where_reachable(spark, partial(_commit_rewrite, work, done))


def _commit_rewrite(work: RewriteJob, done: Sequence[RewriteResult]) -> None:
    work.commit_results(done)
