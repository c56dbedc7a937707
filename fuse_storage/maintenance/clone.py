"""A table made from another without copying a row: blocks and packs are shared, metadata is the clone's own.

Each table has its own history from then on, and writes and deletes in its own folder alone. What they share stays,
because a tag in the source, made before anything else, holds the snapshot that was cloned; a vacuum of the clone does
not look there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

import pyarrow as pa

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, create_ref, write_snapshot
from fuse_storage.commit.snapshot_hold import tag_snapshot
from fuse_storage.errors import AlreadyExists, FormatError, NotFound
from fuse_storage.location import raise_if_occupied
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, create_file, new_id, read_verified
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, next_timestamp
from fuse_storage.metadata.segment import block_path
from fuse_storage.metadata.segment_list import (
    read_segment_list,
    segment_files,
    segment_list_path,
    sidecar_columns,
    sidecar_files,
    zone_files,
)
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import Tag, drop_tag
from fuse_storage.store.cache import Cache
from fuse_storage.store.shared_files import SHARED_FILES_FEATURE, absolute_key, raise_if_elsewhere
from fuse_storage.store.store import Store
from fuse_storage.table import StoredTable


def clone_table(table: StoredTable, store: Store) -> StoredTable:
    """Create a table at ``store`` with the rows, columns, indexes and properties of this snapshot.

    Writes metadata only, about as much as the source has. On another store than the source, the clone's has to name the
    source's by its option ``shared_places``, now and whenever it is read. The source gets a tag ``clone-<id>``, named
    in the clone's summary, which is dropped by hand when the clone is gone. Raises AlreadyExists where there is
    anything, Conflict or NotFound if a vacuum may be deleting the snapshot, and StorageError. Where a clone was given
    up before it could be there, nothing holds the source; one that was interrupted later can be recovered, and the tag
    stays.
    """
    branch = Branch(store, MAIN_BRANCH)
    raise_if_occupied(branch)
    raise_if_elsewhere(store, table.store.url)
    assert table.entry.reference is not None
    tag = Tag(f"clone-{new_id()}", datetime.now(UTC), table.snapshot.id, table.entry.reference, holder=store.url)
    tag_snapshot(table.store, table.branch, table.entry, tag)
    try:
        snapshot = _copy_snapshot(table, store, tag)
    except BaseException:
        drop_tag(table.store, tag.name)
        raise
    # From here on the clone may be there, or be recovered, and needs the files that it shares.
    entry = write_snapshot(store, snapshot, None)
    if not create_ref(branch, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
        drop_tag(table.store, tag.name)
        raise AlreadyExists(f"{store.url} already is a table: somebody else just created it; open it")
    branch.write_head_hint(1)
    return StoredTable(store, MAIN_BRANCH, entry, snapshot)


def _copy_snapshot(table: StoredTable, store: Store, tag: Tag) -> Snapshot:
    """The clone's first snapshot, with all that it leads to written."""
    old, snapshot_id = table.snapshot, new_id()
    source = {"url": table.store.url, "snapshot": old.id, "tag": tag.name}
    segment_rows = read_segment_list(table.store, old)
    reference = None
    if len(segment_rows):
        copier = _SegmentCopier(table.store, store, sorted(old.keys))
        with ThreadPoolExecutor(metadata_table.METADATA_READ_THREADS, "fuse-clone") as pool:
            copied_rows = pa.concat_tables(
                pool.map(copier.copy_segment, [segment_rows.slice(number, 1) for number in range(len(segment_rows))])
            )
        reference = create_file(
            store, segment_list_path(snapshot_id), metadata_table.encode_metadata(copied_rows, keep_arrow_types=True)
        )
    features = tuple(sorted({*old.reader_features, SHARED_FILES_FEATURE}))
    return replace(
        old,
        id=snapshot_id,
        sequence=1,
        branch=MAIN_BRANCH,
        commit_id=new_id(),
        parent=None,
        timestamp=next_timestamp(table.entry.timestamp),
        operation="clone",
        summary={"cloned_from": source},
        same_rows=False,
        segments=reference,
        reader_features=features,
    )


class _SegmentCopier:
    """Writes a segment's metadata into another store, with whole URLs of all that stays where it is."""

    def __init__(self, source: Store, target: Store, keys: list[str]) -> None:
        self.source, self.target, self.keys = source, target, keys

    def copy_segment(self, row: pa.Table) -> pa.Table:
        """Copy one segment, given by its row of the list; its row in the copy's list. Raises StorageError."""
        (segment,), (zones,) = segment_files(row), zone_files(row)
        blocks = metadata_table.read_all_columns(self.source, segment, Cache(0))
        own_keys = [absolute_key(self.source, block_path(block_id)) for block_id in blocks.column("id").to_pylist()]
        locations = pa.array(
            [
                location or own_key
                for location, own_key in zip(blocks.column("location").to_pylist(), own_keys, strict=True)
            ],
            pa.string(),
        )
        copied = self._write_metadata(segment.reference.path, _replace_column(blocks, "location", locations))
        new_values = {"length": copied.length, "hash": copied.hash}
        if zones is not None and not self._copy_if_readable(zones.reference):
            new_values |= {"zones_length": None, "zones_hash": None}
        for key in self.keys:
            new_values |= self._copy_sidecars(key, row)
        for name, value in new_values.items():
            row = _replace_column(row, name, pa.array([value], row.schema.field(name).type))
        return row

    def _copy_sidecars(self, key: str, row: pa.Table) -> dict[str, object]:
        """Copy an index's ``_x`` file; new values of its columns in the list, null where it cannot be read."""
        (sidecar_file,), (path, length, digest, indexed, *rest) = sidecar_files(row, key), sidecar_columns(key)
        if sidecar_file is None:
            return {}
        try:
            rows = metadata_table.read_all_columns(self.source, sidecar_file, Cache(0))
        except (NotFound, FormatError):
            kept = (name for name in rest if metadata_table.has_column(row, name))
            return {path: None, length: None, digest: None, indexed: None} | dict.fromkeys(kept)
        packs = [None if pack is None else absolute_key(self.source, pack) for pack in rows.column("pack").to_pylist()]
        copied = self._write_metadata(
            sidecar_file.reference.path, _replace_column(rows, "pack", pa.array(packs, pa.string())), any_types=True
        )
        return {length: copied.length, digest: copied.hash}

    def _copy_if_readable(self, reference: FileRef) -> bool:
        """Copy a file that only helps to skip, and say whether it could be read."""
        try:
            self.target.create(reference.path, read_verified(self.source, reference))
            return True
        except (NotFound, FormatError):
            return False

    def _write_metadata(self, path: str, rows: pa.Table, any_types: bool = False) -> FileRef:
        return create_file(self.target, path, metadata_table.encode_metadata(rows, keep_arrow_types=any_types))


def _replace_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
