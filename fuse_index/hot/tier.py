"""Tiering: the rows of the tail's oldest commits become blocks of full size, sorted and indexed, in one commit.

It changes no row, and blocks that are as it would write them stay where they lie. Any number of tierers may run: of two
that took the same blocks one commits, and the other finds nothing left to do. Hot commits that come meanwhile stay in
the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.hot.tier_by_key import tier_by_key
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.registry import Host
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask, rewrite_partition_limit
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import BlockReplacement, Conflict, StoredTable

_ATTEMPTS = 3
"""How often a tierer takes what is there anew, after others changed what it had taken."""
_DEFAULT_BLOCK_ROWS = 1_000_000


@dataclass
class TierJob:
    """The ``RewriteJob`` of tiering: one commit. Picklable. With a primary key it is one task (see ``tier_by_key``).

    ``table``: the state whose tail is taken. ``min_age``: of the commits that are taken; all if None. ``attempts``: how
    often it may take what is there, if others change it meanwhile.
    """

    table: StoredTable
    builders: tuple[IndexBuilder, ...]
    min_age: timedelta | None = None
    attempts: int = _ATTEMPTS

    def plan_tasks(self, max_tasks: int = 1) -> list[RewriteTask]:
        """Divide the oldest of the tail among tasks that have rows for a block at least, if there are several."""
        base, times = self.table.segments().base_block_count, storage.tail_times(self.table.store, self.table.snapshot)
        count = len(list(takewhile(self._is_due, times)))
        if storage.is_keyed(self.table.snapshot):
            return [RewriteTask((tuple(range(count)),))] if count else []
        numbers = np.arange(base, base + count)
        rows = int(self.table.blocks().take(numbers).row_counts.sum())
        full = int(self.table.snapshot.properties.get("block_rows", _DEFAULT_BLOCK_ROWS))
        shares = np.array_split(numbers, max(1, min(max_tasks, count, rows // full)))
        return [RewriteTask((tuple(share.tolist()),)) for share in shares if len(share)]

    def _is_due(self, time: datetime) -> bool:
        """Whether a commit is old enough; one that is yet to be was made by a clock that tells nothing of its age."""
        return self.min_age is None or not -self.min_age < datetime.now(UTC) - time < self.min_age

    def run(self, task: RewriteTask, on_block: Callable[[], None] | None = None) -> RewriteOutcome:
        """Write the rows of a task, sorted and indexed. Raises StorageError; then nothing of it stays.

        Where a block would have the very bytes of a hot one, that one becomes the block. So of rows without an order
        the hot blocks that compaction would leave alone are written apart, after all smaller ones.
        """
        if storage.is_keyed(self.table.snapshot):
            return tier_by_key(self.table, self.builders, task.block_numbers, on_block)
        table, key = self.table, ClusterKey.from_snapshot(self.table.snapshot)
        base, files = table.segments().base_block_count, storage.tail_files(table.store, table.snapshot)
        with table.writer(self.builders, max_partitions=rewrite_partition_limit(table)) as writer:
            numbers = np.array(task.block_numbers, np.int64)
            blocks = table.blocks().take(numbers)  # so that nothing is read of those of the base
            is_large = blocks.row_counts * 2 >= writer.options.block_rows
            apart = int(is_large.sum()) if key is None else 0
            blocks = blocks.take(np.argsort(is_large, kind="stable")) if apart else blocks
            writer.reuse_files(files[number - base] for number in numbers.tolist())

            def read_rows() -> Iterator[pa.Table]:
                for position, part in enumerate(prefetch_blocks(table, blocks, range(len(blocks)))):
                    if position >= len(blocks) - apart:
                        writer.end_block()
                    yield part
                    if on_block is not None:
                        on_block()

            write_sorted_runs(writer, read_rows(), key)
            staged = writer.finish()
        replacement = BlockReplacement(tuple(blocks.ids), writer.block_count)
        segments = frozenset(table.segments().segments_containing(blocks.ordinals))
        return RewriteOutcome((replacement,), tuple(staged), segments)

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Commit what all tasks wrote; True if others had taken some of it. Raises Conflict at last, StorageError."""
        if not outcomes:
            return False
        total = RewriteOutcome.combine(outcomes)
        transaction = self.table.transaction(self.builders)
        action = storage.ReplaceBlocks(
            total.replacements,
            total.staged,
            total.affected_segment_ids,
            name="tier",
            same_rows=True,
            by_key=storage.is_keyed(self.table.snapshot),
        )
        transaction.stage(action, total.staged)
        try:
            self.table = transaction.commit("tier")
            return False
        except Conflict:
            self.attempts -= 1
            if self.attempts <= 0:
                raise
            self.table = self.table.refresh()
            return True


def tier_table(
    table: StoredTable, host: Host, min_age: timedelta | None = None, progress: ProgressCallback | None = None
) -> StoredTable:
    """Tier what a state has in its tail; gives the table after it, or as it is if there is nothing to do.

    ``progress`` is told how many hot blocks are done, and of how many. Raises StorageError.
    """
    job = TierJob(table, index_builders(table.snapshot, host), min_age)
    while True:
        tasks = job.plan_tasks()
        reports = _Progress(progress, sum(len(task.block_numbers) for task in tasks))
        if not job.commit([job.run(task, reports.add_one) for task in tasks]):
            return job.table


@dataclass
class _Progress:
    callback: ProgressCallback | None
    total: int
    done: int = 0

    def add_one(self) -> None:
        self.done += 1
        if self.callback is not None:
            self.callback(self.done, self.total)
