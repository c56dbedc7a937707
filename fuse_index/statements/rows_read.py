"""Whether the rows that a change follows from are still as they were read, after hot commits of others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fuse_storage as storage
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import full_scan_plan
from fuse_index.query.scan import Scan
from fuse_storage import StoredTable


@dataclass
class RowsRead:
    """The rows that a change follows from, as they are in the state ``table``.

    ``keys``: of these rows, and of all that the change puts or deletes; the key's columns. ``selects``: whether the
    change is of the rows that ``predicate`` (None: of all) is true on, so that one more of them would matter.
    ``whole``: numbers of blocks of the base, int64, shape (n,), of which all rows that count belong to them, unread.
    """

    table: StoredTable
    keys: pa.Table
    engine: Engine
    selects: bool = False
    predicate: Predicate | None = None
    whole: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def still_hold(self, head: StoredTable) -> bool:
        """Whether what hot commits since then put or deleted is of other keys, and of rows that were not selected.

        False, too, after any other commit. Reads the hot blocks that came, and the keys of whole blocks that may have
        one of theirs. Raises StorageError.
        """
        if head.snapshot.schema != self.table.snapshot.schema:
            return False
        came = storage.hot_keys_since(head.segments(), self.table.snapshot)
        if came is None or storage.SoughtKeys(self._own_keys).rows_in(came.keys.combine_chunks()).any():
            return False
        if self.selects and len(came.blocks):
            tail = head.blocks([len(head.segments()) - 1])
            blocks = tail.take(np.flatnonzero(np.isin(tail.ids, came.blocks)))
            plan = full_scan_plan(head, self.predicate, self.engine.context, blocks)
            if Scan(plan, head.snapshot.key, self.engine.host.functions, limit=1).to_arrow().num_rows:
                return False
        if self._is_one_hidden(came.keys, head):
            return False
        self.table = head
        return True

    def _is_one_hidden(self, keys: pa.Table, head: StoredTable) -> bool:
        """Whether keys that hot commits put or deleted are of rows of the whole blocks, which count no longer then."""
        if not len(self.whole):
            return False
        blocks = self.table.blocks().take(self.whole)
        bounds = [blocks.statistics(column_id) for column_id in head.snapshot.key_ids]
        if not storage.SoughtKeys(keys).may_be_in(bounds, len(blocks)).any():
            return False
        return not np.array_equal(blocks.live_row_counts, head.blocks().take(self.whole).live_row_counts)

    @property
    def _own_keys(self) -> pa.Table:
        return storage.key_table(self.keys, self.table.snapshot.key)
