"""Rows are sorted by the clustering key on their way into blocks, as many at a time as memory allows: a run.

The blocks of a run follow each other in the key's order, and are about equally large. Those of different runs overlap.
In a partitioned table that is so within each partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from fuse_index.clustering.key import ClusterKey, sort_order
from fuse_index.clustering.overlaps import RankArray
from fuse_storage import SegmentWriter, WriteOptions, column_values, conform_rows


def write_sorted_runs(
    writer: SegmentWriter, batches: Iterable[pa.RecordBatch | pa.Table], key: ClusterKey | None
) -> None:
    """Write all rows, sorted in runs of ``writer.options.sort_bytes``, or as they come where there is no key.

    Memory holds a run twice, and the blocks that the writer holds. Raises as ``SegmentWriter.write``.
    """
    buffered: list[pa.Table] = []
    buffered_bytes = 0
    for batch in batches:
        if key is None:
            writer.write(batch)
            continue
        rows = conform_rows(batch, writer.schema)
        if buffered and buffered_bytes + rows.nbytes > writer.options.sort_bytes:
            _write_run(writer, pa.concat_tables(buffered), key)
            buffered, buffered_bytes = [], 0
        buffered.append(rows)
        buffered_bytes += rows.nbytes
    if buffered and key is not None:
        _write_run(writer, pa.concat_tables(buffered), key)


def _write_run(writer: SegmentWriter, rows: pa.Table, key: ClusterKey) -> None:
    """Write a run, of a partitioned table each partition by itself."""
    spec = writer.partitions
    for part in (rows,) if spec is None else (part for _, part in spec.split(rows)):
        SortedRun.from_rows(part, key, writer.options).write(writer)


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Rows, the permutation that sorts them, and where blocks begin and end in it.

    ``permutation``: numbers of rows, int64, shape (rows,). Block i is ``permutation[offsets[i]:offsets[i + 1]]``.
    """

    rows: pa.Table
    permutation: RankArray
    offsets: RankArray

    @staticmethod
    def from_rows(rows: pa.Table, key: ClusterKey, options: WriteOptions) -> SortedRun:
        """Sort rows by the key, and cut them into as few blocks as the options allow, equally filled."""
        rows = rows.combine_chunks()
        block_count = max(
            math.ceil(rows.num_rows / options.block_rows), math.ceil(rows.nbytes / options.block_bytes), 1
        )
        rows_per_block = max(math.ceil(rows.num_rows / block_count), 1)
        return SortedRun(
            rows, sort_order(rows, key), np.append(np.arange(0, rows.num_rows, rows_per_block), rows.num_rows)
        )

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def sorted_values(self, path: Sequence[str]) -> pa.Array:
        """Take the values at a path, in the order of the run: an array of one value for each row."""
        return column_values(self.rows, path).take(pa.array(self.permutation))

    def write(self, writer: SegmentWriter) -> None:
        """Write one block after the other; more of them where one would have too many bytes."""
        for start, end in pairwise(self.offsets.tolist()):
            writer.write(self.rows.take(pa.array(self.permutation[start:end])))
            writer.end_block()
