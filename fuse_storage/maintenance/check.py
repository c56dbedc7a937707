"""Invariants of every table at every time, checked on its files: for tests, and for whoever doubts a table.

Everything is read again, from the store, and nothing is taken from memory but what was verified. Slow, and meant to be.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.bounds import extremes
from fuse_storage.deletion.live_rows import live_row_masks
from fuse_storage.errors import NotFound
from fuse_storage.hot.entry import DELETE_CHANGE
from fuse_storage.hot.tail import read_tail, tail_totals
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, read_verified
from fuse_storage.metadata.metadata_table import MetadataFile
from fuse_storage.metadata.pack import PackSlice
from fuse_storage.metadata.refs import RefEntry
from fuse_storage.metadata.segment import BLOCK_SCHEMA, MAX_BLOCKS_PER_SEGMENT, OWN_FORMAT, block_columns, block_path
from fuse_storage.metadata.segment_frame import UnitFrame
from fuse_storage.metadata.segment_list import read_segment_list, segment_files, sidecar_files, zone_files
from fuse_storage.metadata.sidecar import SIDECAR_COLUMN_TYPES
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.footer import FIRST_ZONE_OFFSET, BlockFile
from fuse_storage.parquet.reader import read_block
from fuse_storage.partitions.spec import PartitionSpec
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.statistics import column_values, compute_statistics
from fuse_storage.store.cache import Cache
from fuse_storage.store.ranges import MAX_FILE_BYTES
from fuse_storage.store.shared_files import resolve_store
from fuse_storage.table import StoredTable

_FORMER_NAMES = {"log_offsets": "source_deletes"}
"""Names of columns of blocks as an older version wrote them, which had them reserved, and NULL."""


def check_invariants(table: StoredTable) -> None:
    """Raise AssertionError, or the StorageError of a file that cannot be read, if this table is not sound."""
    history = table.entries()
    _check_chain(history)
    later: Snapshot | None = None
    for entry in history:
        if entry.reference is not None:
            try:
                data = read_verified(table.store, entry.reference)
            except NotFound:
                assert entry != table.entry, "the head was collected"
                continue
            snapshot = Snapshot.decode(data, entry.reference.path)
            _check_claims(snapshot, entry)
            if later is not None and later.same_rows and later.version == snapshot.version + 1:
                assert row_rules(later).keeps_row_count(snapshot)
            later = snapshot
    assert history[0] == table.entry
    _check_snapshot(table)


def _check_chain(history: list[RefEntry]) -> None:
    assert [entry.sequence for entry in history] == list(range(len(history), 0, -1))
    assert len({entry.commit_id for entry in history}) == len(history)
    assert history[-1].parent is None
    for later, earlier in pairwise(history):
        assert later.parent == earlier.commit_id
        assert later.timestamp > earlier.timestamp


def _check_claims(snapshot: Snapshot, entry: RefEntry) -> None:
    claimed = (snapshot.id, snapshot.sequence, snapshot.commit_id, snapshot.timestamp, snapshot.operation)
    assert claimed == (entry.snapshot_id, entry.sequence, entry.commit_id, entry.timestamp, entry.operation)


def _check_snapshot(table: StoredTable) -> None:
    snapshot, store = table.snapshot, table.store
    segment_rows = read_segment_list(store, snapshot, Cache(0))
    totals = {
        name: metadata_table.column_as_int64(segment_rows, name)
        for name in ("row_count", "live_rows", "block_count", "zone_count", "size")
    }
    tail = read_tail(store, snapshot, Cache(0))
    counts = (0, 0, 0) if snapshot.tail is None else (snapshot.tail.rows, snapshot.tail.blocks, snapshot.tail.bytes)
    assert snapshot.tail == tail_totals(tail, None if snapshot.tail is None else snapshot.tail.reference)
    assert snapshot.row_count == totals["live_rows"].sum() + counts[0]
    assert snapshot.block_count == totals["block_count"].sum() + counts[1]
    assert snapshot.bytes == totals["size"].sum() + counts[2]
    assert snapshot.segment_count == len(segment_rows)
    assert len(set(segment_rows.column("id").to_pylist())) == len(segment_rows)
    row_id_ranges: list[tuple[int, int]] = []
    for number, (segment_file, zones) in enumerate(
        zip(segment_files(segment_rows), zone_files(segment_rows), strict=True)
    ):
        rows = metadata_table.read_all_columns(store, segment_file, Cache(0))
        assert 0 < len(rows) <= MAX_BLOCKS_PER_SEGMENT
        there = [_FORMER_NAMES.get(name, name) for name in rows.column_names]
        missing = {"seal", "zone_sizes", "modified", "etag"}.difference(there)  # an older version did not write them
        own_names = [name for name in BLOCK_SCHEMA.names if name not in missing]
        assert there[: len(own_names)] == own_names
        for name in ("row_count", "live_rows"):
            assert metadata_table.column_as_int64(rows, name).sum() == totals[name][number]
        assert metadata_table.column_as_int64(rows, "size").sum() == totals["size"][number]
        assert pc.sum(pc.list_value_length(rows.column("zone_rows"))).as_py() == totals["zone_count"][number]
        if zones is not None:
            assert metadata_table.read_all_columns(store, zones, Cache(0)).num_rows == zones.row_count
        next_row_id = segment_rows.column("first_row_id")[number].as_py()
        for row in block_columns(rows).to_pylist():
            _check_file(table, row)
            first_of_block = row["first_row_id"] if row["first_row_id"] is not None else next_row_id
            next_row_id = None if next_row_id is None else next_row_id + row["row_count"]
            row_id_ranges.append((first_of_block, row["row_count"]))
    for row in [] if tail is None else tail.to_pylist():
        _check_file(table, row)
        row_id_ranges.append((row["first_row_id"], row["row_count"]))
    for (start, count), (following, _) in pairwise(sorted(row_id_ranges)):
        assert start + count <= following, "two rows have one row id"
    assert not row_id_ranges or sum(max(row_id_ranges)) <= snapshot.next_row_id
    for key in snapshot.keys:
        for sidecar_file in sidecar_files(segment_rows, key):
            if sidecar_file is not None:
                _check_sidecars(table, sidecar_file)
    live_row_masks(table.blocks())  # which reads and judges each vector
    _check_statistics(table)


def _check_file(table: StoredTable, row: dict[str, object]) -> None:
    if row["format"] != OWN_FORMAT:
        assert table.snapshot.source is not None
        assert row["seal"] is not None
        assert sum(row["zone_rows"]) == row["row_count"]  # type: ignore[call-overload]
        return  # its footer is verified, and its rows are compared with its statistics, like all others
    path = str(row["location"] or block_path(str(row["id"])))
    store, path = resolve_store(table.store, path, table.snapshot.shares_files)
    read_verified(store, FileRef(path, int(str(row["size"])), str(row["hash"])), MAX_FILE_BYTES)
    counts = row["zone_rows"]
    assert isinstance(counts, list)
    assert sum(counts) == row["row_count"]
    assert row["live_rows"] == row["row_count"] or (row["deletion_vector"] is not None and not row["stats_exact"])
    schema = table.snapshot.schemas[int(str(row["schema_id"]))]
    sizes = row["zone_sizes"]
    if sizes is not None:
        assert isinstance(sizes, list)
        assert len(sizes) == len(counts)
        assert FIRST_ZONE_OFFSET + sum(sizes) == row["footer_offset"]
    seal = None if row["seal"] is None else int(str(row["seal"]))
    file = BlockFile(path, int(str(row["footer_offset"])), int(str(row["footer_length"])), seal=seal)
    names = table.snapshot.key if row.get("change") == DELETE_CHANGE else schema.names[:1]
    for zone, count in enumerate(counts):
        assert read_block(store, file, schema, names, [zone], Cache(0)).num_rows == count


def _check_sidecars(table: StoredTable, sidecar_file: MetadataFile) -> None:
    rows = metadata_table.read_all_columns(table.store, sidecar_file, Cache(0))
    assert {name: rows.schema.field(name).type for name in SIDECAR_COLUMN_TYPES} == SIDECAR_COLUMN_TYPES
    for row in rows.to_pylist():
        if not row["indexed"]:
            assert [row[name] for name in SIDECAR_COLUMN_TYPES if name != "indexed"] == [None] * (
                len(SIDECAR_COLUMN_TYPES) - 1
            )
            assert row["summary"] is None
        elif row["pack"] is not None:
            span = (row["offset"], row["length"])
            store, key = resolve_store(table.store, row["pack"], table.snapshot.shares_files)
            payload = PackSlice(store, key, row["chunk"], row["pack_length"], span, Cache(0))
            assert [len(data) for data in payload.read([(0, payload.size)])] == [row["length"]]


def _check_statistics(table: StoredTable) -> None:
    """No row of a unit lies outside of its bounds, at any level."""
    blocks = table.blocks()
    zones, segments = table.zones(blocks), table.segments()
    block_rows = [table.read_block(blocks, block, table.snapshot.schema.names) for block in range(len(blocks))]
    if (spec := PartitionSpec.from_snapshot(table.snapshot)) is not None:
        for partition, rows in zip(blocks.partitions, block_rows[: segments.base_block_count], strict=False):
            assert [text for text, _ in spec.split(rows)] == [partition], "a block mixes partitions"
    all_rows = pa.concat_tables(block_rows) if block_rows else table.snapshot.schema.empty_table()
    levels: list[UnitFrame] = [zones, blocks, segments]
    for path, field in table.snapshot.schema.leaves():
        values = column_values(all_rows, path)
        for units in levels:
            _check_bounds(units, field.id, values)


def _check_bounds(units: UnitFrame, column: int, values: pa.Array) -> None:
    stored = units.statistics(column)
    if stored is None:
        return
    assert len(stored) == len(units)
    ends = metadata_table.counts_to_offsets(units.row_counts)
    assert ends[-1] == len(values)
    actual = [extremes(values.slice(start, end - start)) for start, end in pairwise(ends.tolist())]
    least, greatest = (pa.array([pair[upper] for pair in actual], values.type) for upper in (False, True))
    ordered = pa.Table.from_arrays([stored.min, least, greatest, stored.max], ["low", "least", "greatest", "high"])
    if is_.is_string(values.type):
        ordered = ordered.cast(pa.schema([(name, pa.binary()) for name in ordered.column_names]))  # it may be no UTF-8
    for bounds in ordered.to_pylist():
        low, least, greatest, high = bounds.values()
        if least is None or least != least:
            continue
        assert low is None or low <= least, f"column {column}: {least!r} is below {low!r}"
        within = high is None or high != high or (greatest == greatest and greatest <= high)  # NaN is greatest
        assert within, f"column {column}: {greatest!r} is above {high!r}"
    null_counts_agree = pc.equal(stored.null_count, compute_statistics(values, ends).null_count)
    assert np.asarray(pc.fill_null(null_counts_agree, True)).all(), f"column {column}: null counts differ"
