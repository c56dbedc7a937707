"""A table's metadata as Arrow tables: the same words in Python, in Spark and on the command line.

One row per snapshot, segment, block, column, or column of a block. All of it is read from metadata; no row is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.handle import TableHandle
from fuse_index.indexes.definition import load_definitions
from fuse_storage import ColumnStatistics, Field, PartitionSpec, Snapshot, UnitFrame

SNAPSHOTS_SCHEMA = pa.schema(
    [
        ("snapshot", pa.string()),
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("parent", pa.string()),
        ("rows", pa.int64()),
        ("blocks", pa.int64()),
        ("segments", pa.int64()),
        ("bytes", pa.int64()),
        ("schema", pa.int64()),
        ("cluster_by", pa.list_(pa.string())),
        ("indexes", pa.list_(pa.string())),
        ("summary", pa.string()),
    ]
)
"""``bytes``: of the blocks' files. ``summary``: JSON. Of a snapshot that was collected only its log entry is known."""

HISTORY_SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("snapshot", pa.string()),
        ("commit", pa.string()),
        ("parent", pa.string()),
    ]
)

COLUMNS_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("id", pa.int64()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("default", pa.string()),
        ("stored_as", pa.string()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("bounds_exact", pa.bool_()),
        ("bytes", pa.int64()),
    ]
)
"""``name``: with dots for fields of structs. ``default``: what rows hold that were written before the column was there.
``stored_as``: its name in files. Statistics are null where they are unknown, as they are of nested columns as a whole.
``bounds_exact``: whether ``min`` and ``max`` are values, and not bounds that were cut. ``bytes``: as stored.
"""

STATISTICS_SCHEMA = pa.schema(
    [
        ("block", pa.string()),
        ("column", pa.string()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("distinct", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("bounds_exact", pa.bool_()),
        ("bytes", pa.int64()),
    ]
)
"""One row per block and column that has statistics. Null where unknown."""


_PARTITION_SUMS = [("blocks", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())]


class InspectionMixin(TableHandle):
    """The part of ``fuse_index.Table`` that shows its metadata."""

    def history(self) -> pa.Table:
        """List the commits of this branch, newest first."""
        return _history_table(self.stored)

    def snapshots(self, limit: int | None = None) -> pa.Table:
        """List the commits of this branch up to this snapshot, newest first, with what the table was then.

        The columns are those of ``SNAPSHOTS_SCHEMA``. Raises InputError for a limit that is none.
        """
        if limit is not None and limit < 0:
            raise InputError(f"limit={limit!r}: give a number of commits, 0 or more, or None for all")
        rows = [_snapshot_row(entry, snapshot) for entry, snapshot in self.stored.snapshots(limit)]
        return pa.Table.from_pylist(rows, SNAPSHOTS_SCHEMA)

    def segments(self) -> pa.Table:
        """List the segments, one row each. ``rows``: those that count. ``bytes``: of its blocks' files."""
        segments = self.stored.segments()
        counts = {
            "rows": segments.table.column("live_rows").combine_chunks(),
            "blocks": segments.block_counts,
            "zones": segments.zone_counts,
            "bytes": segments.sizes,
        }
        return pa.table({"segment": pa.array(segments.ids, pa.string()), **counts, "added_by": segments.added_by})

    def blocks(self) -> pa.Table:
        """List the blocks in order, one row each.

        ``level``: how often its rows were sorted by ``recluster``. ``schema``: the id of the one it was written with.
        ``added_by``: the sequence of the commit. ``indexes``: names of those that cover it. ``location``: key of its
        file.
        """
        segments, blocks = self.stored.segments(), self.stored.blocks()
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
                "indexes": self._covering_indexes(),
                "location": pa.array(blocks.locations, pa.string()),
            }
        )

    def partitions(self) -> pa.Table:
        """List the partitions, one row each, by their values; none of a table that has none.

        ``partition``: a struct of them. ``blocks``, ``rows`` (those that count) and ``bytes`` are sums over the blocks
        of the base: hot rows are of no partition before they are tiered.
        """
        spec, base = PartitionSpec.from_snapshot(self.snapshot), self.stored.segments().base_block_count
        if spec is None:
            return pa.schema([("partition", pa.string()), *_PARTITION_SUMS]).empty_table()
        blocks, kind = self.stored.blocks(), pa.struct([field.arrow for field in spec.fields])
        texts, owners = np.unique(np.array(blocks.partitions[:base], np.str_), return_inverse=True)
        values = [dict(zip(spec.names, (each.as_py() for each in spec.decode(text)), strict=True)) for text in texts]
        sums = [np.ones(base, np.int64), blocks.live_row_counts[:base], blocks.sizes[:base]]
        totals = [np.bincount(owners, each, len(texts)).astype(np.int64) for each in sums]
        listed = pa.table([pa.array(values, kind), *totals], ["partition", *(name for name, _ in _PARTITION_SUMS)])
        order = [pc.struct_field(listed.column("partition").combine_chunks(), name) for name in spec.names]
        keys = pa.table({str(number): part for number, part in enumerate(order)})
        return listed.take(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]))

    def columns(self) -> pa.Table:
        """List columns and fields of structs, with what is known of each over all blocks; see ``COLUMNS_SCHEMA``."""
        segments = self.stored.segments()
        leaves = {field.id: path for path, field in self.snapshot.schema.leaves()}
        fields = [named for field in self.snapshot.schema.fields for named in _field_paths(field, "")]
        return pa.Table.from_pylist(
            [_column_row(name, field, segments if field.id in leaves else None) for name, field in fields],
            COLUMNS_SCHEMA,
        )

    def statistics(self, columns: Sequence[str] | None = None) -> pa.Table:
        """List what is known of each column in each block, one row for both; see ``STATISTICS_SCHEMA``.

        ``columns``: by default all that have statistics. Raises SchemaError for unknown columns, InputError for such as
        have none.
        """
        leaves = {field.id: (".".join(path), field) for path, field in self.snapshot.schema.leaves()}
        chosen = (
            leaves
            if columns is None
            else {field.id: leaves.get(field.id) for field in map(self.snapshot.schema.find, columns)}
        )
        if columns is not None and (
            unknown := [name for name, leaf in zip(columns, chosen.values(), strict=False) if leaf is None]
        ):
            raise InputError(f"column {unknown[0]!r} has no statistics: it is nested; name a field of it")
        blocks = self.stored.blocks(statistics=list(chosen))
        tables = []
        for name, field in (leaf for leaf in chosen.values() if leaf is not None):
            statistics = blocks.statistics(field.id) or ColumnStatistics.unknown(field.type, len(blocks))
            tables.append(_statistics_table(blocks.ids, name, blocks.row_counts, statistics))
        rows = pa.concat_tables([STATISTICS_SCHEMA.empty_table(), *tables])
        order = np.arange(len(rows)).reshape(max(len(tables), 1), -1).T.reshape(-1)  # block after block
        return rows.take(pa.array(order))

    def _covering_indexes(self) -> pa.Array:
        """Name the indexes that know something of each block: lists of text, one for each block."""
        blocks = self.stored.blocks()
        definitions = load_definitions(self.snapshot, self.host)
        by_name = {definition.name: blocks.sidecars(definition.key) for definition in definitions}
        masks = {name: sidecars.indexed for name, sidecars in by_name.items() if sidecars is not None}
        return pa.array(
            [[name for name, mask in masks.items() if mask[block]] for block in range(len(blocks))],
            pa.list_(pa.string()),
        )


def _snapshot_row(entry: storage.RefEntry, snapshot: Snapshot | None) -> dict[str, Any]:
    row: dict[str, Any] = {"snapshot": entry.snapshot_id, "sequence": entry.version}
    row |= {"timestamp": entry.timestamp, "operation": entry.operation}
    if snapshot is None:
        return row
    return row | {
        "parent": snapshot.parent,
        "rows": snapshot.row_count,
        "blocks": snapshot.block_count,
        "segments": snapshot.segment_count,
        "bytes": snapshot.bytes,
        "schema": snapshot.schema_id,
        "cluster_by": snapshot.cluster_by,
        "indexes": list(snapshot.definitions),
        "summary": json.dumps(dict(snapshot.summary), ensure_ascii=False),
    }


def _field_paths(field: Field, prefix: str) -> list[tuple[str, Field]]:
    """List a column and, if it is a struct, all fields in it, with their paths."""
    name = prefix + field.name
    children = field.children if is_.is_struct(field.type) else ()
    return [(name, field), *(named for child in children for named in _field_paths(child, f"{name}."))]


def _column_row(name: str, field: Field, units: UnitFrame | None) -> dict[str, Any]:
    row = {
        "name": name,
        "id": field.id,
        "type": str(field.type),
        "nullable": field.nullable,
        "stored_as": field.physical_name,
        "default": None
        if field.default is None
        else _display_texts(pa.array([field.default_scalar.as_py()], field.type))[0].as_py(),
    }
    statistics = None if units is None else units.statistics(field.id)
    if statistics is None or not len(statistics) or units is None:
        return row
    overall = statistics.reduced(np.array([0, len(statistics)]), units.row_counts)
    described = _statistics_table([""], name, np.array([int(units.row_counts.sum())]), overall).to_pylist()[0]
    return row | {key: value for key, value in described.items() if key in COLUMNS_SCHEMA.names}


def _statistics_table(ids: Sequence[str], name: str, row_counts: Any, statistics: ColumnStatistics) -> pa.Table:
    are_known = pc.and_(statistics.min.is_valid(), statistics.max.is_valid())
    are_exact = pc.and_(are_known, pc.invert(pc.or_(statistics.min_cut, statistics.max_cut)))
    columns = [
        pa.array(ids, pa.string()),
        pa.repeat(name, len(ids)),
        pa.array(row_counts, pa.int64()),
        statistics.null_count,
        statistics.nan_count,
        statistics.distinct_count,
        _display_texts(statistics.min),
        _display_texts(statistics.max),
        are_exact,
        statistics.size,
    ]
    return pa.table(columns, schema=STATISTICS_SCHEMA)


def _display_texts(values: pa.Array) -> pa.Array:
    """Cast values to text that people read: binary in hex, times in ISO form."""
    if is_.is_binary(values.type):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _history_table(table: storage.StoredTable) -> pa.Table:
    """List the commits of the table's branch, newest first."""
    rows = [
        {
            "sequence": entry.version,
            "timestamp": entry.timestamp,
            "operation": entry.operation,
            "snapshot": entry.snapshot_id,
            "commit": entry.commit_id,
            "parent": entry.parent,
        }
        for entry in table.history()
    ]
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)
