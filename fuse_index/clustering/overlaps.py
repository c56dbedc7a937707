"""How blocks overlap in an order of their rows: from what statistics bound, by ranks, whatever the types.

Each block is a closed interval of ranks. NULL is the least, as Spark sorts it; NaN the greatest; bounds that were cut
bound, and a bound that is not known lies beyond all others. Everything is O(n log n). Knows no table and no key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import ColumnStatistics

RankArray = npt.NDArray[np.int64]
MaskArray = npt.NDArray[np.bool_]

_UNKNOWN_RANK, _NULL_RANK = 0, 1
"""Ranks of a lower bound that is not known, and of NULL. Values begin at 2."""
MAX_EXACT_DEPTH = 16
"""Depths up to this are counted one by one in a histogram; above, each bucket is twice as wide as the one before."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """One closed interval of ranks per block: ``low`` <= ``high``, int64, shape (blocks,).

    Ranks are comparable within this object only.
    ``constant``: blocks known to hold one value; ``unknown``: blocks of which a bound is not known.
    """

    low: RankArray
    high: RankArray
    constant: MaskArray
    unknown: MaskArray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, block_numbers: RankArray) -> Intervals:
        """The intervals of some blocks. ``block_numbers``: int64 indices of any shape (n,), in the order wanted."""
        return Intervals(
            self.low[block_numbers], self.high[block_numbers], self.constant[block_numbers], self.unknown[block_numbers]
        )


@dataclass(frozen=True, slots=True)
class OverlapStatistics:
    """How blocks overlap in one order.

    ``overlaps`` of a block: how many others have a value in common with it. ``depth``: the most blocks that any one
    value within its bounds is found in, itself included. ``constant``: blocks that hold one value; ``unknown``: blocks
    without known bounds, which overlap with all others. ``histogram``: how many blocks are as deep as the key, and
    deeper than the key before.
    """

    blocks: int
    constant: int
    unknown: int
    average_overlaps: float
    maximum_overlaps: int
    average_depth: float
    maximum_depth: int
    histogram: Mapping[int, int]


def column_intervals(statistics: ColumnStatistics, row_counts: RankArray) -> Intervals:
    """Put blocks into the order of one column.

    ``statistics``: bounds and counts of the column, of n blocks. ``row_counts``: int64, shape (n,).
    """
    count = len(statistics)
    bounds = pa.concat_arrays([statistics.min, statistics.max])
    ranks = np.asarray(pc.rank(bounds, tiebreaker="dense"), np.int64) + _NULL_RANK  # NaN comes after numbers
    has_min, has_max = (np.asarray(bound.is_valid(), np.bool_) for bound in (statistics.min, statistics.max))
    beyond_all = int(ranks.max(initial=0)) + 1
    nulls = np.asarray(statistics.null_count.fill_null(-1), np.int64)
    all_null = nulls == row_counts
    low_of_unknown = np.where(all_null, _NULL_RANK, _UNKNOWN_RANK)
    low = np.where(has_min, np.where(nulls == 0, ranks[:count], _NULL_RANK), low_of_unknown)
    high = np.where(has_max, ranks[count:], np.where(all_null, _NULL_RANK, beyond_all))
    return Intervals(low, high, low == high, ~(has_min & has_max) & ~all_null)


def lexicographic_intervals(columns: Sequence[Intervals], certain: bool = False) -> Intervals:
    """Put blocks into the order of several columns, the first one deciding.

    ``columns``: one Intervals per column, each of the same n blocks. The rows of a block lie within its interval; with
    ``certain``, the interval lies within what its least and its greatest row span. The two differ where a block holds
    several values of one column, for of the next column only bounds are known. A block with the values 0 to 1 in the
    first column, and 0 to 2 in the second, begins at (0, 0) or later, but at (0, 2) without fail:

    >>> unset = np.zeros(1, np.bool_)
    >>> first = Intervals(np.array([0]), np.array([1]), unset, unset)
    >>> second = Intervals(np.array([0]), np.array([2]), unset, unset)
    >>> possible = lexicographic_intervals([first, second])  # from (0, 0) to (1, 2)
    >>> certain = lexicographic_intervals([first, second], certain=True)  # from (0, 2) to (1, 0)
    """
    if len(columns) == 1:
        return columns[0]
    lows, highs = [], []
    decided = np.zeros(len(columns[0]), bool)
    for part in columns:
        swapped = decided & certain
        lows.append(np.where(swapped, part.high, part.low))
        highs.append(np.where(swapped, part.low, part.high))
        decided |= part.low < part.high
    ranks = _dense_ranks([np.concatenate(pair) for pair in zip(lows, highs, strict=True)])
    low, high = ranks[: len(decided)], ranks[len(decided) :]
    constant = np.logical_and.reduce([part.constant for part in columns])
    unknown = np.logical_or.reduce([part.unknown for part in columns])
    return Intervals(low, high, constant, unknown)


def _dense_ranks(parts: Sequence[RankArray]) -> RankArray:
    """Rank tuples of numbers among all different ones, from 0.

    ``parts``: by position in the tuple, int64, shape (n,) each. Returns int64, shape (n,).
    """
    order = np.lexsort(parts[::-1])
    new = np.zeros(len(order), bool)
    for part in parts:
        ordered = part[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(new)
    return ranks


def overlaps_and_depths(intervals: Intervals) -> tuple[RankArray, RankArray]:
    """Count for each block how many others overlap with it, and the most blocks that meet within it: its depth.

    Returns two int64 arrays of shape (blocks,). Here the first block overlaps with the two others, but no value is in
    all three, so that it is two deep:

    >>> unset = np.zeros(3, np.bool_)
    >>> overlaps_and_depths(Intervals(np.array([0, 1, 5]), np.array([6, 2, 9]), unset, unset))
    (array([2, 1, 1]), array([2, 2, 2]))
    """
    starts, ends = np.sort(intervals.low), np.sort(intervals.high)
    # All blocks that begin up to my end, less those that end before my begin, less myself.
    overlaps = np.searchsorted(starts, intervals.high, "right") - np.searchsorted(ends, intervals.low) - 1
    # A depth can only rise where a block begins, so that it is enough to know it there: blocks that began, less those
    # that ended before. The depth of a block is the most of those at starts within it.
    depths_at_starts = np.searchsorted(starts, starts, "right") - np.searchsorted(ends, starts)
    first, end = np.searchsorted(starts, intervals.low), np.searchsorted(starts, intervals.high, "right")
    return overlaps, range_max(depths_at_starts, first, end)


def range_max(values: RankArray, starts: RankArray, ends: RankArray) -> RankArray:
    """Find the greatest of ``values[start:end]`` for many ranges, none of which is empty.

    ``starts`` and ``ends``: int64, shape (n,). Returns int64, shape (n,).

    >>> range_max(np.array([3, 1, 4, 1, 5]), np.array([0, 1, 1]), np.array([2, 4, 5]))
    array([3, 4, 5])

    By maxima over spans of powers of two, two of which cover any range (Bender and Farach-Colton, The LCA Problem
    Revisited, 2000); one power is kept at a time.
    """
    maxima = np.zeros(len(starts), np.int64)
    powers = np.frexp(ends - starts)[1] - 1  # the greatest one within each range
    span_maxima = values  # of values[i : i + 2 ** power], for each i
    for power in range(int(powers.max(initial=-1)) + 1):
        if power:
            half = 1 << (power - 1)
            span_maxima = np.maximum(span_maxima[:-half], span_maxima[half:])
        ranges = powers == power
        maxima[ranges] = np.maximum(span_maxima[starts[ranges]], span_maxima[ends[ranges] - (1 << power)])
    return maxima


def measure_overlaps(intervals: Intervals) -> OverlapStatistics:
    """Sum up how blocks overlap; zeros where there is no block."""
    blocks = len(intervals)
    overlaps, depths = overlaps_and_depths(intervals)
    return OverlapStatistics(
        blocks,
        int(intervals.constant.sum()),
        int(intervals.unknown.sum()),
        float(overlaps.mean()) if blocks else 0.0,
        int(overlaps.max(initial=0)),
        float(depths.mean()) if blocks else 0.0,
        int(depths.max(initial=0)),
        depth_histogram(depths),
    )


def depth_histogram(depths: RankArray) -> dict[int, int]:
    """Count blocks by depth: 1, 2, ..., 16, up to 32, up to 64 and so on; buckets without any are left out.

    ``depths``: int64, one per block.

    >>> depth_histogram(np.array([1, 1, 2, 17, 40]))
    {1: 2, 2: 1, 32: 1, 64: 1}
    """
    above = 1 << np.frexp(np.maximum(depths - 1, 0))[1].astype(np.int64)
    buckets, counts = np.unique(np.where(depths <= MAX_EXACT_DEPTH, depths, above), return_counts=True)
    return dict(zip(buckets.tolist(), counts.tolist(), strict=True))


def depth_profile(intervals: Intervals, max_points: int) -> RankArray:
    """Count the blocks that are met along the order, at ``max_points`` ranks at most.

    Each number is the greatest of all that it stands for. Returns int64, shape (n,) with n <= ``max_points``.
    """
    ranks = np.unique(np.concatenate([intervals.low, intervals.high]))
    depths = np.searchsorted(np.sort(intervals.low), ranks, "right") - np.searchsorted(np.sort(intervals.high), ranks)
    if not len(depths):
        return depths
    return np.maximum.reduceat(
        depths, np.unique(np.linspace(0, len(depths), max_points, endpoint=False).astype(np.int64))
    )
