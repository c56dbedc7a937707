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

from fuse_storage.commit.snapshot_hold import hold
from fuse_storage.commit.transaction import land, publish
from fuse_storage.errors import AlreadyExists, FormatError, NotFound
from fuse_storage.location import refuse_occupied
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import Reference, created, new_id, read_verified
from fuse_storage.metadata.refs import MAIN, Branch, next_timestamp
from fuse_storage.metadata.segment import (
    block_path,
    list_path,
    parts,
    read_list,
    sidecar_columns,
    sidecar_parts,
    zone_parts,
)
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import Tag, drop_tag
from fuse_storage.store.cache import Cache
from fuse_storage.store.shared_files import FEATURE, everywhere
from fuse_storage.store.store import Store
from fuse_storage.table import Table

SECONDS = 60.0
"""How long a store that gives no answer is asked again."""


def clone(table: Table, store: Store) -> Table:
    """A new table at ``store`` with the rows, columns, indexes and properties of this snapshot.

    Writes metadata only, about as much as the source has. The source gets a tag ``clone-<id>``, named in the clone's
    summary, which is dropped by hand when the clone is gone. Raises AlreadyExists where there is anything, Conflict or
    NotFound if a vacuum may be deleting the snapshot, and StorageError. Where a clone was given up before it could be
    there, nothing holds the source; one that was interrupted later can be recovered, and the tag stays.
    """
    branch = Branch(store, MAIN)
    refuse_occupied(branch)
    assert table.entry.reference is not None
    tag = Tag(f"clone-{new_id()}", datetime.now(UTC), table.snapshot.id, table.entry.reference, holder=store.url)
    hold(table.store, table.branch, table.entry, tag)
    try:
        snapshot = _copied(table, store, tag)
    except BaseException:
        drop_tag(table.store, tag.name)
        raise
    entry = publish(store, snapshot, None)  # from here on it may be there, or be recovered, and need what it shares
    if not land(branch, entry, monotonic() + SECONDS):
        drop_tag(table.store, tag.name)
        raise AlreadyExists(f"{store.url} already is a table: somebody else just created it; open it")
    branch.note(1)
    return Table(store, MAIN, entry, snapshot)


def _copied(table: Table, store: Store, tag: Tag) -> Snapshot:
    """The clone's first snapshot, with all that it leads to written."""
    old, id = table.snapshot, new_id()
    source = {"url": table.store.url, "snapshot": old.id, "tag": tag.name}
    listed = read_list(table.store, old)
    reference = None
    if len(listed):
        copier = _Copier(table.store, store, sorted(old.keys))
        with ThreadPoolExecutor(metadata_table.THREADS, "fuse-clone") as pool:
            rows = pa.concat_tables(pool.map(copier.copied, [listed.slice(number, 1) for number in range(len(listed))]))
        reference = created(store, list_path(id), metadata_table.encode(rows, any_types=True))
    features = tuple(sorted({*old.reader_features, FEATURE}))
    return replace(
        old,
        id=id,
        sequence=1,
        branch=MAIN,
        commit_id=new_id(),
        parent=None,
        timestamp=next_timestamp(table.entry.timestamp),
        operation="clone",
        summary={"cloned_from": source},
        same_rows=False,
        segments=reference,
        reader_features=features,
    )


class _Copier:
    """Writes a segment's metadata into another store, with whole URLs of all that stays where it is."""

    def __init__(self, source: Store, target: Store, keys: list[str]) -> None:
        self.source, self.target, self.keys = source, target, keys

    def copied(self, row: pa.Table) -> pa.Table:
        """A row of a list, for the copy. Raises StorageError if the segment cannot be read."""
        (segment,), (zones,) = parts(row), zone_parts(row)
        blocks = metadata_table.read_whole(self.source, segment, Cache(0))
        own = [everywhere(self.source, block_path(id)) for id in blocks.column("id").to_pylist()]
        located = pa.array(
            [where or here for where, here in zip(blocks.column("location").to_pylist(), own, strict=True)], pa.string()
        )
        made = self._written(segment.reference.path, _with(blocks, "location", located))
        changed = {"length": made.length, "hash": made.hash}
        if zones is not None and not self._same(zones.reference):
            changed |= {"zones_length": None, "zones_hash": None}
        for key in self.keys:
            changed |= self._sidecars(key, row)
        for name, value in changed.items():
            row = _with(row, name, pa.array([value], row.schema.field(name).type))
        return row

    def _sidecars(self, key: str, row: pa.Table) -> dict[str, object]:
        """What the list says of an index's ``_x`` file: one that cannot be read is left out, and costs time only."""
        (part,), (path, length, hash, indexed, *rest) = sidecar_parts(row, key), sidecar_columns(key)
        if part is None:
            return {}
        try:
            found = metadata_table.read_whole(self.source, part, Cache(0))
        except (NotFound, FormatError):
            return {path: None, length: None, hash: None, indexed: None} | dict.fromkeys(rest)
        packs = [None if pack is None else everywhere(self.source, pack) for pack in found.column("pack").to_pylist()]
        made = self._written(part.reference.path, _with(found, "pack", pa.array(packs, pa.string())), any_types=True)
        return {length: made.length, hash: made.hash}

    def _same(self, reference: Reference) -> bool:
        """Copy a file that only helps to skip; whether it could be read."""
        try:
            self.target.create(reference.path, read_verified(self.source, reference))
            return True
        except (NotFound, FormatError):
            return False

    def _written(self, path: str, rows: pa.Table, any_types: bool = False) -> Reference:
        return created(self.target, path, metadata_table.encode(rows, any_types=any_types))


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
