"""Tiering: the rows of the tail's oldest commits become blocks of full size, sorted and indexed, in one commit.

It changes no row. Any number of tierers may run: of two that took the same blocks one commits, and the other finds
nothing left to do. Hot commits that come meanwhile stay in the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.registry import Host
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import BlockReplacement, Conflict, StoredTable

_ATTEMPTS = 3
"""How often a tierer takes what is there anew, after others changed what it had taken."""


def tier_table(
    table: StoredTable,
    host: Host,
    min_age: timedelta | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredTable:
    """Tier what a state has in its tail; gives the table after it, or as it is if there is nothing to do."""
    for attempt in range(_ATTEMPTS):
        try:
            return _tier_once(table, host, min_age, progress)
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            table = table.refresh()
    return table


def _tier_once(
    table: StoredTable, host: Host, min_age: timedelta | None, progress: Callable[[int, int], None] | None
) -> StoredTable:
    base, times = table.segments().base_block_count, storage.tail_times(table.store, table.snapshot)
    youngest = None if min_age is None else datetime.now(UTC) - min_age
    count = sum(youngest is None or time <= youngest for time in times)  # times rise along the tail
    if not count:
        return table
    blocks = table.blocks().take(np.arange(base, base + count))
    builders = index_builders(table.snapshot, host)
    with table.writer(builders) as writer:
        rows = prefetch_blocks(table, blocks, range(count))

        def told() -> Iterator[pa.Table]:
            for done, part in enumerate(rows, 1):
                yield part
                if progress is not None:
                    progress(done, count)

        write_sorted_runs(writer, told(), ClusterKey.from_snapshot(table.snapshot))
        staged = writer.finish()
    transaction = table.transaction(builders)
    transaction.replace_blocks(
        [BlockReplacement(tuple(blocks.ids), writer.block_count)], staged, table.segments().ids[-1:], None, "tier", True
    )
    return transaction.commit("tier")
