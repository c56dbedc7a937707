"""Row groups of a foreign file that hold zones of a block, where zones are parts of row groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuse_storage.parquet.pages import RowMask


def are_parts(zone_rows: Sequence[int], group_rows: Sequence[int]) -> bool:
    """Whether zones of so many rows divide row groups of so many: none is in two."""
    zone_ends, group_ends = np.cumsum(zone_rows), np.cumsum(group_rows)
    return bool(np.isin(group_ends, zone_ends).all()) and zone_ends[-1:].tolist() == group_ends[-1:].tolist()


def rows_in_groups(
    zone_rows: Sequence[int], group_rows: Sequence[int], zones: Sequence[int], row_mask: RowMask | None
) -> tuple[list[int], RowMask]:
    """The row groups that hold these zones, and which of their rows are wanted: bool, shape (rows of these groups,).

    ``zones``: by number, ascending. ``row_mask``: bool, shape (rows of these zones,), True where the row is wanted;
    None: all are.

    >>> groups, wanted = rows_in_groups([2, 2, 1, 3], [4, 4], [1, 3], None)
    >>> groups, wanted.astype(int).tolist()
    ([0, 1], [0, 0, 1, 1, 0, 1, 1, 1])
    """
    counts, group_ends = np.array(zone_rows, np.int64)[list(zones)], np.cumsum(group_rows)
    starts = (np.cumsum(zone_rows) - zone_rows)[list(zones)]
    groups, owners = np.unique(np.searchsorted(group_ends, starts, side="right"), return_inverse=True)
    chosen = np.array(group_rows, np.int64)[groups]
    shifts = np.cumsum(chosen) - group_ends[groups]  # from a row of the file to one of these groups
    wanted, first = np.zeros(int(chosen.sum()), np.bool_), 0
    for start, count in zip((starts + shifts[owners]).tolist(), counts.tolist(), strict=True):
        wanted[start : start + count] = True if row_mask is None else row_mask[first : first + count]
        first += count
    return groups.tolist(), wanted
