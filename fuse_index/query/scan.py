"""Reading what a plan kept: needed columns of needed zones, filtered by the oracle where votes left doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves
from fuse_index.pruning.explanation import Explanation
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.prefetch import prefetch_items
from fuse_storage import ScanUnits

if TYPE_CHECKING:
    import pandas

_Mask = npt.NDArray[np.bool_]

SCAN_PREFETCHED_BLOCKS = 2
"""Blocks that are read while one is being used."""


@dataclass(frozen=True)
class Scan:
    """Rows of one snapshot that match a predicate.

    ``columns`` are top-level logical names, in the order wanted; ``limit`` stops the reading as soon as so many rows
    are found. Nothing is read before one of the methods is called.
    """

    plan: ScanPlan[ScanUnits]
    columns: tuple[str, ...]
    functions: Mapping[str, Function]
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        whole = self.plan.table.snapshot.schema.arrow
        return pa.schema([whole.field(name) for name in self.columns])

    @property
    def explanation(self) -> Explanation:
        return self.plan.explanation

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches of matching rows, block after block."""
        left = self.limit
        for rows in self.tables():
            if left is not None:
                rows = rows.slice(0, left)
                left -= len(rows)
            yield from (batch for batch in rows.to_batches() if len(batch))
            if left == 0:
                return

    def tables(self) -> Iterator[pa.Table]:
        """Matching rows, a table per block; those of the last may be more than ``limit``."""
        return self._tables(self.columns)

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """How many rows match. Zones on which every row does, and rows that an index knows, are counted unread."""
        certain = self.plan.zones & self.plan.always_matching_zones
        known = int(self.plan.blocks.zone_rows[certain].sum())
        for zone, mask in self.plan.row_masks.items():
            if certain[zone]:
                known += int(np.count_nonzero(mask)) - int(self.plan.blocks.zone_rows[zone])
        found = known + sum(
            len(rows) for rows in self._tables((), self.plan.zones & ~self.plan.always_matching_zones, known)
        )
        return found if self.limit is None else min(found, self.limit)

    def _tables(self, columns: Sequence[str], zones: _Mask | None = None, found: int = 0) -> Iterator[pa.Table]:
        """Matching rows, a table per block, reading a little ahead; stops after ``limit`` rows."""
        wanted = self.plan.zones if zones is None else zones
        blocks = [block for block in range(len(self.plan.blocks)) if wanted[self._zones_of(block)].any()]
        if self.limit is not None and found >= self.limit:
            return
        for rows in prefetch_items(
            lambda block: self._block(block, columns, wanted),
            blocks,
            SCAN_PREFETCHED_BLOCKS if self.limit is None else 1,
        ):
            found += len(rows)
            yield rows
            if self.limit is not None and found >= self.limit:
                return

    def _zones_of(self, block: int) -> slice:
        return slice(int(self.plan.blocks.zone_offsets[block]), int(self.plan.blocks.zone_offsets[block + 1]))

    def _block(self, block: int, columns: Sequence[str], wanted: _Mask) -> pa.Table:
        """The matching rows of one block."""
        span = self._zones_of(block)
        zones = np.flatnonzero(wanted[span])
        known = self._known_rows(span.start + zones)
        if self.plan.always_matching_zones[span][zones].all():
            return self._read(block, columns, zones, known)
        return self._filtered(block, columns, zones, known)

    def _filtered(
        self, block: int, columns: Sequence[str], zones: npt.NDArray[np.int64], known: _Mask | None
    ) -> pa.Table:
        """Rows that the oracle finds TRUE. What it looks at is read first, the rest only for the rows that it found."""
        seen = self._filtered_on()
        rows = self._read(block, seen, zones, known)
        assert self.plan.predicate is not None
        truth = evaluate(self.plan.predicate, rows, self.plan.context, self.functions).fill_null(False)
        rows = rows.filter(truth)
        rest = [name for name in columns if name not in seen]
        if rest:
            found = truth.to_numpy(zero_copy_only=False)
            if known is not None:
                found, among = np.zeros(len(known), np.bool_), found
                found[known] = among
            more = self._read(block, rest, zones, found)
            for name in rest:
                rows = rows.append_column(more.schema.field(name), more.column(name))
        return rows.select(list(columns))

    def _read(self, block: int, columns: Sequence[str], zones: npt.NDArray[np.int64], rows: _Mask | None) -> pa.Table:
        return self.plan.table.read_block(self.plan.blocks, block, list(columns), [int(zone) for zone in zones], rows)

    def _known_rows(self, zones: npt.NDArray[np.int64]) -> _Mask | None:
        """Rows of these zones that may match, where an index knew rows at all."""
        if not any(int(zone) in self.plan.row_masks for zone in zones):
            return None
        sizes = self.plan.blocks.zone_rows
        return np.concatenate([self.plan.row_masks.get(int(zone), np.ones(sizes[zone], np.bool_)) for zone in zones])

    def _filtered_on(self) -> list[str]:
        """Top-level columns that the residual filter needs."""
        if self.plan.predicate is None:
            return []
        terms = (term for leaf in predicate_leaves(self.plan.predicate) for term in leaf_terms(leaf))
        return list(dict.fromkeys(column.path[0] for term in terms for column in columns_of(term)))
