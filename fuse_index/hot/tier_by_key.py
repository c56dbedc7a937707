"""Tiering in a table with a primary key: no block of the base is rewritten.

Rows of the base that the tail hides get deletion vectors, and those rows of the tail that count become indexed blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask, rewrite_partition_limit
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import BlockReplacement, StagedSegment, StoredTable


class KeyedTiering:
    """How the oldest hot blocks of such a table go into the base: by one task, as their rows hide those of the base."""

    by_key = True

    def divide(self, table: StoredTable, count: int, max_tasks: int) -> list[RewriteTask]:
        """Give all to one task. Numbers are places in the tail, from the oldest block on."""
        return [RewriteTask((tuple(range(count)),))]

    def write(
        self, table: StoredTable, builders: Sequence[IndexBuilder], numbers: Sequence[int], on_block: Callable[[], None]
    ) -> RewriteOutcome:
        """Write what comes in the place of the oldest hot blocks, and of the blocks of the base that they touch."""
        segments, blocks = table.segments(), table.blocks()
        base_count = segments.base_block_count
        deleted = _rows_to_delete(table)
        full = [number for number, mask in deleted.items() if mask.all()]
        partly = {number: mask for number, mask in deleted.items() if not mask.all()}
        removed = storage.tail_changes(table.store, table.snapshot)[: len(numbers)]
        tail_numbers = {block_id: base_count + place for place, block_id in enumerate(blocks.ids[base_count:])}
        chosen = blocks.take(
            np.array([tail_numbers[block_id] for block_id, _ in removed if block_id in tail_numbers], np.int64)
        )

        def read_rows() -> Iterator[pa.Table]:
            for part in prefetch_blocks(table, chosen, range(len(chosen))):
                if len(part):
                    yield part
                on_block()

        with table.writer(builders, max_partitions=rewrite_partition_limit(table)) as writer:
            write_sorted_runs(writer, read_rows(), ClusterKey.from_snapshot(table.snapshot))
            staged: list[StagedSegment] = writer.finish()
        marked = storage.stage_deletions(table, builders, partly)
        ids = blocks.ids
        replacements = (
            *(BlockReplacement((ids[number],), 1) for number in partly),
            *(BlockReplacement((ids[number],), 0) for number in full),
            BlockReplacement(tuple(block_id for block_id, _ in removed), writer.block_count),
        )
        return RewriteOutcome(replacements, (*marked, *staged), segments.segments_containing(list(deleted)))


def _rows_to_delete(table: StoredTable) -> dict[int, np.ndarray]:
    """Rows of the base that do not count, of blocks of which the tail hides some: by number, bool, shape (rows,)."""
    stored = table.without_tail().blocks().live_row_counts
    hidden = table.segments().hidden_rows
    live = {number: mask for number, mask in sorted(hidden.items()) if number < len(stored)}
    return {number: ~mask for number, mask in live.items() if np.count_nonzero(mask) < stored[number]}
