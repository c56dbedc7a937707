"""Deletes from a table with a primary key: blocks of the base that hold rows of the condition alone go unread.

Keys are deleted of all other rows that it is true on: those of the tail, which hide older ones, and those of blocks
that others are in, too. All is one commit, a hot one if no block goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.hot.append import Committed, commit_by_key, commit_with_blocks
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_index.query.scan import Scan
from fuse_index.statements.rows_read import RowsRead
from fuse_storage import BlockFrame, Conflict, StoredTable

_ATTEMPTS = 20
"""How often rows that others moved, or rows beside which they put some, are looked for again."""


@dataclass(frozen=True)
class KeyedDelete:
    """A delete from a table with a primary key, by a condition; of all rows if it is None."""

    predicate: Predicate | None
    engine: Engine
    builders: Sequence[IndexBuilder]

    def run(self, table: StoredTable) -> Committed | None:
        """Delete what the condition is true on in a state; None if there is nothing.

        Others may move these rows meanwhile, and change rows beside them. Raises Conflict
        where rows came that it is true on, or some of these went, and StorageError.
        """
        found = self._find(table)
        for _ in range(_ATTEMPTS):
            if not len(found.whole.blocks) and not len(found.keys):
                return None
            try:
                return self._commit(found)
            except Conflict:
                head = found.table.refresh()
                if head.snapshot.schema != table.snapshot.schema:
                    break
                later = self._find(head)
                if not _keep_rows(found.table, head) and not found.all_keys().equals(later.all_keys()):
                    break
                found = later
        entry = found.table.refresh().entry
        raise Conflict(
            f"rows that this delete read were changed up to {entry}: read them again, and decide again", str(entry)
        )

    def plan_blocks(self, table: StoredTable) -> tuple[ScanPlan[BlockFrame], ScanPlan[BlockFrame]]:
        """Plan of which blocks it reads keys, and which go without being read."""
        plan = plan_scan(table, self.predicate, self.engine)
        is_whole = plan.always_matching_blocks & ~plan.blocks.in_tail
        return plan.take(np.flatnonzero(~is_whole)), plan.take(np.flatnonzero(is_whole))

    def _find(self, table: StoredTable) -> _Matches:
        others, whole = self.plan_blocks(table)
        return _Matches(table, whole, _read_keys(others, self.engine), self.engine)

    def _commit(self, found: _Matches) -> Committed:
        table, blocks = found.table, found.whole.blocks
        read = RowsRead(table, found.keys, self.engine, True, self.predicate, blocks.ordinals)
        if not len(blocks):
            none = table.snapshot.schema.empty_table()
            return commit_by_key(table, self.engine.host, none, found.keys, still_holds=read.still_hold)
        whole = storage.WholeBlocks(
            tuple(blocks.ids),
            table.segments().segments_containing(blocks.ordinals),
            self.builders,
            int(blocks.live_row_counts.sum()),
        )
        return commit_with_blocks(table, self.engine.host, whole, found.keys, read.still_hold)


@dataclass(frozen=True)
class _Matches:
    """What a condition is true on in a state: all rows of the blocks of a plan, and the rows of some keys."""

    table: StoredTable
    whole: ScanPlan[BlockFrame]
    keys: pa.Table
    engine: Engine

    def all_keys(self) -> pa.Table:
        """The keys of all these rows, in their order. Reads those of the blocks."""
        keys = pa.concat_tables([self.keys, _read_keys(self.whole, self.engine)])
        return keys.sort_by([(name, "ascending") for name in keys.column_names])


def _read_keys(plan: ScanPlan[BlockFrame], engine: Engine) -> pa.Table:
    return Scan(plan, plan.table.snapshot.key, engine.host.functions).to_arrow()


def _keep_rows(before: StoredTable, after: StoredTable) -> bool:
    """Whether all commits between two states left all rows as they were."""
    states = [before.snapshot, *(state for _, state in after.commits_since(before.snapshot)())]
    return all(storage.keeps_rows(*pair) for pair in pairwise(states))
