"""The list of a snapshot's segments: one row for each, with what rolls up from its blocks, and the files it leads to.

Statistics of a column are kept under its id, ``c.<id>.min`` and so on; what an index definition knows of a segment
under its key, ``x.<key>.path`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import statistics
from fuse_storage.errors import Corrupt
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.segment import (
    check_block_rows,
    decode_list_row,
    has_deleted_rows,
    segment_path,
    zones_path,
)
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.schema.schema import Schema
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.statistics.wide import StatisticsColumns, fill_statistics, filled_statistics
from fuse_storage.store.cache import Cache
from fuse_storage.store.store import Store
from fuse_storage.validation.features import DELETION_VECTORS_FEATURE
from fuse_storage.validation.metadata_columns import MAX_COUNT, check_columns, check_ids, check_sum

SEGMENT_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("length", pa.int64()),
        ("hash", pa.string()),
        ("zones_length", pa.int64()),  # null: there is no zones file
        ("zones_hash", pa.string()),
        ("row_count", pa.int64()),
        ("live_rows", pa.int64()),
        ("block_count", pa.int64()),
        ("zone_count", pa.int64()),
        ("size", pa.int64()),  # of the blocks' files
        ("schema_ids", pa.list_(pa.field("element", pa.int32()))),  # that its blocks were written with
        ("first_row_id", pa.int64()),
        ("added_by", pa.int64()),
    ]
)
"""A segment's row in the list, besides statistics and sidecars."""


def segment_list_path(snapshot_id: str) -> str:
    return f"_ss/{snapshot_id}.parquet"


def sidecar_columns(key: str) -> list[str]:
    """The columns of a list that say what the definition with this key knows of each segment.

    The reference of its ``_x`` file, how many blocks are indexed, the bytes of it and its payloads, the roll-up, and
    the payload version of what it was made of.
    """
    parts = ("path", "length", "hash", "indexed", "size", "roll_up", "roll_up_version")
    return [f"x.{key}.{part}" for part in parts]


def segment_row(
    segment_id: str,
    segment: FileRef,
    zones: FileRef | None,
    blocks: pa.Table,
    schema: Schema,
    added_by: int | None = None,
) -> pa.Table:
    """The row in the list of a segment with these blocks: sums, and the union of their statistics."""
    counts = blocks.column("row_count").to_numpy()
    columns: dict[str, pa.Array] = {
        "id": [segment_id],
        "length": [segment.length],
        "hash": [segment.hash],
        "zones_length": [None if zones is None else zones.length],
        "zones_hash": [None if zones is None else zones.hash],
        "row_count": [int(counts.sum())],
        "live_rows": [pc.sum(blocks.column("live_rows")).as_py()],
        "block_count": [len(blocks)],
        "zone_count": [pc.sum(pc.list_value_length(blocks.column("zone_rows"))).as_py()],
        "size": [pc.sum(blocks.column("size")).as_py()],
        "schema_ids": [sorted(pc.unique(blocks.column("schema_id")).to_pylist())],
        "first_row_id": [None],
        "added_by": [added_by],
    }
    columns = {field.name: pa.array(columns[field.name], field.type) for field in SEGMENT_SCHEMA}
    if len(blocks) == 1:  # as each append of few rows brings
        found_columns = zip(blocks.schema.names, blocks.columns, strict=True)
        return pa.table(columns | {name: column for name, column in found_columns if name.startswith("c.")})
    whole = np.array([0, len(blocks)])
    for _, field in schema.leaves():
        found = statistics.decode_statistics(blocks, field.id, field.type)
        if found is not None:
            rolled_up = statistics.roll_up_statistics(found, whole, counts)
            columns |= statistics.encode_statistics(field.id, rolled_up, sparse=True)
    return pa.table(columns)


def with_columns(row: pa.Table, more: bytes) -> pa.Table:
    """A row of a list, with the columns of another, which come instead of its own of these names."""
    found = decode_list_row(more)
    kept = row.drop_columns([name for name in found.schema.names if metadata_table.has_column(row, name)])
    for name, column in zip(found.schema.names, found.columns, strict=True):
        kept = kept.append_column(name, column)
    return kept


def statistics_columns(schema: Schema, units: pa.Table) -> dict[str, pa.Array]:
    """The statistics of these units (rows of segments or zones) in the present types; null where nothing is known."""
    listed = _statistics_columns_of(schema)
    if listed.are_in(units):  # to take them apart and put them together takes twenty times as long
        return filled_statistics(units, listed.types)
    columns: dict[str, pa.Array] = {}
    for _, field in schema.leaves():
        found = statistics.decode_statistics(units, field.id, field.type)
        columns |= statistics.encode_statistics(field.id, found or ColumnStatistics.unknown(field.type, len(units)))
    return columns


def assemble_segment_list(rows: Iterable[pa.Table], schema: Schema, keys: Iterable[str]) -> pa.Table:
    """One list of these rows: statistics of the columns that there are, sidecars of the definitions that there are."""
    listed = _statistics_columns_of(schema)
    parts = [part if listed.are_in(part) else _cast_statistics(part, schema) for part in _concat_by_schema(rows)]
    if len(parts) == 1:
        whole = parts[0]
    else:
        found = {name for part in parts for name in part.schema.names}
        kept = {name: kind for name, kind in listed.types.items() if name in found}
        filled = [fill_statistics(part, kept) for part in parts]
        whole = pa.concat_tables([SEGMENT_SCHEMA.empty_table(), *filled], promote_options="default")
    names = [*SEGMENT_SCHEMA.names, *(name for name in whole.schema.names if name.startswith("c."))]
    names += [name for key in sorted(keys) for name in sidecar_columns(key) if metadata_table.has_column(whole, name)]
    return whole if names == whole.schema.names else whole.select(names).combine_chunks()


def _statistics_columns_of(schema: Schema) -> StatisticsColumns:
    """The columns of statistics of a schema, worked out once: of thousands it takes longer than to write two rows."""
    kept = vars(schema)
    if "statistics_columns" not in kept:
        kept["statistics_columns"] = StatisticsColumns.of([(field.id, field.type) for _, field in schema.leaves()])
    found: StatisticsColumns = kept["statistics_columns"]
    return found


def _concat_by_schema(rows: Iterable[pa.Table]) -> list[pa.Table]:
    """Join rows into as few tables as there are changes of columns."""
    runs: list[list[pa.Table]] = []
    for part in rows:
        if runs and part.schema.equals(runs[-1][0].schema):
            runs[-1].append(part)
        else:
            runs.append([part])
    return [pa.concat_tables(run).combine_chunks() for run in runs]


def _cast_statistics(rows: pa.Table, schema: Schema) -> pa.Table:
    columns = {name: rows.column(name) for name in SEGMENT_SCHEMA.names}
    columns |= statistics_columns(schema, rows)
    columns |= {name: rows.column(name) for name in rows.schema.names if name.startswith("x.")}
    return statistics.sparse_statistics(pa.table(columns))


def read_segment_list(store: Store, snapshot: Snapshot, cache: Cache | None = None) -> pa.Table:
    """The list of a snapshot's segments, without its tail. Raises NotFound, Corrupt or StorageError."""
    if snapshot.segments is None:
        return SEGMENT_SCHEMA.empty_table()
    part = metadata_table.MetadataFile(snapshot.segments, snapshot.segment_count, _check_segment_rows)
    found = metadata_table.read_all_columns(store, part, cache)
    tail = snapshot.tail
    try:
        check_sum(found.column("live_rows"), "live_rows", snapshot.row_count - (tail.rows if tail else 0))
        check_sum(found.column("block_count"), "block_count", snapshot.block_count - (tail.blocks if tail else 0))
        if has_deleted_rows(found) and DELETION_VECTORS_FEATURE not in snapshot.reader_features:
            raise ValueError(f"rows were deleted without the feature {DELETION_VECTORS_FEATURE!r}")
    except ValueError as problem:
        raise Corrupt(f"{store.url}/{snapshot.segments.path} is not of snapshot {snapshot.id}: {problem}") from problem
    return found


MAX_BLOCKS_READ = 1 << 24
"""Blocks of a table: places are kept for all of them before any file that tells of them is read."""
_SEGMENT_BOUNDS = {
    "length": (0, MAX_COUNT),
    "row_count": (1, MAX_COUNT),
    "live_rows": (1, MAX_COUNT),
    "block_count": (1, MAX_BLOCKS_READ),
    "zone_count": (1, MAX_COUNT),
    "size": (0, MAX_COUNT),
}
_SIDECAR_TYPES = (pa.string(), pa.int64(), pa.string(), pa.int64(), pa.int64())
"""Types of what a list says of an index, but for the roll-up, whose type is the index's."""


def _check_segment_rows(rows: pa.Table) -> None:
    """Raise ValueError for a list that no writer wrote: of other types, or numbers that cannot be."""
    if missing := [name for name in SEGMENT_SCHEMA.names if not metadata_table.has_column(rows, name)]:
        raise ValueError(f"it lacks column {missing[0]!r}: it is no list of segments")
    check_columns(rows, SEGMENT_SCHEMA, _SEGMENT_BOUNDS)
    check_ids(rows.column("id"), "id")
    if sum(rows.column("block_count").to_pylist()) > MAX_BLOCKS_READ:
        raise ValueError(f"it has more than {MAX_BLOCKS_READ:,} blocks")
    references = [("zones_length", "zones_length", "zones_hash")]
    for name in rows.schema.names:
        if name.startswith("x.") and name.endswith(".path"):
            columns = sidecar_columns(name[2:-5])[: len(_SIDECAR_TYPES)]
            if missing := [column for column in columns if not metadata_table.has_column(rows, column)]:
                raise ValueError(f"it lacks column {missing[0]!r}")
            check_columns(rows, pa.schema(zip(columns, _SIDECAR_TYPES, strict=True)), {})
            references.append((columns[0], columns[1], columns[2]))
    for present, length, digest in references:
        incomplete = pc.or_(pc.is_null(rows.column(length)), pc.is_null(rows.column(digest)))
        if pc.any(pc.and_(pc.is_valid(rows.column(present)), incomplete), min_count=0).as_py():
            raise ValueError(f"a file in column {present!r} has no length, or no hash")


def segment_files(rows: pa.Table) -> list[metadata_table.MetadataFile]:
    """The segment files that rows of a list refer to.

    Of a segment of one block the list says all that there is to say of the block's statistics: its file may lack them.
    """
    columns = (rows.column(name).to_pylist() for name in ("id", "length", "hash", "block_count"))
    return [
        metadata_table.MetadataFile(
            FileRef(segment_path(segment_id), length, digest),
            count,
            check_block_rows,
            beside=(rows, row) if count == 1 else None,
        )
        for row, (segment_id, length, digest, count) in enumerate(zip(*columns, strict=True))
    ]


def take_without_statistics(rows: pa.Table, indices: metadata_table.IndexArray) -> pa.Table:
    """Rows of a list at these positions, without the columns of which wide tables have thousands.

    ``indices``: int64, shape (k,).
    """
    names = [name for name in rows.schema.names if not name.startswith("c.")]
    return rows.select(names).take(pa.array(indices))


def zone_files(rows: pa.Table) -> list[metadata_table.MetadataFile | None]:
    """The zones files that rows of a list refer to; None where there is none."""
    columns = (rows.column(name).to_pylist() for name in ("id", "zones_length", "zones_hash", "zone_count"))
    return [
        None if length is None else metadata_table.MetadataFile(FileRef(zones_path(segment_id), length, digest), count)
        for segment_id, length, digest, count in zip(*columns, strict=True)
    ]


def zone_parts(
    rows: pa.Table, blocks: Sequence[metadata_table.MetadataFile | None], zone_counts: Sequence[int]
) -> list[metadata_table.MetadataFile | None]:
    """The files with the statistics of so many zones of each of these segments: None where there are none.

    Blocks of one zone each need no zones file: ``blocks``, the files with their rows, tell as much.
    """
    return [
        replace(zones, row_count=count) if zones else own if own and own.row_count == count else None
        for zones, own, count in zip(zone_files(rows), blocks, zone_counts, strict=True)
    ]


def sidecar_files(rows: pa.Table, key: str) -> list[metadata_table.MetadataFile | None]:
    """The ``_x`` files of this definition that rows of a list refer to; None where there is none."""
    path, length, digest, *_ = sidecar_columns(key)
    if not metadata_table.has_column(rows, path):
        return [None] * len(rows)
    columns = (rows.column(name).to_pylist() for name in (path, length, digest, "block_count"))
    return [
        None if path is None else metadata_table.MetadataFile(FileRef(path, length, digest), count)
        for path, length, digest, count in zip(*columns, strict=True)
    ]
