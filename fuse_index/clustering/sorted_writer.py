"""Rows are sorted by the clustering key on their way into blocks, as many at a time as memory allows: a run.

The blocks of a run follow each other in the key's order, and are about equally large. Those of different runs overlap.
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
    """Write all rows, sorted in runs of ``writer.options.sort_bytes``; as they come where there is no key.

    Memory holds a run twice, and the blocks that the writer holds. Raises as ``SegmentWriter.write``.
    """
    waiting: list[pa.Table] = []
    size = 0
    for batch in batches:
        if key is None:
            writer.write(batch)
            continue
        rows = conform_rows(batch, writer.schema)
        if waiting and size + rows.nbytes > writer.options.sort_bytes:
            SortedRun.from_rows(pa.concat_tables(waiting), key, writer.options).write(writer)
            waiting, size = [], 0
        waiting.append(rows)
        size += rows.nbytes
    if waiting and key is not None:
        SortedRun.from_rows(pa.concat_tables(waiting), key, writer.options).write(writer)


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Rows, where each of them is to be taken from in their order, and where blocks begin and end in it.

    ``places`` has a number for each row; block i is ``places[offsets[i]:offsets[i + 1]]``.
    """

    rows: pa.Table
    permutation: RankArray
    offsets: RankArray

    @staticmethod
    def from_rows(rows: pa.Table, key: ClusterKey, options: WriteOptions) -> SortedRun:
        """In as few blocks as the options allow, equally filled."""
        rows = rows.combine_chunks()
        blocks = max(math.ceil(rows.num_rows / options.block_rows), math.ceil(rows.nbytes / options.block_bytes), 1)
        filled = max(math.ceil(rows.num_rows / blocks), 1)
        return SortedRun(rows, sort_order(rows, key), np.append(np.arange(0, rows.num_rows, filled), rows.num_rows))

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def sorted_values(self, path: Sequence[str]) -> pa.Array:
        """The values at a path, in the order of the run."""
        return column_values(self.rows, path).take(pa.array(self.permutation))

    def write(self, writer: SegmentWriter) -> None:
        """A block after the other; more of them where one would have too many bytes."""
        for start, end in pairwise(self.offsets.tolist()):
            writer.write(self.rows.take(pa.array(self.permutation[start:end])))
            writer.end_block()
