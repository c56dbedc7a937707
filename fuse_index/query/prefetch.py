"""Blocks one after the other, a few of them read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from fuse_storage import BlockFrame, StoredTable

_T = TypeVar("_T")

MAX_PREFETCHED_BLOCKS = 4
"""Whole blocks that are read while one is used."""


def prefetch_items(read: Callable[[int], _T], positions: Sequence[int], depth: int) -> Iterator[_T]:
    """What ``read`` makes of each place, in this order; ``count`` are under way while one is used. Raises as
    ``read``.
    """
    if len(positions) == 1:  # no other thread would be any sooner
        yield read(positions[0])
        return
    with ThreadPoolExecutor(depth, "fuse-read") as pool:
        waiting = iter(positions)
        queue = [pool.submit(read, place) for place in islice(waiting, depth)]
        try:
            while queue:
                yield queue.pop(0).result()
                queue += [pool.submit(read, place) for place in islice(waiting, 1)]
        finally:
            for each in queue:  # whoever has enough does not wait for the rest
                each.cancel()


def prefetch_blocks(table: StoredTable, blocks: BlockFrame, positions: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of these blocks, all columns, in this order. Raises as ``fuse_storage.Table.read``."""
    return prefetch_items(
        partial(table.read_block, blocks, columns=table.snapshot.schema.names), positions, MAX_PREFETCHED_BLOCKS
    )
