"""Which blocks are best brought together next, from statistics alone: those that overlap most in the order of the key.

Both ways give numbers of blocks, the most needed first, so that whoever has memory for fewer takes a beginning of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fuse_index.clustering.overlaps import Flags, Intervals, Ranks, counts

Numbers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

SEEDS = 16
"""Blocks, the widest ones, around each of which a group is tried."""
SLACK = 1.75
"""Blocks along a curve are wider than squares would be, by about so much."""
GAIN = 0.9
"""Blocks along a curve are rewritten only if they become narrower by this factor."""


def along_order(found: Intervals, levels: Ranks, able: Flags, depth: int, most: int) -> Numbers | None:
    """Blocks that overlap in a linear order, where more than ``depth`` of them do; None if nowhere.

    ``found``: within which a block surely has rows (``lexicographic(..., sure=True)``); ``able``: blocks that may be
    chosen. All that are chosen cover one interval without a gap, and the first ones a point in common. So when they are
    sorted, no point is in more blocks than before, and that point is in fewer: it is where most blocks are met. As in a
    log-structured merge tree with tiers (P. O'Neil et al., 1996; the depth is the number of runs that are put up with),
    blocks of low levels come first: what was sorted often is sorted again only when it has to be.
    """
    worth = able & (found.low < found.high)
    if not worth.any():
        return None
    top = int(found.high[worth].max()) + 1
    met = np.cumsum(
        np.bincount(found.low[worth], minlength=top) - np.bincount(found.high[worth], minlength=top)
    )  # between ranks
    place = int(met.argmax())
    if met[place] <= depth:
        return None
    there = np.flatnonzero(worth & (found.low <= place) & (found.high > place))
    there = there[np.lexsort([found.low[there], levels[there]])]
    needed = min(len(there), max(int(met[place]) - depth + 1, 2))
    chosen = there[levels[there] <= levels[there[needed - 1]]][:most]
    crowded = np.concatenate([[0], np.cumsum(met > depth)])  # up to each rank
    wanted = (
        worth
        & (levels <= levels[chosen].max())
        & (crowded[np.minimum(found.high, top)] > crowded[np.minimum(found.low, top)])
    )
    return _widened(found, chosen, wanted, place, most)


def _widened(found: Intervals, chosen: Numbers, wanted: Flags, place: int, most: int) -> Numbers:
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


def along_curve(columns: Sequence[Intervals], able: Flags, most: int) -> Numbers | None:
    """Blocks that are near to each other and would be narrower if they were sorted along a curve; None if none would.

    The width of a block in a column is the share of blocks that it overlaps with there: what a condition on that column
    reads. Blocks that tile a space of k columns and are m in number are as wide as that space, divided by m^(1/k), in
    each.
    """
    numbers = np.flatnonzero(able)
    columns = [column.take(numbers) for column in columns]
    widths = np.mean([width(column) for column in columns], axis=0)
    best: tuple[float, Numbers] | None = None
    for seed in np.argsort(-widths, kind="stable")[:SEEDS]:
        order = np.argsort(_distances(columns, int(seed)), kind="stable")[:most]
        for size in (len(order) >> halved for halved in range(len(order).bit_length() - 1)):
            group = order[:size]
            after = SLACK * size * _hull(columns, group) * size ** (-1 / len(columns))
            gain = float(widths[group].sum()) * GAIN - after
            if gain > 0 and (best is None or gain > best[0]):
                best = gain, group
    return None if best is None else numbers[best[1]]


def width(column: Intervals) -> Shares:
    """The share of all blocks that each overlaps with, itself included; touching is no overlap."""
    around, _ = counts(column)
    starts, ends = np.sort(column.low), np.sort(column.high)
    within = np.searchsorted(starts, column.high) - np.searchsorted(ends, column.low, "right")
    return np.asarray(np.where(column.low < column.high, within, around + 1) / max(len(column), 1), np.float64)


def _distances(columns: Sequence[Intervals], seed: int) -> Shares:
    """From the middle of the seed, by its widths; the greatest of all columns."""
    found = []
    for column in columns:
        middle = (column.low + column.high) / 2
        found.append(np.abs(middle - middle[seed]) / max(int(column.high[seed] - column.low[seed]), 1))
    return np.asarray(np.max(found, axis=0), np.float64)


def _hull(columns: Sequence[Intervals], group: Numbers) -> float:
    """The mean width of the least box around these blocks."""
    found = [np.mean((one.low < one.high[group].max()) & (one.high > one.low[group].min())) for one in columns]
    return float(np.mean(found))
