"""Tables as whoever may write their files could make them: every checksum is right, and what it vouches for is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from fuse_storage import Cache, StoredTable, process_cache
from fuse_storage.metadata.file_ref import FileRef, create_file
from fuse_storage.metadata.metadata_table import encode_metadata, read_all_columns
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.segment_list import read_segment_list, segment_files, sidecar_files, zone_files
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.footer import footer_checksum


def rewrite_head(table: StoredTable, change: Callable[[Snapshot], Snapshot]) -> StoredTable:
    """The same table with another snapshot in place of its newest."""
    return replace_snapshot_bytes(table, change(table.snapshot).encode())


def replace_snapshot_bytes(table: StoredTable, data: bytes) -> StoredTable:
    """The same table with these bytes in place of its newest snapshot's file. Raises as opening it does."""
    store, path = table.store, table.snapshot.path
    store.delete([path])
    store.create(path, data)
    branch = Branch(store, table.branch)
    entry = replace(table.entry, reference=FileRef.for_data(path, data))
    store.delete([branch.key(entry.sequence)])
    branch.create(entry)
    process_cache.clear()
    return StoredTable.open(store)


def rewrite_list(table: StoredTable, change: Callable[[pa.Table], pa.Table]) -> StoredTable:
    """The same table with another list of segments."""
    rows = change(read_segment_list(table.store, table.snapshot))
    assert table.snapshot.segments is not None
    path = table.snapshot.segments.path
    table.store.delete([path])
    reference = create_file(table.store, path, encode_metadata(rows, keep_arrow_types=True))
    return rewrite_head(table, lambda snapshot: replace(snapshot, segments=reference, segment_count=len(rows)))


def read_part(table: StoredTable, part: str) -> pa.Table:
    """What is in the file of the first segment that ``rewrite_part`` changes."""
    rows = read_segment_list(table.store, table.snapshot)
    files = {"segment": segment_files(rows), "zones": zone_files(rows), "sidecars": sidecar_files(rows, "70a1")}
    file = files[part][0]
    assert file is not None
    return read_all_columns(table.store, file, Cache(0))


def rewrite_part(table: StoredTable, part: str, change: Callable[[pa.Table], pa.Table]) -> StoredTable:
    """The same table with other rows in the file of its first segment: "segment", "zones", or what an index knows."""
    rows = read_segment_list(table.store, table.snapshot)
    files, columns = {
        "segment": (segment_files(rows), ("length", "hash", "block_count")),
        "zones": (zone_files(rows), ("zones_length", "zones_hash", "zone_count")),
        "sidecars": (sidecar_files(rows, "70a1"), ("x.70a1.length", "x.70a1.hash", "block_count")),
    }[part]
    file = files[0]
    assert file is not None
    found = change(read_all_columns(table.store, file, Cache(0)))
    table.store.delete([file.reference.path])
    written = create_file(table.store, file.reference.path, encode_metadata(found, keep_arrow_types=True))

    def refer(rows: pa.Table) -> pa.Table:
        for name, value in zip(columns, (written.length, written.hash, len(found)), strict=True):
            values = [value, *rows.column(name).to_pylist()[1:]]
            index = rows.column_names.index(name)
            rows = rows.set_column(index, name, pa.array(values, rows.schema.field(index).type))
        return rows

    process_cache.clear()
    return rewrite_list(table, refer)


def replace_block(table: StoredTable, number: int, change: Callable[[bytes, int], bytes]) -> None:
    """Put other bytes in place of a block. ``change`` is given the old ones, and where the seal begins."""
    blocks = table.blocks()
    path, file = blocks.locations[number], blocks.file(number)
    data = table.store.read(path)
    table.store.delete([path])
    table.store.create(path, change(data, file.footer_offset))
    process_cache.clear()


def forget_seals(table: StoredTable) -> StoredTable:
    """The same table, as one that does not say which seals the blocks of its first segment have."""

    def forget(rows: pa.Table) -> pa.Table:
        return rows.set_column(rows.column_names.index("seal"), "seal", pa.nulls(len(rows), pa.int64()))

    return rewrite_part(table, "segment", forget)


def forget_zone_sizes(table: StoredTable) -> StoredTable:
    """The same table, as one that does not say how many bytes the zones of its first segment have."""

    def forget(rows: pa.Table) -> pa.Table:
        place = rows.column_names.index("zone_sizes")
        return rows.set_column(place, "zone_sizes", pa.nulls(len(rows), rows.schema.field(place).type))

    return rewrite_part(table, "segment", forget)


def reseal(data: bytes, footer_offset: int) -> bytes:
    """A block whose seal is right again, whatever its pages and its footer are now."""
    footer = int.from_bytes(data[-8:-4], "little") + 8
    seal, tail = data[footer_offset : -footer - 8], data[-footer:]
    return data[:footer_offset] + seal + footer_checksum(seal + tail) + tail
