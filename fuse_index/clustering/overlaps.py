"""How blocks overlap in an order of their rows: from what statistics bound, by ranks, whatever the types.

Each block is a closed interval of ranks. NULL is the least, as Spark sorts it; NaN the greatest; bounds that were cut
bound, and a bound that is not known lies beyond all others. Knows no table and no clustering key; everything is O(n log
n).
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
    """One closed interval of ranks per block: ``low`` <= ``high``, int64, comparable within this object only.

    ``constant``: blocks known to hold one value; ``unknown``: blocks of which a bound is not known.
    """

    low: RankArray
    high: RankArray
    constant: MaskArray
    unknown: MaskArray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, block_numbers: RankArray) -> Intervals:
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
    """Blocks in the order of one column."""
    count = len(statistics)
    ranks = (
        np.asarray(pc.rank(pa.concat_arrays([statistics.min, statistics.max]), tiebreaker="dense"), np.int64)
        + _NULL_RANK
    )  # NaN after numbers
    bounded = [np.asarray(bound.is_valid(), np.bool_) for bound in (statistics.min, statistics.max)]
    above = int(ranks.max(initial=0)) + 1
    nulls = np.asarray(statistics.null_count.fill_null(-1), np.int64)
    empty = nulls == row_counts
    low = np.where(
        bounded[0], np.where(nulls == 0, ranks[:count], _NULL_RANK), np.where(empty, _NULL_RANK, _UNKNOWN_RANK)
    )
    high = np.where(bounded[1], ranks[count:], np.where(empty, _NULL_RANK, above))
    return Intervals(low, high, low == high, ~(bounded[0] & bounded[1]) & ~empty)


def lexicographic_intervals(columns: Sequence[Intervals], certain: bool = False) -> Intervals:
    """Blocks in the order of several columns, the first one deciding.

    The rows of a block lie within the interval; ``sure``: within it without fail lies what is between its least and its
    greatest row. The two differ where a block holds several values of one column, and of the next only bounds are
    known.
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
    """The rank, from 0, of each tuple of numbers among all different ones; ``parts``: the numbers by place in the
    tuple.
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
    """Of each block: how many others overlap with it, and its depth."""
    starts, ends = np.sort(intervals.low), np.sort(intervals.high)
    overlaps = np.searchsorted(starts, intervals.high, "right") - np.searchsorted(ends, intervals.low) - 1
    met = np.searchsorted(starts, starts, "right") - np.searchsorted(ends, starts)
    first, behind = np.searchsorted(starts, intervals.low), np.searchsorted(starts, intervals.high, "right")
    return overlaps, range_max(met, first, behind)


def range_max(values: RankArray, starts: RankArray, ends: RankArray) -> RankArray:
    """The greatest of ``values[first[i]:behind[i]]``, none of which is empty, for each i.

    By maxima over spans of powers of two, two of which cover any range (Bender and Farach-Colton, The LCA Problem
    Revisited, 2000); one power is kept at a time.
    """
    found = np.zeros(len(starts), np.int64)
    power = np.frexp(ends - starts)[1] - 1  # the greatest one within the range
    spans = values
    for one in range(int(power.max(initial=-1)) + 1):
        if one:
            spans = np.maximum(spans[: -(1 << (one - 1))], spans[1 << (one - 1) :])
        asked = power == one
        found[asked] = np.maximum(spans[starts[asked]], spans[ends[asked] - (1 << one)])
    return found


def measure_overlaps(intervals: Intervals) -> OverlapStatistics:
    """All of it in numbers; zeros where there is no block."""
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
    """How many blocks there are by depth: 1, 2, ..., 16, up to 32, up to 64 and so on; buckets without any are left
    out.
    """
    above = 1 << np.frexp(np.maximum(depths - 1, 0))[1].astype(np.int64)
    buckets, found = np.unique(np.where(depths <= MAX_EXACT_DEPTH, depths, above), return_counts=True)
    return dict(zip(buckets.tolist(), found.tolist(), strict=True))


def depth_profile(intervals: Intervals, max_points: int) -> RankArray:
    """How many blocks are met along the order, at so many places at most: at each the most of those it stands for."""
    places = np.unique(np.concatenate([intervals.low, intervals.high]))
    met = np.searchsorted(np.sort(intervals.low), places, "right") - np.searchsorted(np.sort(intervals.high), places)
    if not len(met):
        return met
    return np.maximum.reduceat(met, np.unique(np.linspace(0, len(met), max_points, endpoint=False).astype(np.int64)))
