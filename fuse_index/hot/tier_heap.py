"""Tiering in a table without a primary key: hot blocks become blocks of full size, whichever tasks write them."""

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
from fuse_storage import BlockReplacement, StoredTable

_DEFAULT_BLOCK_ROWS = 1_000_000


class HeapTiering:
    """How the oldest hot blocks of a heap become blocks of the base."""

    by_key = False

    def divide(self, table: StoredTable, count: int, max_tasks: int) -> list[RewriteTask]:
        """Give each task, if there are several, rows for a block at least. Numbers are those of the blocks."""
        base = table.segments().base_block_count
        numbers = np.arange(base, base + count)
        rows = int(table.blocks().take(numbers).row_counts.sum())
        full = int(table.snapshot.properties.get("block_rows", _DEFAULT_BLOCK_ROWS))
        shares = np.array_split(numbers, max(1, min(max_tasks, count, rows // full)))
        return [RewriteTask((tuple(share.tolist()),)) for share in shares]

    def write(
        self, table: StoredTable, builders: Sequence[IndexBuilder], numbers: Sequence[int], on_block: Callable[[], None]
    ) -> RewriteOutcome:
        """Write the rows of these hot blocks.

        Where a block would have the very bytes of a hot one, that one becomes the block. So of rows without an order
        the hot blocks that compaction would leave alone are written apart, after all smaller ones.
        """
        key = ClusterKey.from_snapshot(table.snapshot)
        base, files = table.segments().base_block_count, storage.tail_files(table.store, table.snapshot)
        with table.writer(builders, max_partitions=rewrite_partition_limit(table)) as writer:
            blocks = table.blocks().take(np.array(numbers, np.int64))  # so that nothing is read of those of the base
            is_large = blocks.row_counts * 2 >= writer.options.block_rows
            apart = int(is_large.sum()) if key is None else 0
            blocks = blocks.take(np.argsort(is_large, kind="stable")) if apart else blocks
            writer.reuse_files(files[number - base] for number in numbers)

            def read_rows() -> Iterator[pa.Table]:
                for position, part in enumerate(prefetch_blocks(table, blocks, range(len(blocks)))):
                    if position >= len(blocks) - apart:
                        writer.end_block()
                    yield part
                    on_block()

            write_sorted_runs(writer, read_rows(), key)
            staged = writer.finish()
        replacement = BlockReplacement(tuple(blocks.ids), writer.block_count)
        segments = frozenset(table.segments().segments_containing(blocks.ordinals))
        return RewriteOutcome((replacement,), tuple(staged), segments)
