"""A table made from another without copying a row: blocks and packs are shared, metadata is the clone's own.

Each table has its own history from then on, and writes and deletes in its own folder alone. What they share stays,
because a tag in the source, made before anything else, holds the snapshot that was cloned; a vacuum of the clone does
not look there. Until all is written that the clone needs, that tag expires, so a clone that died leaves nothing
for ever; begun again at the same place, it takes the place of what the first one left.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from time import monotonic

import pyarrow as pa

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, create_ref, write_snapshot
from fuse_storage.commit.snapshot_hold import VACUUM_TIME_LIMIT, tag_snapshot
from fuse_storage.deletion_vector import VectorRef
from fuse_storage.errors import AlreadyExists, Expired, FormatError, NotFound, TableUrl
from fuse_storage.hot.tail import read_tail, tail_totals
from fuse_storage.hot_commit.snapshot_of import snapshot_of
from fuse_storage.location import raise_if_occupied
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import FileRef, create_file, new_id, read_verified
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, next_timestamp
from fuse_storage.metadata.segment import (
    OWN_FORMAT,
    TailTotals,
    block_path,
    has_deleted_rows,
    segment_path,
    tail_path,
    zones_path,
)
from fuse_storage.metadata.segment_list import (
    read_segment_list,
    segment_files,
    segment_list_path,
    sidecar_columns,
    sidecar_files,
    zone_files,
)
from fuse_storage.metadata.sidecar import sidecar_path
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import Tag, keep_tag_forever, list_tag_files
from fuse_storage.store.cache import Cache
from fuse_storage.store.shared_files import SHARED_FILES_FEATURE, absolute_key, raise_if_elsewhere
from fuse_storage.store.store import Store
from fuse_storage.table import StoredTable

_MAX_CLONE_TIME = timedelta(days=1)
"""How long a clone may take: a tag that expires then holds the source meanwhile."""


def clone_table(table: StoredTable, store: Store) -> StoredTable:
    """Create a table at ``store`` with the rows, columns, indexes and properties of this snapshot.

    Writes metadata only, about as much as the source has. On another store than the source, the clone's has to name the
    source's by its option ``shared_places``, now and whenever it is read. The source gets a tag ``clone-<id>``, named
    in the clone's summary, which is dropped by hand when the clone is gone. Raises AlreadyExists where there is
    anything but what a clone left that died, Conflict or NotFound if a vacuum may be deleting the snapshot, Expired if
    it took too long, and StorageError. Where a clone was given up before it could be there, nothing holds the source
    for more than a day; one that was interrupted while it was committed can be recovered, and the tag stays.
    """
    table.snapshot.check_writable()
    table = snapshot_of(table)
    branch = Branch(store, MAIN_BRANCH)
    raise_if_occupied(branch, cloning=True)
    raise_if_elsewhere(store, table.store.url)
    leftovers = _snapshot_ids(store)
    snapshot_id, now = new_id(), utc_now()
    assert table.entry.reference is not None
    tag = Tag(_tag_name(snapshot_id), now, table.snapshot.id, table.entry.reference, now + _MAX_CLONE_TIME, store.url)
    keys = [tag_snapshot(table.store, table.branch, table.entry, tag)]
    try:
        snapshot = _copy_snapshot(table, store, snapshot_id)
        if tag.expired(utc_now() + 2 * VACUUM_TIME_LIMIT):
            raise Expired(
                "cloning " + TableUrl(table.store.url) + f" took {utc_now() - now}, and may take {_MAX_CLONE_TIME}"
            )
        keys.append(keep_tag_forever(table.store, tag))
    except BaseException:
        table.store.delete(reversed(keys))
        raise
    # From here on the clone may be there, or be recovered, and needs the files that it shares.
    entry = write_snapshot(store, snapshot, None)
    if not create_ref(branch, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
        table.store.delete(reversed(keys))
        raise AlreadyExists(TableUrl(store.url) + " already is a table: somebody else just created it; open it")
    branch.write_head_hint(1)
    _release_leftovers(table.store, store, leftovers)
    return StoredTable(store, MAIN_BRANCH, entry, snapshot)


def _tag_name(snapshot_id: str) -> str:
    """The name of the source's tag, which the files of a clone that died tell too."""
    return f"clone-{snapshot_id}"


def _snapshot_ids(store: Store) -> set[str]:
    """The ids of snapshots of which there is a file, whole or not."""
    return {listed.key.rpartition("/")[2].partition(".")[0] for listed in store.list("_ss")}


def _release_leftovers(source: Store, store: Store, snapshot_ids: set[str]) -> None:
    """Delete the tags of clones that died at this place: its first entry is another's now, so they never are there."""
    names = {_tag_name(snapshot_id) for snapshot_id in snapshot_ids}
    if names:
        files = [found for found in list_tag_files(source) if found.tag.name in names and found.tag.holder == store.url]
        source.delete([found.file.key for found in files])


def _copy_snapshot(table: StoredTable, store: Store, snapshot_id: str) -> Snapshot:
    """The clone's first snapshot, with all that it leads to written."""
    old = table.snapshot
    source = {"url": table.store.url, "snapshot": old.id, "tag": _tag_name(snapshot_id)}
    segment_rows = read_segment_list(table.store, old)
    reference = None
    copier = _SegmentCopier(table.store, store, sorted(old.keys))
    tail = copier.copy_tail(read_tail(table.store, old), snapshot_id, old)
    if len(segment_rows):
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
        stated_version=1 if old.has_chain else 0,
        hot_commits=0,
        tail=tail,
    )


class _SegmentCopier:
    """Writes a segment's metadata into another store, with whole URLs of all that stays where it is."""

    def __init__(self, source: Store, target: Store, keys: list[str]) -> None:
        self.source, self.target, self.keys = source, target, keys

    def copy_segment(self, row: pa.Table) -> pa.Table:
        """Copy one segment, given by its row of the list; its row in the copy's list. Raises StorageError.

        The copy has an id of its own: files that a clone left that died, of another source perhaps, are not in its way.
        """
        segment_id = new_id()
        (segment,), (zones,) = segment_files(row), zone_files(row)
        blocks = metadata_table.read_all_columns(self.source, segment, Cache(0))
        files = zip(*(blocks.column(name).to_pylist() for name in ("id", "location", "format")), strict=True)
        keys = [
            absolute_key(self.source, location or block_path(block_id)) if form == OWN_FORMAT else location
            for block_id, location, form in files
        ]
        locations = pa.array(keys, pa.string())
        blocks = _replace_column(blocks, "location", locations)
        if has_deleted_rows(blocks):
            vectors = [
                None if vector is None else str(VectorRef.parse(vector).absolute(self.source))
                for vector in blocks.column("deletion_vector").to_pylist()
            ]
            blocks = _replace_column(blocks, "deletion_vector", pa.array(vectors, pa.string()))
        copied = self._write_metadata(segment_path(segment_id), blocks)
        new_values: dict[str, object] = {"id": segment_id, "length": copied.length, "hash": copied.hash}
        if zones is not None and not self._copy_if_readable(zones.reference, zones_path(segment_id)):
            new_values |= {"zones_length": None, "zones_hash": None}
        for key in self.keys:
            new_values |= self._copy_sidecars(key, row, segment_id)
        for name, value in new_values.items():
            row = _replace_column(row, name, pa.array([value], row.schema.field(name).type))
        return row

    def copy_tail(self, tail: pa.Table | None, snapshot_id: str, old: Snapshot) -> TailTotals | None:
        """Write the list of a tail whose hot blocks stay where they are, and give its sums."""
        if tail is None or old.tail is None:
            return None
        keys = [absolute_key(self.source, location) for location in tail.column("location").to_pylist()]
        rows = _replace_column(tail, "location", pa.array(keys, pa.string()))
        return tail_totals(rows, self._write_metadata(tail_path(snapshot_id), rows))

    def _copy_sidecars(self, key: str, row: pa.Table, segment_id: str) -> dict[str, object]:
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
            sidecar_path(segment_id, key, new_id()),
            _replace_column(rows, "pack", pa.array(packs, pa.string())),
            any_types=True,
        )
        return {path: copied.path, length: copied.length, digest: copied.hash}

    def _copy_if_readable(self, reference: FileRef, path: str) -> bool:
        """Copy a file that only helps to skip, and say whether it could be read."""
        try:
            self.target.create(path, read_verified(self.source, reference))
            return True
        except (NotFound, FormatError):
            return False

    def _write_metadata(self, path: str, rows: pa.Table, any_types: bool = False) -> FileRef:
        return create_file(self.target, path, metadata_table.encode_metadata(rows, keep_arrow_types=any_types))


def _replace_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
