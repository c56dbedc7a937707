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
    """Select blocks that overlap in a linear order, where more than ``depth`` of them do; None if nowhere.

    ``intervals``: within which a block surely has rows (``lexicographic_intervals(..., certain=True)``). ``levels``:
    how often the rows of each block were sorted, int64, shape (blocks,). ``eligible``: which blocks may be selected,
    booleans, shape (blocks,). Returns numbers of blocks, int64. Three of these four meet between the ranks 2 and 5:

    >>> unset = np.zeros(4, np.bool_)
    >>> intervals = Intervals(np.array([0, 1, 2, 9]), np.array([5, 6, 7, 12]), unset, unset)
    >>> select_overlapping(intervals, np.zeros(4, np.int64), ~unset, depth=2, max_blocks=8)
    array([0, 1, 2])

    All that are selected cover one interval without a gap, and the first ones a point in common. So when they are
    sorted, no point is in more blocks than before, and that point is in fewer: it is where most blocks are met. As in a
    log-structured merge tree with tiers (P. O'Neil et al., 1996; the depth is the number of runs that are put up with),
    blocks of low levels come first: what was sorted often is sorted again only when it has to be.
    """
    wide = eligible & (intervals.low < intervals.high)
    if not wide.any():
        return None
    end = int(intervals.high[wide].max()) + 1
    # Depth between each rank and the next: intervals that began, less those that ended.
    depths = np.cumsum(
        np.bincount(intervals.low[wide], minlength=end) - np.bincount(intervals.high[wide], minlength=end)
    )
    deepest = int(depths.argmax())
    if depths[deepest] <= depth:
        return None
    meeting = np.flatnonzero(wide & (intervals.low <= deepest) & (intervals.high > deepest))
    meeting = meeting[np.lexsort([intervals.low[meeting], levels[meeting]])]
    # Sorting m blocks that meet leaves one in their place: this many are needed to come down to the depth. Others of
    # the highest level among them are as cheap.
    needed = min(len(meeting), max(int(depths[deepest]) - depth + 1, 2))
    selected = meeting[levels[meeting] <= levels[meeting[needed - 1]]][:max_blocks]
    too_deep_before = np.concatenate([[0], np.cumsum(depths > depth)])  # places deeper than allowed, up to each rank
    touches_too_deep = (
        too_deep_before[np.minimum(intervals.high, end)] > too_deep_before[np.minimum(intervals.low, end)]
    )
    candidates = wide & (levels <= levels[selected].max()) & touches_too_deep
    return _add_overlapping(intervals, selected, candidates, deepest, max_blocks)


def _add_overlapping(
    intervals: Intervals, selected: BlockNumbers, candidates: MaskArray, center: int, max_blocks: int
) -> BlockNumbers:
    """Add candidates that overlap what is selected, those nearest to a rank first, as many as there is room for."""
    while len(selected) < max_blocks:
        low, high = intervals.low[selected].min(), intervals.high[selected].max()
        overlapping = candidates & (intervals.low < high) & (intervals.high > low)
        overlapping[selected] = False
        more = np.flatnonzero(overlapping)
        if not len(more):
            break
        distances = np.maximum(intervals.low[more] - center, center - intervals.high[more])
        selected = np.concatenate([selected, more[np.argsort(distances, kind="stable")]])[:max_blocks]
    return selected


def select_curve_group(columns: Sequence[Intervals], eligible: MaskArray, max_blocks: int) -> BlockNumbers | None:
    """Select blocks near to each other that would be narrower if they were sorted along a curve; None if none would.

    ``columns``: one Intervals per column of the key, each of the same n blocks. ``eligible``: which blocks may be
    selected, booleans, shape (n,). Returns numbers of blocks, int64, those nearest to the widest one first.

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
    """The share of all blocks that each overlaps with, itself included; touching is no overlap.

    Returns float64, shape (blocks,).
    """
    touching, _ = overlaps_and_depths(intervals)
    starts, ends = np.sort(intervals.low), np.sort(intervals.high)
    within = np.searchsorted(starts, intervals.high) - np.searchsorted(ends, intervals.low, "right")
    return np.asarray(
        np.where(intervals.low < intervals.high, within, touching + 1) / max(len(intervals), 1), np.float64
    )


def _distances(columns: Sequence[Intervals], seed: int) -> _Shares:
    """Distances of blocks from the middle of the seed, in widths of the seed; the greatest of all columns."""
    distances = []
    for column in columns:
        middle = (column.low + column.high) / 2
        distances.append(np.abs(middle - middle[seed]) / max(int(column.high[seed] - column.low[seed]), 1))
    return np.asarray(np.max(distances, axis=0), np.float64)


def _bounding_width(columns: Sequence[Intervals], group: BlockNumbers) -> float:
    """The mean width of the least box around these blocks."""
    widths = [
        np.mean((column.low < column.high[group].max()) & (column.high > column.low[group].min())) for column in columns
    ]
    return float(np.mean(widths))
