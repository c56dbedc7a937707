"""Where in their files the zones lie that a plan reads, so that Spark reads those and no others.

Spark's Parquet reader takes the row groups whose middle lies in the bytes that it is told to read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuse_index.pruning.planner import ScanPlan
from fuse_storage import FIRST_ZONE_OFFSET, BlockFrame

JOINED_GAP_BYTES = 256 << 10
"""Zones that are so near to each other are read as one range: each range costs the reading of a footer."""


def partial_ranges(plan: ScanPlan[BlockFrame]) -> npt.NDArray[np.int64]:
    """Ranges of the blocks of which a plan reads some zones and not others: int64, shape (k, 3).

    Of a zone that is part of a row group, the row group is read: its first zone has its size, the others have 0.

    Each is a block, by its number in the snapshot, the first byte, and the number of bytes. Blocks whose zones have no
    known sizes have none. Two zones of 100 and 50 bytes of block 7, of which the second is read, make
    ``[[7, 104, 50]]``.
    """
    blocks = plan.blocks
    owners = np.repeat(np.arange(len(blocks)), blocks.zone_counts)
    partial = np.bincount(owners, ~plan.zones, len(blocks)) > 0
    if not partial.any():
        return np.zeros((0, 3), np.int64)
    ends = np.cumsum(blocks.zone_sizes)
    starts = ends - blocks.zone_sizes
    places = FIRST_ZONE_OFFSET + starts - starts[blocks.zone_offsets[:-1]][owners]
    known = blocks.zone_sizes[blocks.zone_offsets[:-1]] > 0
    heads = np.flatnonzero(blocks.zone_sizes != 0)
    read = heads[np.logical_or.reduceat(plan.zones & (partial & known)[owners], heads)]
    if not len(read):
        return np.zeros((0, 3), np.int64)
    first, last, owner = places[read], places[read] + blocks.zone_sizes[read], owners[read]
    apart = np.append(True, (owner[1:] != owner[:-1]) | (first[1:] - last[:-1] > JOINED_GAP_BYTES))
    begins = np.flatnonzero(apart)
    finishes = np.append(begins[1:], len(read)) - 1
    return np.stack([blocks.ordinals[owner[begins]], first[begins], last[finishes] - first[begins]], axis=1)
