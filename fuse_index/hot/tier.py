"""Tiering: the rows of the tail's oldest commits become blocks of full size, sorted and indexed, in one commit.

It changes no row, and blocks that are as it would write them stay where they lie. Any number of tierers may run: of two
that took the same blocks one commits, and the other finds nothing left to do. Hot commits that come meanwhile stay in
the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import fuse_storage as storage
from fuse_index.hot.tier_by_key import KeyedTiering
from fuse_index.hot.tier_heap import HeapTiering
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.registry import Host
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask
from fuse_storage import Conflict, StoredTable

_ATTEMPTS = 3
"""How often a tierer takes what is there anew, after others changed what it had taken."""


@dataclass
class TierJob:
    """The ``RewriteJob`` of tiering: one commit. Picklable. With a primary key it is one task (see ``KeyedTiering``).

    ``table``: the state whose tail is taken. ``min_age``: of the commits that are taken; all if None. ``attempts``: how
    often it may take what is there, if others change it meanwhile.
    """

    table: StoredTable
    builders: tuple[IndexBuilder, ...]
    min_age: timedelta | None = None
    attempts: int = _ATTEMPTS

    def plan_tasks(self, max_tasks: int = 1) -> list[RewriteTask]:
        """Divide the oldest of the tail among tasks that have rows for a block at least, if there are several."""
        times = storage.tail_times(self.table.store, self.table.snapshot)
        count = len(list(takewhile(self._is_due, times)))
        return self._tiering.divide(self.table, count, max_tasks) if count else []

    def _is_due(self, time: datetime) -> bool:
        """Whether a commit is old enough; one that is yet to be was made by a clock that tells nothing of its age."""
        return self.min_age is None or not -self.min_age < datetime.now(UTC) - time < self.min_age

    def run(self, task: RewriteTask, on_block: Callable[[], None] = lambda: None) -> RewriteOutcome:
        """Write the rows of a task, sorted and indexed. Raises StorageError; then nothing of it stays."""
        return self._tiering.write(self.table, self.builders, task.block_numbers, on_block)

    @property
    def _tiering(self) -> HeapTiering | KeyedTiering:
        return KeyedTiering() if storage.is_keyed(self.table.snapshot) else HeapTiering()

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
            by_key=self._tiering.by_key,
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
