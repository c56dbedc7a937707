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

from fuse_index.clustering.recluster import PASSES, STEP_BLOCKS, STEP_BYTES, Progress, Sorter, sort, told
from fuse_index.indexes.registry import Host
from fuse_index.operations.compact import Joiner, join
from fuse_index.operations.merge_clauses import Given
from fuse_index.operations.rewrite_job import Work
from fuse_index.operations.row_edits import Rewritten, rewrite, stage
from fuse_index.predicate import Context
from fuse_index.spark.jobs.write import slots_of, target
from fuse_index.spark.placement import ANSWER, answered, answers, in_tasks, near_table
from fuse_index.spark.source.data_source import context_of
from fuse_index.spark.source.options import Place
from fuse_index.table.arguments import checked
from fuse_index.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Rounds = TypeVar("Rounds", Joiner, Sorter)
"""Work that is planned, done in tasks and committed, again and again until nothing is left."""


@dataclass(frozen=True)
class Target:
    """A table to be changed, as the session sees it. Picklable."""

    place: Place
    host: Host | None
    context: Context
    pieces: int

    @staticmethod
    def of(spark: SparkSession, url: str, branch: str, host: Host | None, store: dict[str, str]) -> Target:
        return Target(target(url, branch, store), host, context_of(spark), slots_of(spark) * 4)

    def open(self) -> Table:
        return Table(self.place.open(), self.host or Host.discover(), self.context)


@checked
def delete(
    spark: SparkSession, url: str, where: str, *, branch: str = "main", host: Host | None = None, **store: str
) -> None:
    """Delete the rows that the condition is true on; see ``Table.delete``."""
    to = Target.of(spark, url, branch, host, store)
    _done(spark, near_table(spark, lambda: to.open().deleting(where, to.pieces)))


@checked
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
    """Give columns other values in the rows that the condition is true on; see ``Table.update``."""
    to = Target.of(spark, url, branch, host, store)
    _done(spark, near_table(spark, lambda: to.open().updating(where, set, to.pieces)))


@checked
def merge(
    spark: SparkSession,
    url: str,
    source: DataFrame,
    on: Sequence[str] | None = None,
    matched: Given = "update",
    not_matched: Given = "insert",
    not_matched_by_source: Given = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Bring in the rows of ``source`` by their keys; see ``Table.merge``. Each task holds all of ``source`` in
    memory.
    """
    to, rows = Target.of(spark, url, branch, host, store), source.toArrow()
    _done(
        spark,
        near_table(spark, lambda: to.open().merging(rows, on, matched, not_matched, not_matched_by_source, to.pieces)),
    )


@checked
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
    """Replace the rows that the condition is true on, by default all, with ``rows``; see ``Table.overwrite``."""
    to = Target.of(spark, url, branch, host, store)
    work = near_table(spark, lambda: to.open().overwriting(where, to.pieces))
    numbered = rows.toDF(
        *map(str, range(len(rows.columns)))
    )  # mapInArrow reads names as paths: dots and back-quotes mislead it
    for staged in answers(numbered.mapInArrow(_staging(work, rows.columns), ANSWER)):
        work.adopt(staged)
    _done(spark, work)


@checked
def compact(spark: SparkSession, url: str, *, branch: str = "main", host: Host | None = None, **store: str) -> None:
    """Join small blocks and segments; see ``Table.compact``."""
    to = Target.of(spark, url, branch, host, store)
    work = near_table(spark, lambda: to.open().compacting())
    while True:
        work, portions = near_table(spark, partial(_portions, work, to.pieces))
        if not portions:
            break
        work = near_table(spark, partial(_taken, work, in_tasks(spark, join, portions)))
    near_table(spark, partial(_gathered, work))


@checked
def recluster(
    spark: SparkSession,
    url: str,
    depth: int = 2,
    step_blocks: int = STEP_BLOCKS,
    step_bytes: int = STEP_BYTES,
    passes: int = PASSES,
    progress: Progress | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Sort blocks that overlap by the clustering key; see ``Table.recluster``.

    Each task sorts a group of blocks that has none in common with another's, and the groups of a round are one commit.
    So executors need the memory of a step for each task that they run at a time.
    """
    to, steps = Target.of(spark, url, branch, host, store), 0
    work = near_table(spark, lambda: to.open().reclustering(depth, step_blocks, step_bytes, passes))
    while True:
        work, portions = near_table(spark, partial(_portions, work, slots_of(spark)))
        if not portions:
            break
        done = in_tasks(spark, sort, portions)
        work = near_table(spark, partial(_taken, work, done))
        for step in told(done, steps):
            steps = step.number
            if progress is not None:
                progress(step)


def _portions(work: Rounds, pieces: int) -> tuple[Rounds, list[Any]]:
    portions = work.portions(pieces)
    return work, portions


def _taken(work: Rounds, done: Sequence[Any]) -> Rounds:
    work.take(done)
    return work


def _gathered(work: Joiner) -> None:
    work.finish()


def _staging(work: Work, names: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        yield answered(lambda: stage(work.stored, work.building, named, work.condition))

    return run


def _done(spark: SparkSession, work: Work) -> None:
    done = in_tasks(spark, rewrite, work.portions)
    near_table(spark, partial(_finish, work, done))


def _finish(work: Work, done: Sequence[Rewritten]) -> None:
    work.finish(done)
