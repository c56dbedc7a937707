"""Rows are sorted by the clustering key on their way into blocks, as many at a time as memory allows: a run.

The blocks of a run follow each other in the key's order, and are about equally large. Those of different runs overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa

from fuse_index.ordering import ClusterKey, order
from fuse_storage import SegmentWriter, conformed


def write_runs(writer: SegmentWriter, batches: Iterable[pa.RecordBatch | pa.Table], key: ClusterKey | None) -> None:
    """Write all rows, sorted in runs of ``writer.limits.sort_bytes``; as they come where there is no key.

    Memory holds a run twice, and the blocks that the writer holds. Raises as ``SegmentWriter.write``.
    """
    waiting: list[pa.Table] = []
    size = 0
    for batch in batches:
        if key is None:
            writer.write(batch)
            continue
        rows = conformed(batch, writer.schema)
        if waiting and size + rows.nbytes > writer.limits.sort_bytes:
            write_run(writer, pa.concat_tables(waiting), key)
            waiting, size = [], 0
        waiting.append(rows)
        size += rows.nbytes
    if waiting and key is not None:
        write_run(writer, pa.concat_tables(waiting), key)


def write_run(writer: SegmentWriter, rows: pa.Table, key: ClusterKey) -> None:
    """Write these rows, of the writer's schema, in the order of the key, in as few blocks as its limits allow, equally filled."""
    if not rows.num_rows:
        return
    limits = writer.limits
    rows = rows.combine_chunks()
    places = order(rows, key)
    blocks = max(math.ceil(rows.num_rows / limits.block_rows), math.ceil(rows.nbytes / limits.block_bytes))
    filled = math.ceil(rows.num_rows / blocks)
    for start in range(0, rows.num_rows, filled):
        writer.write(rows.take(pa.array(places[start : start + filled])))
        writer.cut()
