"""Where the zones of a foreign file end: its row groups are divided where pages of many columns end.

A row group of a file that others wrote has a million rows, of which a lookup wants one. Where the file says where its
pages are, votes are on ranges of some ten thousand rows, and the pages of such a range alone are read. Knows no
schema and no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.parquet.footer import FIRST_ZONE_OFFSET, Footer
from fuse_storage.parquet.foreign.footer import OpenedFile
from fuse_storage.parquet.pages import Int64Array
from fuse_storage.statistics import ColumnStatistics

_LEAST_ROWS = 10_000
"""Rows of a zone at least, but for the last of a row group: smaller ones cost more than they save."""
_MOST_ROWS = 20_480
"""Rows of a zone at most, as far as pages end within them: as many as writers put into a page."""


@dataclass(frozen=True, slots=True)
class PageZones:
    """The zones of a file. ``rows``: int64, of each zone. ``groups``: int64, the row group of each, ascending."""

    rows: Int64Array
    groups: Int64Array

    @staticmethod
    def of_groups(row_counts: Sequence[int]) -> PageZones:
        """Each row group as one zone."""
        return PageZones(np.array(row_counts, np.int64), np.arange(len(row_counts)))

    @staticmethod
    def of_pages(footer: Footer) -> PageZones:
        """Row groups divided where pages end; those of which no pages are known are one zone."""
        parts = [np.diff(list(_cuts(footer, group, rows))) for group, rows in enumerate(footer.zone_rows)]
        counts = np.array([len(part) for part in parts], np.int64)
        return PageZones(np.concatenate([*parts, np.zeros(0, np.int64)]), np.repeat(np.arange(len(parts)), counts))

    @property
    def group_rows(self) -> Int64Array:
        """int64, shape (row groups,): the rows of each."""
        return np.bincount(self.groups, self.rows).astype(np.int64)

    @property
    def is_divided(self) -> bool:
        """Whether any row group has more than one zone."""
        return bool((np.diff(self.groups) == 0).any())

    def sizes(self, of_groups: Sequence[int]) -> list[int]:
        """The bytes of each row group at its first zone, and 0 at the others. ``of_groups``: of each row group."""
        first = np.diff(self.groups, prepend=-1) > 0
        return [int(size) for size in np.where(first, np.array(of_groups, np.int64)[self.groups], 0)]

    def divide(self, statistics: Mapping[int, ColumnStatistics]) -> dict[int, ColumnStatistics]:
        """What statistics of row groups say of each zone, by column: bounds hold, counts only of none and of all."""
        if not self.is_divided:
            return dict(statistics)
        return {column: self._divided(found) for column, found in statistics.items()}

    def _divided(self, found: ColumnStatistics) -> ColumnStatistics:
        rows = pa.array(self.rows)
        in_group = pa.array(self.group_rows[self.groups])
        unknown, zones = pa.nulls(len(rows), pa.int64()), found.take(self.groups)

        def counted(counts: pa.Int64Array) -> pa.Int64Array:
            none, every = pc.equal(counts, 0), pc.equal(counts, in_group)
            return pc.case_when(pc.make_struct(pc.fill_null(none, False), pc.fill_null(every, False)), counts, rows)

        return replace(
            zones,
            null_count=counted(zones.null_count),
            nan_count=counted(zones.nan_count),
            distinct_count=unknown,
            size=unknown,
        )


def group_sizes(opened: OpenedFile) -> list[int] | None:
    """The bytes of each row group; None unless they lie one after the other, right behind the magic.

    And unless readers find each by these bytes: one whose first column lies last is found elsewhere.
    """
    sizes, position = [], FIRST_ZONE_OFFSET
    for group in opened.parsed.groups:
        start = min(chunk.start for chunk in group.chunks)
        end = max(chunk.start + chunk.byte_count for chunk in group.chunks)
        if start != position or sum(chunk.byte_count for chunk in group.chunks) != end - start:
            return None
        if not start <= group.middle < end:
            return None
        sizes.append(end - start)
        position = end
    return sizes


def _cuts(footer: Footer, group: int, row_count: int) -> Iterator[int]:
    """The rows of a row group at which a zone begins, and the number of its rows."""
    starts = Counter[int]()
    for chunk in range(group * footer.column_count, (group + 1) * footer.column_count):
        sizes = footer.pages.row_counts[footer.pages.chunk_starts[chunk] : footer.pages.chunk_starts[chunk + 1]]
        ends = np.cumsum(sizes)
        if len(ends) and ends[-1] == row_count:
            starts.update(ends[sizes > 0][:-1].tolist())
    candidates = sorted(starts)
    yield (last := 0)
    while row_count - last > _MOST_ROWS:
        fitting = [start for start in candidates if last + _LEAST_ROWS <= start <= last + _MOST_ROWS]
        later = [start for start in candidates if start > last + _MOST_ROWS]
        if not fitting and not later:
            break
        last = max(fitting, key=lambda start: (starts[start], start)) if fitting else later[0]
        yield last
    yield row_count
