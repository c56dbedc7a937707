"""Reading ahead: blocks one after the other, a few of them read while one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from fuse_storage import BlockFrame, ScanUnits, StoredTable, live_among, read_live_rows

_T = TypeVar("_T")
_Item = TypeVar("_Item")

MAX_PREFETCHED_BLOCKS = 4
"""Whole blocks that are read while one is used."""
_MAX_JOINED_BLOCKS, _MAX_JOINED_ROWS = 64, 1 << 16
"""Hot blocks, and rows of them, that are read together: most of such a block's cost is not its rows."""
_MAX_WHOLE_JOINED_ROWS = 1 << 18
"""Rows of hot blocks that are read together where all columns and rows are read: 64 blocks of 10,000 rows are tiered
with 0.6 of the CPU, as threads wait for each other less."""


def prefetch_items(read: Callable[[_Item], _T], items: Sequence[_Item], depth: int) -> Iterator[_T]:
    """Yield what ``read`` makes of each item, in this order. Raises as ``read``.

    ``depth``: how many are under way while one is used.
    """
    if len(items) == 1:  # no other thread would be any sooner
        yield read(items[0])
        return
    with ThreadPoolExecutor(depth, "fuse-read") as pool:
        waiting = iter(items)
        queue = [pool.submit(read, item) for item in islice(waiting, depth)]
        try:
            while queue:
                yield queue.pop(0).result()
                queue += [pool.submit(read, item) for item in islice(waiting, 1)]
        finally:
            for pending in queue:  # whoever has enough does not wait for the rest
                pending.cancel()


def prefetch_blocks(table: StoredTable, blocks: BlockFrame, positions: Sequence[int]) -> Iterator[pa.Table]:
    """Yield the live rows of these blocks, all columns, in this order. Raises as ``read_live_rows``."""
    names = table.snapshot.schema.names

    def read(together: Sequence[int]) -> list[pa.Table]:
        if len(together) == 1:
            return [read_live_rows(table, blocks, together[0], names)]
        return table.read_blocks(blocks, names, [(each, None, live_among(blocks, each)) for each in together])

    together = join_hot_blocks(blocks, positions, _MAX_WHOLE_JOINED_ROWS)
    for tables in prefetch_items(read, together, MAX_PREFETCHED_BLOCKS):
        yield from tables


def join_hot_blocks(blocks: ScanUnits, positions: Sequence[int], max_rows: int = _MAX_JOINED_ROWS) -> list[list[int]]:
    """Cut positions of blocks into those that are read together, in their order: hot neighbours of few rows.

    All others come alone. ``max_rows``: of those that are read together.
    """
    in_tail, offsets, joined = blocks.in_tail, blocks.zone_offsets, list[list[int]]()
    row_count = max_rows
    for position in positions:
        rows = int(blocks.zone_rows[offsets[position] : offsets[position + 1]].sum()) if in_tail[position] else 0
        row_count += rows or max_rows
        if row_count > max_rows or len(joined[-1]) == _MAX_JOINED_BLOCKS:
            joined.append([])
            row_count = rows or max_rows
        joined[-1].append(position)
    return joined
