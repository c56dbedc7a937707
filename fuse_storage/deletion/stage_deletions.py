"""Rows are deleted without being rewritten: segments are staged whose blocks lie in the same files, with other vectors.

What comes is a block of another id for each, with all that statistics and indexes knew of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from fuse_storage.commit.merge_segments import SegmentMerger
from fuse_storage.commit.sidecar_writer import SidecarBuilder
from fuse_storage.deletion_vector import write_vectors
from fuse_storage.errors import InvalidArgument
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.metadata_table import counts_to_offsets
from fuse_storage.metadata.segment import MAX_BLOCKS_PER_SEGMENT, StagedSegment
from fuse_storage.metadata.segment_list import assemble_segment_list
from fuse_storage.parquet.pages import RowMask
from fuse_storage.table import StoredTable


def stage_deletions(
    table: StoredTable,
    builders: Sequence[SidecarBuilder],
    deleted: Mapping[int, RowMask],
    names: Mapping[int, str | None] | None = None,
) -> list[StagedSegment]:
    """Stage the blocks that come in the place of these, in their order, by which these rows no longer count.

    ``deleted``: by number of a block, bool, shape (rows of the block,): all that is not to count from now on, those of
    the vector that it has included. ``names``: what the sources of these blocks call it. Some row has to be left, and
    one to go, and no block may be of the tail. Raises InvalidArgument, StorageError; then nothing of it stays.
    """
    segments, started = table.segments(), datetime.now(UTC)
    blocks = table.blocks().take(np.array(list(deleted), np.int64))
    for number, mask in deleted.items():
        if number >= segments.base_block_count or mask.all() or not mask.any():
            raise InvalidArgument(
                f"block {number} cannot have a deletion vector: it is of the tail, or none, or all, go"
            )
    if not deleted:
        return []
    vectors = write_vectors(table.store, list(deleted.values()))
    schema, keys = table.snapshot.schema, sorted(table.snapshot.keys)
    merger = SegmentMerger(table.store, schema, keys, {builder.key: builder for builder in builders})
    staged = []
    for start in range(0, len(deleted), MAX_BLOCKS_PER_SEGMENT):
        part = slice(start, start + MAX_BLOCKS_PER_SEGMENT)
        numbers = np.array(list(deleted)[part], np.int64)
        owners = np.searchsorted(segments.block_offsets, numbers, side="right") - 1
        used = np.unique(owners)
        starts = dict(zip(used.tolist(), counts_to_offsets(segments.block_counts[used]).tolist(), strict=False))
        places = [
            starts[owner] + number - segments.block_offsets[owner]
            for owner, number in zip(owners, numbers, strict=True)
        ]
        live = [int(np.count_nonzero(~mask)) for mask in list(deleted.values())[part]]
        replaced = {
            "id": pa.array([new_id() for _ in numbers], pa.string()),
            "location": pa.array(blocks.locations[part], pa.string()),
            "live_rows": pa.array(live, pa.int64()),
            "stats_exact": pa.array([False] * len(numbers), pa.bool_()),
            "deletion_vector": pa.array([str(vector) for vector in vectors[part]], pa.string()),
        }
        if names is not None:
            replaced["source_deletes"] = pa.array([names.get(number) for number in list(deleted)[part]], pa.string())
        rows = assemble_segment_list([segments.table.take(pa.array(used))], schema, keys)
        row = merger.rearrange_blocks(rows, np.array(places, np.int64), replaced)
        row_count = int(blocks.row_counts[part].sum())
        segment_id = str(row.column("id")[0].as_py())
        staged.append(StagedSegment(segment_id, table.snapshot.schema_id, row_count, len(numbers), started, row))
    return staged
