"""One change of rows: planned, done in portions, and committed. Each step may be done in another process than the one
before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

import fuse_storage as storage
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.operations.merge_match import MergeRows
from fuse_index.operations.row_edits import (
    DeleteRows,
    RewriteResult,
    RewriteTask,
    RowCondition,
    RowEdit,
    add_count,
    stage_rows,
)
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_storage import BlockFrame, BlockReplacement, StagedSegment


@dataclass
class RewriteJob:
    """What goes, what is to be rewritten and what is added. Picklable if its edits are.

    ``condition``: which rows it is about. ``portions``: what is to be rewritten. ``match``: a source of which the rows
    that match none are to be added at the end. ``touched``: ids of the segments in which blocks are replaced.
    """

    operation: str
    stored: storage.StoredTable
    condition: RowCondition
    builders: tuple[IndexBuilder, ...]
    tasks: list[RewriteTask] = field(default_factory=list)
    merge_rows: MergeRows | None = None
    replacements: list[BlockReplacement] = field(default_factory=list)
    staged: list[StagedSegment] = field(default_factory=list)
    added: list[StagedSegment] = field(default_factory=list)
    affected_segment_ids: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    commit_id: str = field(default_factory=storage.new_id)

    def plan_delete(self, task_count: int = 1) -> None:
        """Rows that the condition is true on are to go; blocks that are known to hold no other go unread."""
        found = self._plan(self.stored)
        full = found.always_matching_blocks
        for number in np.flatnonzero(full).tolist():
            self.replacements.append(BlockReplacement((found.blocks.ids[number],), 0))
            self.affected_segment_ids |= self.stored.segments().segments_containing([found.blocks.ordinals[number]])
            add_count(self.counts, "deleted_rows", int(found.blocks.row_counts[number]))
        self._add_tasks(found.take(np.flatnonzero(~full)), DeleteRows(self.condition), task_count)

    def plan_rewrite(self, edit: RowEdit, task_count: int = 1) -> None:
        """Rows that the condition may be true on are to be edited."""
        self._add_tasks(self._plan(self.stored), edit, task_count)

    def add_staged(self, staged: Sequence[StagedSegment]) -> None:
        """Rows that are added."""
        self.added += staged
        if inserted := sum(segment.row_count for segment in staged):
            add_count(self.counts, "inserted_rows", inserted)

    def commit_results(self, results: Sequence[RewriteResult]) -> storage.StoredTable:
        """Commit, with what became of the portions, in their order. Raises Conflict, StorageError.

        A copy of this work may do it a second time: the commit stays one.
        """
        for each in results:
            self.replacements += each.replacements
            self.staged += each.staged
            self.affected_segment_ids |= each.affected_segment_ids
            for name, rows in each.counts.items():
                add_count(self.counts, name, rows)
            if self.merge_rows is not None and each.matched_rows is not None:
                self.merge_rows.matched_rows |= each.matched_rows
        if self.merge_rows is not None:
            self.add_staged(stage_rows(self.stored, self.builders, self.merge_rows.unmatched_rows()))
        transaction = self.stored.transaction(self.builders, self.commit_id)
        if self.replacements or self.added:
            transaction.replace_blocks(
                self.replacements, self.staged, self.affected_segment_ids, self._conflicting_blocks, self.operation
            )
            transaction.append(self.added)
        return transaction.commit(self.operation, summary=self.counts)

    def _plan(self, table: storage.StoredTable) -> ScanPlan[BlockFrame]:
        return plan_scan(table, self.condition.predicate, self.condition.engine)

    def _add_tasks(self, found: ScanPlan[BlockFrame], edit: RowEdit, pieces: int) -> None:
        """About so many portions of blocks that stand near each other."""
        for numbers in np.array_split(found.blocks.ordinals, max(1, min(pieces, len(found.blocks)))):
            if len(numbers):
                self.tasks.append(RewriteTask(self.stored, self.builders, edit, tuple(numbers.tolist())))

    def _conflicting_blocks(self, snapshot_id: str) -> Collection[str]:
        """Blocks of a later snapshot that may hold rows that matter."""
        return frozenset(self._plan(self.stored.at(snapshot_id)).blocks.ids)
