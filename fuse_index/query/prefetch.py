"""Reading ahead: blocks one after the other, a few of them read while one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from fuse_storage import BlockFrame, StoredTable, read_live_rows

_T = TypeVar("_T")

MAX_PREFETCHED_BLOCKS = 4
"""Whole blocks that are read while one is used."""


def prefetch_items(read: Callable[[int], _T], positions: Sequence[int], depth: int) -> Iterator[_T]:
    """Yield what ``read`` makes of each position, in this order. Raises as ``read``.

    ``depth``: how many are under way while one is used.
    """
    if len(positions) == 1:  # no other thread would be any sooner
        yield read(positions[0])
        return
    with ThreadPoolExecutor(depth, "fuse-read") as pool:
        waiting = iter(positions)
        queue = [pool.submit(read, position) for position in islice(waiting, depth)]
        try:
            while queue:
                yield queue.pop(0).result()
                queue += [pool.submit(read, position) for position in islice(waiting, 1)]
        finally:
            for pending in queue:  # whoever has enough does not wait for the rest
                pending.cancel()


def prefetch_blocks(table: StoredTable, blocks: BlockFrame, positions: Sequence[int]) -> Iterator[pa.Table]:
    """Yield the live rows of these blocks, all columns, in this order. Raises as ``read_live_rows``."""
    read = partial(read_live_rows, table, blocks, columns=table.snapshot.schema.names)
    return prefetch_items(read, positions, MAX_PREFETCHED_BLOCKS)
