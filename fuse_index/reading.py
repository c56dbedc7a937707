"""Whole blocks, one after the other, a few of them read ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from fuse_storage import Blocks, Table

AHEAD = 4
"""Blocks that are read while one is used."""


def read_ahead(table: Table, blocks: Blocks, places: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of these blocks, all columns, in this order. Raises as ``fuse_storage.Table.read``."""
    names = table.snapshot.schema.names
    with ThreadPoolExecutor(AHEAD, "fuse-read") as pool:
        waiting = iter(places)
        queue = [pool.submit(table.read, blocks, place, names) for place in islice(waiting, AHEAD)]
        try:
            while queue:
                yield queue.pop(0).result()
                queue += [pool.submit(table.read, blocks, place, names) for place in islice(waiting, 1)]
        finally:
            for each in queue:  # whoever has enough does not wait for the rest
                each.cancel()
