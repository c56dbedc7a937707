"""Segments, blocks and partitions of a table, as Arrow tables of one row each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.indexes.definition import load_definitions
from fuse_index.indexes.registry import Host
from fuse_storage import PartitionSpec, StoredTable

_PARTITION_SUMS = [("blocks", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())]


def segments_table(table: StoredTable) -> pa.Table:
    """List the segments, one row each. ``rows``: those that count. ``bytes``: of its blocks' files."""
    segments = table.segments()
    counts = {
        "rows": segments.table.column("live_rows").combine_chunks(),
        "blocks": segments.block_counts,
        "zones": segments.zone_counts,
        "bytes": segments.sizes,
    }
    return pa.table({"segment": pa.array(segments.ids, pa.string()), **counts, "added_by": segments.added_by})


def blocks_table(table: StoredTable, host: Host) -> pa.Table:
    """List the blocks in order, one row each.

    ``level``: how often its rows were sorted by ``recluster``. ``schema``: the id of the one it was written with.
    ``added_by``: the sequence of the commit. ``indexes``: names of those that cover it. ``location``: key of its
    file.
    """
    segments, blocks = table.segments(), table.blocks()
    segment_numbers = np.repeat(np.arange(len(segments)), segments.block_counts)
    return pa.table(
        {
            "block": pa.array(blocks.ids, pa.string()),
            "segment": pa.array(segments.ids, pa.string()).take(pa.array(segment_numbers)),
            "rows": blocks.live_row_counts,
            "zones": np.diff(blocks.zone_offsets),
            "bytes": blocks.sizes,
            "level": blocks.levels,
            "schema": blocks.schema_ids,
            "added_by": blocks.added_by,
            "indexes": _covering_indexes(table, host),
            "location": pa.array(blocks.locations, pa.string()),
        }
    )


def partitions_table(table: StoredTable) -> pa.Table:
    """List the partitions, one row each, by their values; none of a table that has none.

    ``partition``: a struct of them. ``blocks``, ``rows`` (those that count) and ``bytes`` are sums over the blocks
    of the base: hot rows are of no partition before they are tiered.
    """
    spec, base = PartitionSpec.from_snapshot(table.snapshot), table.segments().base_block_count
    if spec is None:
        return pa.schema([("partition", pa.string()), *_PARTITION_SUMS]).empty_table()
    blocks, kind = table.blocks(), pa.struct([field.arrow for field in spec.fields])
    texts, owners = np.unique(np.array(blocks.partitions[:base], np.str_), return_inverse=True)
    values = [dict(zip(spec.names, (each.as_py() for each in spec.decode(text)), strict=True)) for text in texts]
    sums = [np.ones(base, np.int64), blocks.live_row_counts[:base], blocks.sizes[:base]]
    totals = [np.bincount(owners, each, len(texts)).astype(np.int64) for each in sums]
    listed = pa.table([pa.array(values, kind), *totals], ["partition", *(name for name, _ in _PARTITION_SUMS)])
    order = [pc.struct_field(listed.column("partition").combine_chunks(), name) for name in spec.names]
    keys = pa.table({str(number): part for number, part in enumerate(order)})
    return listed.take(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]))


def _covering_indexes(table: StoredTable, host: Host) -> pa.Array:
    """Name the indexes that know something of each block: lists of text, one for each block."""
    blocks = table.blocks()
    definitions = load_definitions(table.snapshot, host)
    by_name = {definition.name: blocks.sidecars(definition.key) for definition in definitions}
    masks = {name: sidecars.indexed for name, sidecars in by_name.items() if sidecars is not None}
    return pa.array(
        [[name for name, mask in masks.items() if mask[block]] for block in range(len(blocks))],
        pa.list_(pa.string()),
    )
