"""Which blocks are best brought together next, from statistics alone: those that overlap most in the order of the key.

Both ways give numbers of blocks, the most needed first, so that whoever has memory for fewer takes a beginning of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fuse_index.clustering.overlaps import Intervals, MaskArray, RankArray, overlaps_and_depths

BlockNumbers = npt.NDArray[np.int64]
_Shares = npt.NDArray[np.float64]

_MAX_SEED_BLOCKS = 16
"""Blocks, the widest ones, around each of which a group is tried."""
_CURVE_WIDTH_FACTOR = 1.75
"""Blocks along a curve are wider than squares would be, by about so much."""
MAX_CURVE_WIDTH_RATIO = 0.9
"""Blocks along a curve are rewritten only if they become narrower by this factor."""


def select_overlapping(
    intervals: Intervals, levels: RankArray, eligible: MaskArray, depth: int, max_blocks: int
) -> BlockNumbers | None:
    """Blocks that overlap in a linear order, where more than ``depth`` of them do; None if nowhere.

    ``found``: within which a block surely has rows (``lexicographic(..., sure=True)``); ``able``: blocks that may be
    chosen. All that are chosen cover one interval without a gap, and the first ones a point in common. So when they are
    sorted, no point is in more blocks than before, and that point is in fewer: it is where most blocks are met. As in a
    log-structured merge tree with tiers (P. O'Neil et al., 1996; the depth is the number of runs that are put up with),
    blocks of low levels come first: what was sorted often is sorted again only when it has to be.
    """
    worth = eligible & (intervals.low < intervals.high)
    if not worth.any():
        return None
    top = int(intervals.high[worth].max()) + 1
    met = np.cumsum(
        np.bincount(intervals.low[worth], minlength=top) - np.bincount(intervals.high[worth], minlength=top)
    )  # between ranks
    place = int(met.argmax())
    if met[place] <= depth:
        return None
    there = np.flatnonzero(worth & (intervals.low <= place) & (intervals.high > place))
    there = there[np.lexsort([intervals.low[there], levels[there]])]
    needed = min(len(there), max(int(met[place]) - depth + 1, 2))
    chosen = there[levels[there] <= levels[there[needed - 1]]][:max_blocks]
    crowded = np.concatenate([[0], np.cumsum(met > depth)])  # up to each rank
    wanted = (
        worth
        & (levels <= levels[chosen].max())
        & (crowded[np.minimum(intervals.high, top)] > crowded[np.minimum(intervals.low, top)])
    )
    return _add_overlapping(intervals, chosen, wanted, place, max_blocks)


def _add_overlapping(found: Intervals, chosen: BlockNumbers, wanted: MaskArray, place: int, most: int) -> BlockNumbers:
    """With others that overlap what is chosen, the nearest first, as many as there is room for."""
    while len(chosen) < most:
        low, high = found.low[chosen].min(), found.high[chosen].max()
        beside = wanted & (found.low < high) & (found.high > low)
        beside[chosen] = False
        more = np.flatnonzero(beside)
        if not len(more):
            break
        distance = np.maximum(found.low[more] - place, place - found.high[more])
        chosen = np.concatenate([chosen, more[np.argsort(distance, kind="stable")]])[:most]
    return chosen


def select_curve_group(columns: Sequence[Intervals], eligible: MaskArray, max_blocks: int) -> BlockNumbers | None:
    """Blocks that are near to each other and would be narrower if they were sorted along a curve; None if none would.

    The width of a block in a column is the share of blocks that it overlaps with there: what a condition on that column
    reads. Blocks that tile a space of k columns and are m in number are as wide as that space, divided by m^(1/k), in
    each.
    """
    numbers = np.flatnonzero(eligible)
    columns = [column.take(numbers) for column in columns]
    widths = np.mean([overlap_shares(column) for column in columns], axis=0)
    best: tuple[float, BlockNumbers] | None = None
    for seed in np.argsort(-widths, kind="stable")[:_MAX_SEED_BLOCKS]:
        order = np.argsort(_distances(columns, int(seed)), kind="stable")[:max_blocks]
        for size in (len(order) >> halved for halved in range(len(order).bit_length() - 1)):
            group = order[:size]
            after = _CURVE_WIDTH_FACTOR * size * _bounding_width(columns, group) * size ** (-1 / len(columns))
            gain = float(widths[group].sum()) * MAX_CURVE_WIDTH_RATIO - after
            if gain > 0 and (best is None or gain > best[0]):
                best = gain, group
    return None if best is None else numbers[best[1]]


def overlap_shares(intervals: Intervals) -> _Shares:
    """The share of all blocks that each overlaps with, itself included; touching is no overlap."""
    around, _ = overlaps_and_depths(intervals)
    starts, ends = np.sort(intervals.low), np.sort(intervals.high)
    within = np.searchsorted(starts, intervals.high) - np.searchsorted(ends, intervals.low, "right")
    return np.asarray(np.where(intervals.low < intervals.high, within, around + 1) / max(len(intervals), 1), np.float64)


def _distances(columns: Sequence[Intervals], seed: int) -> _Shares:
    """From the middle of the seed, by its widths; the greatest of all columns."""
    found = []
    for column in columns:
        middle = (column.low + column.high) / 2
        found.append(np.abs(middle - middle[seed]) / max(int(column.high[seed] - column.low[seed]), 1))
    return np.asarray(np.max(found, axis=0), np.float64)


def _bounding_width(columns: Sequence[Intervals], group: BlockNumbers) -> float:
    """The mean width of the least box around these blocks."""
    found = [np.mean((one.low < one.high[group].max()) & (one.high > one.low[group].min())) for one in columns]
    return float(np.mean(found))
