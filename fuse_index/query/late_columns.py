"""Matching rows of a plan: what the condition looks at is read first, other columns late, of many blocks at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.prefetch import join_hot_blocks, prefetch_items
from fuse_storage import ScanUnits, StoredTable, pack_mask, unpack_mask

_MAX_BATCHED_BLOCKS = 64
_MAX_BATCHED_ROWS = 1 << 20
"""Rows that are decoded at a time, as many as a block has by default."""
_MAX_MASKED_ROWS = 1 << 24
"""Rows of blocks that wait, of each of which a byte says whether it matched."""
_MAX_PAGE_ROWS = 8_192
"""Rows that are decoded for one that matched, where a table does not say otherwise."""


_MAX_PREFETCHED_SCAN_BLOCKS = 2
"""Blocks that are read while one is being used."""
_MAX_LATE_ROWS = 2_000
"""Matching rows of a block up to which its other columns are read together with those of other blocks."""

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PlanReader:
    """Reads the rows that a plan keeps, and on which its predicate is TRUE.

    ``limit``: stop after so many rows. ``strict``: whether a cast on which Spark raises is an OpaqueError where its row
    is read; else it has no value.
    """

    plan: ScanPlan[ScanUnits]
    functions: Mapping[str, Function]
    limit: int | None
    strict: bool

    @cached_property
    def filter_columns(self) -> list[str]:
        """The columns that the predicate looks at: found once, since it may have ten thousand terms."""
        return column_names(predicate_terms(self.plan.predicate))

    def count(self) -> int:
        """Count the rows; those of zones on which every row matches, and those that an index knows, are not read."""
        unread_zones = self.plan.zones & self.plan.always_matching_zones
        count = int(self.plan.blocks.zone_rows[unread_zones].sum())
        for zone, mask in self.plan.row_masks.items():
            if unread_zones[zone]:
                count += int(np.count_nonzero(mask)) - int(self.plan.blocks.zone_rows[zone])
        count += sum(len(rows) for rows in self.tables((), self.plan.zones & ~self.plan.always_matching_zones, count))
        return count if self.limit is None else min(count, self.limit)

    def tables(self, columns: Sequence[str], zones: _Mask | None = None, row_count: int = 0) -> Iterator[pa.Table]:
        """Yield matching rows, a table per block, reading a little ahead; stops after ``limit`` rows.

        ``zones``: which zones of all to read, bool of shape (zones,), by default those of the plan. ``row_count``: rows
        that count for the limit already.
        """
        zone_mask = self.plan.zones if zones is None else zones
        blocks = [block for block in range(len(self.plan.blocks)) if zone_mask[self._zones_of(block)].any()]
        if self.limit is not None and row_count >= self.limit:
            return
        depth, together = 1, [[block] for block in blocks]
        if self.limit is None:
            depth = _MAX_PREFETCHED_SCAN_BLOCKS
            if columns or self.filter_columns:
                together = join_hot_blocks(self.plan.blocks, blocks)
        found = prefetch_items(lambda each: self._matching_rows_of(each, columns, zone_mask), together, depth)
        others = [] if self.plan.predicate is None else [name for name in columns if name not in self.filter_columns]
        for rows in read_late_columns(self.plan.table, self.plan.blocks, others, found):
            rows = rows.select(list(columns))
            row_count += len(rows)
            yield rows
            if self.limit is not None and row_count >= self.limit:
                return

    def _zones_of(self, block: int) -> slice:
        return slice(int(self.plan.blocks.zone_offsets[block]), int(self.plan.blocks.zone_offsets[block + 1]))

    def _matching_rows_of(
        self, blocks: Sequence[int], columns: Sequence[str], zone_mask: _Mask
    ) -> MatchingRows | pa.Table:
        """Read the matching rows of several blocks of few rows, which are filtered at once, or of one.

        ``zone_mask``: bool, one value per zone of all blocks.
        """
        if len(blocks) == 1:
            return self._matching_rows(blocks[0], columns, zone_mask)
        chosen = list[tuple[int, list[int], _Mask | None]]()
        names = list(dict.fromkeys([*columns, *self.filter_columns]))
        always = True
        for block in blocks:
            span = self._zones_of(block)
            zones = np.flatnonzero(zone_mask[span])
            chosen.append((block, zones.tolist(), self._row_mask(span.start + zones)))
            always &= bool(self.plan.always_matching_zones[span][zones].all())
        rows = pa.concat_tables(self.plan.table.read_blocks(self.plan.blocks, names, chosen))
        if not always:
            assert self.plan.predicate is not None
            truth = evaluate(self.plan.predicate, rows, self.plan.context, self.functions, self.strict)
            rows = rows.filter(truth.fill_null(False))
        return rows.select(list(columns))

    def _matching_rows(self, block: int, columns: Sequence[str], zone_mask: _Mask) -> MatchingRows | pa.Table:
        """Read the matching rows of one block, or, if other columns are read of few of them, what is filtered by.

        ``zone_mask``: bool, one value per zone of all blocks.
        """
        span = self._zones_of(block)
        zones = np.flatnonzero(zone_mask[span])
        row_mask = self._row_mask(span.start + zones)
        if self.plan.always_matching_zones[span][zones].all():
            return self._read(block, columns, zones, row_mask)
        found = self._filtered_rows(block, zones, row_mask)
        others = [name for name in columns if name not in self.filter_columns]
        if not others:
            return found.rows
        if self.limit is None and len(found.rows) <= _MAX_LATE_ROWS:
            return found
        return with_columns_of(found.rows, self._read(block, others, zones, found.row_mask))

    def _filtered_rows(self, block: int, zones: npt.NDArray[np.int64], row_mask: _Mask | None) -> MatchingRows:
        """Read the columns that the predicate looks at, of rows on which it is TRUE.

        ``zones``: int64 indices of the block's zones; ``row_mask``: bool, one value per row of these zones.
        """
        assert self.plan.predicate is not None
        rows = self._read(block, self.filter_columns, zones, row_mask)
        matches = unpack_mask(evaluate(self.plan.predicate, rows, self.plan.context, self.functions, self.strict))
        found = rows.filter(pack_mask(matches))
        if row_mask is not None:  # matches are of the rows that were read: back to all rows of the zones
            matching_rows = np.zeros(len(row_mask), np.bool_)
            matching_rows[row_mask] = matches
            matches = matching_rows
        return MatchingRows(block, zones.tolist(), matches, found)

    def _read(self, block: int, columns: Sequence[str], zones: npt.NDArray[np.int64], rows: _Mask | None) -> pa.Table:
        return self.plan.table.read_block(self.plan.blocks, block, list(columns), [int(zone) for zone in zones], rows)

    def _row_mask(self, zones: npt.NDArray[np.int64]) -> _Mask | None:
        """Say of each row of these zones whether it may match: bool of shape (rows,); None if no index knew rows.

        ``zones``: int64 indices of zones of all blocks.
        """
        if not any(int(zone) in self.plan.row_masks for zone in zones):
            return None
        sizes = self.plan.blocks.zone_rows
        return np.concatenate([self.plan.row_masks.get(int(zone), np.ones(sizes[zone], np.bool_)) for zone in zones])


@dataclass(frozen=True)
class MatchingRows:
    """Rows of a block that matched, as far as they have been read: the columns that the condition looks at.

    ``row_mask``: bool, shape (rows of these zones,), True where the row matched.
    """

    block: int
    zones: Sequence[int]
    row_mask: npt.NDArray[np.bool_]
    rows: pa.Table

    @property
    def decoded_rows(self) -> int:
        """The most rows that are decoded to read other columns of them."""
        return min(len(self.row_mask), len(self.rows) * _MAX_PAGE_ROWS)


def read_late_columns(
    table: StoredTable, blocks: ScanUnits, columns: Sequence[str], found: Iterable[MatchingRows | pa.Table]
) -> Iterator[pa.Table]:
    """Yield the rows with these columns besides, in their order; rows that are tables already, as they are.

    Those of up to 64 blocks come together.
    """
    waiting = _Waiting()
    for each in found:
        if isinstance(each, MatchingRows) and waiting.has_room_for(each):
            waiting.add(each)
            continue
        if waiting.found:
            yield _read_together(table, blocks, columns, waiting.found)
            waiting = _Waiting()
        if isinstance(each, MatchingRows):
            waiting.add(each)
        else:
            yield each
    if waiting.found:
        yield _read_together(table, blocks, columns, waiting.found)


@dataclass
class _Waiting:
    """Matching rows that are read together, and what is bounded of them."""

    found: list[MatchingRows] = field(default_factory=list)
    masked_rows: int = 0
    decoded_rows: int = 0

    def has_room_for(self, rows: MatchingRows) -> bool:
        return (
            len(self.found) < _MAX_BATCHED_BLOCKS
            and self.masked_rows + len(rows.row_mask) <= _MAX_MASKED_ROWS
            and self.decoded_rows + rows.decoded_rows <= _MAX_BATCHED_ROWS
        )

    def add(self, rows: MatchingRows) -> None:
        self.found.append(rows)
        self.masked_rows += len(rows.row_mask)
        self.decoded_rows += rows.decoded_rows


def _read_together(
    table: StoredTable, blocks: ScanUnits, columns: Sequence[str], waiting: Sequence[MatchingRows]
) -> pa.Table:
    found = [each for each in waiting if len(each.rows)]
    rows = pa.concat_tables([each.rows for each in found or waiting])
    return with_columns_of(
        rows, table.read_rows(blocks, columns, [(each.block, each.zones, each.row_mask) for each in found or waiting])
    )


def with_columns_of(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows with the columns of another table besides, which has as many."""
    return pa.Table.from_arrays([*rows.columns, *others.columns], schema=pa.schema([*rows.schema, *others.schema]))
