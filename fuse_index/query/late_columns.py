"""Columns that the condition does not look at: read late, for the rows that matched, of many blocks at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_storage import ScanUnits, StoredTable

_MAX_BATCHED_BLOCKS = 64
_MAX_BATCHED_ROWS = 1 << 20
"""Rows that are decoded at a time, as many as a block has by default."""
_MAX_MASKED_ROWS = 1 << 24
"""Rows of blocks that wait, of each of which a byte says whether it matched."""
_MAX_PAGE_ROWS = 8_192
"""Rows that are decoded for one that matched, where a table does not say otherwise."""


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
