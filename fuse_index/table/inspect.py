"""What there is to see of a table, as Arrow tables: the same words in Python, in Spark and on the command line.

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
from fuse_storage import ColumnStatistics, Field, Snapshot, UnitFrame

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
"""``bytes``: of the blocks' files. ``summary``: JSON. Of snapshots that have been collected only the entry of the log
is known.
"""

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


class InspectionMixin(TableHandle):
    """The part of ``fuse_index.Table`` that shows what there is of it."""

    def history(self) -> pa.Table:
        """Commits of this branch, newest first."""
        return _history_table(self.stored)

    def snapshots(self, limit: int | None = None) -> pa.Table:
        """One row per commit of this branch up to this snapshot, newest first, with what the table was then; see
        ``SNAPSHOTS_SCHEMA``.

        Raises InputError for a limit that is none.
        """
        if limit is not None and limit < 0:
            raise InputError(f"limit={limit!r}: give a number of commits, 0 or more, or None for all")
        rows = [_snapshot_row(entry, found) for entry, found in self.stored.snapshots(limit)]
        return pa.Table.from_pylist(rows, SNAPSHOTS_SCHEMA)

    def segments(self) -> pa.Table:
        """One row per segment. ``bytes``: of its blocks' files."""
        listed = self.stored.segments()
        counts = {
            "rows": listed.row_counts,
            "blocks": listed.block_counts,
            "zones": listed.zone_counts,
            "bytes": listed.sizes,
        }
        return pa.table({"segment": pa.array(listed.ids, pa.string()), **counts, "added_by": listed.added_by})

    def blocks(self) -> pa.Table:
        """One row per block, in order.

        ``level``: how often its rows were sorted by ``recluster``. ``schema``: the id of the one it was written with.
        ``added_by``: the sequence of the commit. ``indexes``: names of those that cover it. ``location``: key of its
        file.
        """
        listed, found = self.stored.segments(), self.stored.blocks()
        owners = np.repeat(np.arange(len(listed)), listed.block_counts)
        return pa.table(
            {
                "block": pa.array(found.ids, pa.string()),
                "segment": pa.array(listed.ids, pa.string()).take(pa.array(owners)),
                "rows": found.row_counts,
                "zones": np.diff(found.zone_offsets),
                "bytes": found.sizes,
                "level": found.levels,
                "schema": found.schema_ids,
                "added_by": found.added_by,
                "indexes": self._covering_indexes(),
                "location": pa.array(found.locations, pa.string()),
            }
        )

    def columns(self) -> pa.Table:
        """One row per column, and per field of a struct, with what is known of it over all blocks; see
        ``COLUMNS_SCHEMA``."""
        segments = self.stored.segments()
        leaves = {field.id: path for path, field in self.snapshot.schema.leaves()}
        fields = [one for field in self.snapshot.schema.fields for one in _field_paths(field, "")]
        return pa.Table.from_pylist(
            [_column_row(name, field, segments if field.id in leaves else None) for name, field in fields],
            COLUMNS_SCHEMA,
        )

    def statistics(self, columns: Sequence[str] | None = None) -> pa.Table:
        """One row per block and column (of ``columns``, by default of all that have statistics); see
        ``STATISTICS_SCHEMA``.

        Raises SchemaError for unknown columns, InputError for such as have none.
        """
        leaves = {field.id: (".".join(path), field) for path, field in self.snapshot.schema.leaves()}
        chosen = (
            leaves
            if columns is None
            else {field.id: leaves.get(field.id) for field in map(self.snapshot.schema.find, columns)}
        )
        if columns is not None and (
            without := [name for name, found in zip(columns, chosen.values(), strict=False) if found is None]
        ):
            raise InputError(f"column {without[0]!r} has no statistics: it is nested; name a field of it")
        blocks = self.stored.blocks(statistics=list(chosen))
        tables = []
        for name, field in (found for found in chosen.values() if found is not None):
            kept = blocks.statistics(field.id) or ColumnStatistics.unknown(field.type, len(blocks))
            tables.append(_statistics_table(blocks.ids, name, blocks.row_counts, kept))
        every = pa.concat_tables([STATISTICS_SCHEMA.empty_table(), *tables])
        order = np.arange(len(every)).reshape(max(len(tables), 1), -1).T.reshape(-1)  # block after block
        return every.take(pa.array(order))

    def _covering_indexes(self) -> pa.Array:
        """Of each block, the names of the indexes that know something of it."""
        blocks = self.stored.blocks()
        kept = {found.name: blocks.sidecars(found.key) for found in load_definitions(self.snapshot, self.host)}
        masks = {name: sidecars.indexed for name, sidecars in kept.items() if sidecars is not None}
        return pa.array(
            [[name for name, mask in masks.items() if mask[place]] for place in range(len(blocks))],
            pa.list_(pa.string()),
        )


def _snapshot_row(entry: storage.RefEntry, found: Snapshot | None) -> dict[str, Any]:
    known: dict[str, Any] = {"snapshot": entry.snapshot_id, "sequence": entry.sequence}
    known |= {"timestamp": entry.timestamp, "operation": entry.operation}
    if found is None:
        return known
    return known | {
        "parent": found.parent,
        "rows": found.row_count,
        "blocks": found.block_count,
        "segments": found.segment_count,
        "bytes": found.bytes,
        "schema": found.schema_id,
        "cluster_by": found.cluster_by,
        "indexes": list(found.definitions),
        "summary": json.dumps(dict(found.summary), ensure_ascii=False),
    }


def _field_paths(field: Field, above: str) -> list[tuple[str, Field]]:
    """A column and, if it is a struct, all fields in it, by their paths."""
    name = above + field.name
    inner = field.children if is_.is_struct(field.type) else ()
    return [(name, field), *(one for child in inner for one in _field_paths(child, f"{name}."))]


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
    kept = None if units is None else units.statistics(field.id)
    if kept is None or not len(kept) or units is None:
        return row
    whole = kept.reduced(np.array([0, len(kept)]), units.row_counts)
    told = _statistics_table([""], name, np.array([int(units.row_counts.sum())]), whole).to_pylist()[0]
    return row | {key: value for key, value in told.items() if key in COLUMNS_SCHEMA.names}


def _statistics_table(ids: Sequence[str], name: str, row_counts: Any, kept: ColumnStatistics) -> pa.Table:
    exact = pc.and_(pc.and_(kept.min.is_valid(), kept.max.is_valid()), pc.invert(pc.or_(kept.min_cut, kept.max_cut)))
    found = [
        pa.array(ids, pa.string()),
        pa.repeat(name, len(ids)),
        pa.array(row_counts, pa.int64()),
        kept.null_count,
        kept.nan_count,
        kept.distinct_count,
        _display_texts(kept.min),
        _display_texts(kept.max),
        exact,
        kept.size,
    ]
    return pa.table(found, schema=STATISTICS_SCHEMA)


def _display_texts(values: pa.Array) -> pa.Array:
    """Values as text that people read: binary in hex, times in ISO form."""
    if is_.is_binary(values.type):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _history_table(table: storage.StoredTable) -> pa.Table:
    """Commits of the table's branch, newest first."""
    rows = [
        {
            "sequence": entry.sequence,
            "timestamp": entry.timestamp,
            "operation": entry.operation,
            "snapshot": entry.snapshot_id,
            "commit": entry.commit_id,
            "parent": entry.parent,
        }
        for entry in table.history()
    ]
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)
