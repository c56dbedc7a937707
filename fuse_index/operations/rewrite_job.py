"""One change of rows: planned, done in portions, and committed. Each step may be done in another process than the one
before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

import fuse_storage as storage
from fuse_index.indexes.builder import Builder
from fuse_index.operations.merge_match import Match
from fuse_index.operations.row_edits import Condition, Edit, Portion, Remove, Rewritten, count, stage
from fuse_index.pruning.planner import Plan, plan
from fuse_storage import StagedSegment, Swap


@dataclass
class Work:
    """What goes, what is to be rewritten and what is added. Picklable if its edits are.

    ``condition``: which rows it is about. ``portions``: what is to be rewritten. ``match``: a source of which the rows
    that match none are to be added at the end. ``touched``: ids of the segments in which blocks are replaced.
    """

    operation: str
    stored: storage.Table
    condition: Condition
    building: tuple[Builder, ...]
    portions: list[Portion] = field(default_factory=list)
    match: Match | None = None
    swaps: list[Swap] = field(default_factory=list)
    staged: list[StagedSegment] = field(default_factory=list)
    added: list[StagedSegment] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    commit_id: str = field(default_factory=storage.new_id)

    def remove(self, pieces: int = 1) -> None:
        """Rows that the condition is true on are to go; blocks that are known to hold no other go unread."""
        found = self._plan(self.stored)
        full = found.fully
        for number in np.flatnonzero(full).tolist():
            self.swaps.append(Swap((found.blocks.ids[number],), 0))
            self.touched |= self.stored.segments().holding([found.blocks.ordinals[number]])
            count(self.counts, "deleted_rows", int(found.blocks.row_counts[number]))
        self._cut(found.take(np.flatnonzero(~full)), Remove(self.condition), pieces)

    def rewrite(self, edit: Edit, pieces: int = 1) -> None:
        """Rows that the condition may be true on are to be edited."""
        self._cut(self._plan(self.stored), edit, pieces)

    def adopt(self, staged: Sequence[StagedSegment]) -> None:
        """Rows that are added."""
        self.added += staged
        if inserted := sum(segment.row_count for segment in staged):
            count(self.counts, "inserted_rows", inserted)

    def finish(self, done: Sequence[Rewritten]) -> storage.Table:
        """Commit, with what became of the portions, in their order. Raises Conflict, StorageError.

        A copy of this work may do it a second time: the commit stays one.
        """
        for each in done:
            self.swaps += each.swaps
            self.staged += each.staged
            self.touched |= each.touched
            for name, rows in each.counts.items():
                count(self.counts, name, rows)
            if self.match is not None and each.seen is not None:
                self.match.seen |= each.seen
        if self.match is not None:
            self.adopt(stage(self.stored, self.building, self.match.left()))
        transaction = self.stored.transaction(self.building, self.commit_id)
        if self.swaps or self.added:
            transaction.rewrite(self.swaps, self.staged, self.touched, self._unseen, self.operation)
            transaction.append(self.added)
        return transaction.commit(self.operation, summary=self.counts)

    def _plan(self, table: storage.Table) -> Plan:
        return plan(table, self.condition.predicate, self.condition.host, self.condition.context)

    def _cut(self, found: Plan, edit: Edit, pieces: int) -> None:
        """About so many portions of blocks that stand near each other."""
        for numbers in np.array_split(found.blocks.ordinals, max(1, min(pieces, len(found.blocks)))):
            if len(numbers):
                self.portions.append(Portion(self.stored, self.building, edit, tuple(numbers.tolist())))

    def _unseen(self, snapshot_id: str) -> Collection[str]:
        """Blocks of a later snapshot that may hold rows that matter."""
        return frozenset(self._plan(self.stored.at(snapshot_id)).blocks.ids)
