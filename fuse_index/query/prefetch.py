"""Blocks one after the other, a few of them read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from fuse_storage import BlockFrame, StoredTable

Read = TypeVar("Read")

AHEAD = 4
"""Whole blocks that are read while one is used."""


def ahead(read: Callable[[int], Read], places: Sequence[int], count: int) -> Iterator[Read]:
    """What ``read`` makes of each place, in this order; ``count`` are under way while one is used. Raises as
    ``read``.
    """
    if len(places) == 1:  # no other thread would be any sooner
        yield read(places[0])
        return
    with ThreadPoolExecutor(count, "fuse-read") as pool:
        waiting = iter(places)
        queue = [pool.submit(read, place) for place in islice(waiting, count)]
        try:
            while queue:
                yield queue.pop(0).result()
                queue += [pool.submit(read, place) for place in islice(waiting, 1)]
        finally:
            for each in queue:  # whoever has enough does not wait for the rest
                each.cancel()


def read_ahead(table: StoredTable, blocks: BlockFrame, places: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of these blocks, all columns, in this order. Raises as ``fuse_storage.Table.read``."""
    return ahead(partial(table.read_block, blocks, columns=table.snapshot.schema.names), places, AHEAD)
