"""The one shape of all operations that put new blocks in place of others: plan tasks, run them anywhere, commit.

In: a snapshot, and what an operation makes of its rows. Out: tasks, what they wrote, and a commit. Delete, update,
overwrite, merge, compact and recluster are jobs; a further operation is one more class. Knows none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fuse_storage import BlockReplacement, PartitionSpec, StagedSegment, StoredTable, WriteOptions

RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Blocks that one task reads, by their numbers in the snapshot of the job. Small and picklable.

    ``groups``: the blocks of a group are replaced together, by the blocks that are made of their rows.
    """

    groups: tuple[tuple[int, ...], ...]

    @property
    def block_numbers(self) -> list[int]:
        """The numbers of all blocks, group after group."""
        return [number for group in self.groups for number in group]


@dataclass(frozen=True, slots=True)
class RewriteOutcome:
    """What one task wrote; nobody sees it until it is committed. Small and picklable.

    ``replacements``: which blocks go, and how many of the staged ones come in their place. ``added``: blocks of rows
    that come in place of others, and in no block's. ``affected_segment_ids``:
    segments in which blocks are replaced. ``unimproved_ids``: blocks that were read, and that a rewrite does not
    improve. ``counts``: rows by what became of them, such as ``deleted_rows``. ``matched_rows``: numbers of the rows of
    a merge's source that match a row of these blocks, ascending, int64.
    """

    replacements: tuple[BlockReplacement, ...] = ()
    staged: tuple[StagedSegment, ...] = ()
    affected_segment_ids: frozenset[str] = frozenset()
    unimproved_ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    matched_rows: RowNumbers = field(default_factory=lambda: np.zeros(0, np.int64))
    added: tuple[StagedSegment, ...] = ()

    @staticmethod
    def combine(outcomes: Sequence[RewriteOutcome]) -> RewriteOutcome:
        """Add up what several tasks wrote, in their order."""
        counts: dict[str, int] = {}
        for outcome in outcomes:
            add_counts(counts, outcome.counts)
        return RewriteOutcome(
            tuple(replacement for outcome in outcomes for replacement in outcome.replacements),
            tuple(segment for outcome in outcomes for segment in outcome.staged),
            frozenset().union(*(outcome.affected_segment_ids for outcome in outcomes)),
            tuple(block_id for outcome in outcomes for block_id in outcome.unimproved_ids),
            counts,
            union_row_numbers([outcome.matched_rows for outcome in outcomes]),
            tuple(segment for outcome in outcomes for segment in outcome.added),
        )


class RewriteJob(Protocol):
    """An operation that rewrites blocks: planned, run in tasks, and committed, until ``commit`` says that it is done.

    Picklable with all that it was told, so each step may be done in another process than the one before; a copy that
    commits a second time makes no second commit. ``table``: as the last commit left it.
    """

    table: StoredTable

    def plan_tasks(self, max_tasks: int = ...) -> list[RewriteTask]:
        """What to run before the next commit, in at most so many tasks; there may be none."""
        ...

    def run(self, task: RewriteTask) -> RewriteOutcome:
        """Write new blocks for a task. Raises StorageError and InputError; then nothing of it stays."""
        ...

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Commit what all planned tasks wrote, in their order. Returns whether to plan again.

        Raises Conflict, StorageError.
        """
        ...


def run_job(job: RewriteJob) -> StoredTable:
    """Run a job in this process, one task at a time. Returns the table as its last commit left it."""
    while job.commit([job.run(task) for task in job.plan_tasks()]):
        pass
    return job.table


def partition_members(table: StoredTable) -> list[RowNumbers]:
    """The blocks of the base by partition: their numbers, ascending, int64, shape (blocks of it,); all in one if none.

    A table without partitions is one, without blocks too.
    """
    base = table.segments().base_block_count
    if PartitionSpec.from_snapshot(table.snapshot) is None:
        return [np.arange(base)]
    _, codes = np.unique(np.array(table.blocks().partitions[:base], np.object_).astype(str), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def rewrite_partition_limit(table: StoredTable) -> int:
    """How many partitions a rewrite may write to: those that rows are of already, and as many more as any write."""
    tail = table.snapshot.tail
    present = table.segments().total_blocks + (0 if tail is None else tail.rows)
    return WriteOptions.from_properties(table.snapshot.properties).max_partitions + present


def add_counts(counts: dict[str, int], more: Mapping[str, int]) -> None:
    """Add numbers of rows to those of the same name."""
    for name, rows in more.items():
        counts[name] = counts.get(name, 0) + rows


def union_row_numbers(parts: Sequence[RowNumbers]) -> RowNumbers:
    """Unite row numbers: each once, ascending. Takes int64 arrays of any lengths; returns int64, shape (n,)."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
