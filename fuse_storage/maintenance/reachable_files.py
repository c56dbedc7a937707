"""Which files living snapshots lead to, and which of a table's own nothing leads to any more. Deletes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import pyarrow.compute as pc

from fuse_storage.commit.transaction import MAX_WRITE_SECONDS
from fuse_storage.deletion_vector import VectorRef
from fuse_storage.errors import FormatError, NotFound
from fuse_storage.hot.chain import list_chain_files
from fuse_storage.hot.entry import HotEntry, decode_chain_file
from fuse_storage.hot.tail import read_tail
from fuse_storage.hot_commit.append import MAX_HOT_SECONDS
from fuse_storage.maintenance.live_snapshots import LiveSnapshot
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import read_verified
from fuse_storage.metadata.segment import block_path, has_deleted_rows, hot_block_path
from fuse_storage.metadata.segment_list import read_segment_list, segment_files, sidecar_files, zone_files
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.cache import Cache
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.features import DELETION_VECTORS_FEATURE
from fuse_storage.validation.json_members import MAX_REF_BYTES, MAX_SNAPSHOT_BYTES

_OWN_KEY = re.compile(
    r"_ss/[0-9a-f]{32}\.(?:json|parquet)|_sg/[0-9a-f]{32}(?:\.zones)?\.parquet"
    r"|_ss/[0-9a-f]{32}\.tail\.parquet|_x/[0-9a-f]{32}/\w+-[0-9a-f]{32}\.parquet|_[bh]/[0-9a-f]{32}\.parquet"
    r"|_i/\w+/[0-9a-f]{32}|_d/[0-9a-f]{32}"
)
"""Keys that a table gives. Whatever else is in its folders is a stranger's."""


class ReachableFiles:
    """Keys of all files that living snapshots lead to."""

    def __init__(self, store: Store) -> None:
        self.store, self.keys, self.kept_prefixes = store, set[str](), set[str]()
        self.longest_write = self.longest_hot_write = timedelta(0)
        self._tails = set[str]()
        self.chains = dict[str, Snapshot]()
        self.strays: list[str] = []
        self.has_vectors = False
        self.file_count = 0

    def add(self, live: LiveSnapshot) -> None:
        """Add the files of a snapshot, which may be gone unless it is needed.

        Raises StorageError for anything that leads to rows and cannot be read, and Unsupported where a newer version
        wrote what this one does not know how to keep.
        """
        reference = live.reference
        if reference.path in self.keys and (not live.tail or reference.path in self._tails):
            return
        try:
            data = read_verified(self.store, reference)
        except NotFound:
            if live.needed:
                raise
            return
        snapshot = Snapshot.decode(data, reference.path)
        snapshot.check_writable()
        self._add(snapshot, live)

    def add_young(self, since: datetime) -> None:
        """Add the files of all snapshots that are too young to go: where a snapshot is, all that it leads to is too."""
        for file in self.store.list("_ss"):
            if file.key.endswith(".json") and file.modified >= since and file.key not in self.keys:
                with suppress(NotFound, FormatError):  # nothing leads to it, so nobody needs what it lacks
                    self._add(Snapshot.decode(read_at_most(self.store, file.key, MAX_SNAPSHOT_BYTES), file.key))

    def _add(self, snapshot: Snapshot, live: LiveSnapshot | None = None) -> None:
        self.keys.add(snapshot.path)
        self.has_vectors = self.has_vectors or DELETION_VECTORS_FEATURE in snapshot.reader_features
        if snapshot.has_chain and (live is None or live.chain):
            self.chains[snapshot.id] = snapshot
        if live is None or live.tail:
            self._add_tail(snapshot, live is not None and live.needed)
        limits = (("max_write_seconds", MAX_WRITE_SECONDS), ("max_hot_seconds", MAX_HOT_SECONDS))
        cold, hot = (timedelta(seconds=float(snapshot.properties.get(name, default))) for name, default in limits)
        self.longest_hot_write = max(self.longest_hot_write, hot)
        self.longest_write = max(self.longest_write, cold, hot)
        if snapshot.segments is None:
            return
        self.keys.add(snapshot.segments.path)
        rows = read_segment_list(self.store, snapshot, Cache(0))
        for segment_file, zones in zip(segment_files(rows), zone_files(rows), strict=True):
            if segment_file.reference.path not in self.keys:
                self.keys |= {segment_file.reference.path} | ({zones.reference.path} if zones is not None else set())
                names = ("id", "location", "deletion_vector") if has_deleted_rows(rows) else ("id", "location")
                (found,) = metadata_table.read_column_groups(self.store, segment_file, [names], Cache(0))
                blocks = found.to_pylist()
                self.keys |= {block["location"] or block_path(block["id"]) for block in blocks}
                vectors = (block.get("deletion_vector") for block in blocks)
                self.keys |= {VectorRef.parse(vector).key for vector in vectors if vector is not None}
        for key in snapshot.keys:
            for sidecars in sidecar_files(rows, key):
                if sidecars is not None and sidecars.reference.path not in self.keys:
                    self.keys.add(sidecars.reference.path)
                    self._add_packs(key, sidecars)

    def _add_tail(self, snapshot: Snapshot, needed: bool) -> None:
        """Add the list of a tail and its blocks. An earlier vacuum may have taken them, unless they are needed."""
        self._tails.add(snapshot.path)
        try:
            tail = read_tail(self.store, snapshot, Cache(0))
        except NotFound:
            if needed:
                raise
            return
        if tail is not None:
            assert snapshot.tail is not None
            assert snapshot.tail.reference is not None
            self.keys |= {snapshot.tail.reference.path, *tail.column("location").to_pylist()}

    def add_chains(self) -> dict[str, list[ObjectMeta]]:
        """Add the chains of the snapshots that were added, and the blocks that they lead to; give all others.

        Those of heads are read by then, so a file that is missing or damaged there has been met.
        """
        others = dict[str, list[ObjectMeta]]()
        if not self.chains:
            return others
        for snapshot_id, files in list_chain_files(self.store, hints=True).items():
            if snapshot_id not in self.chains:
                others[snapshot_id] = files
                continue
            for file in (file for file in files if file.key.endswith(".json")):
                found = decode_chain_file(read_at_most(self.store, file.key, MAX_REF_BYTES), file.key)
                if isinstance(found, HotEntry):
                    self.keys |= {hot_block_path(block.id) for block in found.blocks}
        return others

    def _add_packs(self, key: str, sidecars: metadata_table.MetadataFile) -> None:
        try:
            (rows,) = metadata_table.read_column_groups(self.store, sidecars, [("pack",)], Cache(0))
            self.keys |= set(pc.drop_null(pc.unique(rows.column("pack"))).to_pylist())
        except (NotFound, FormatError):
            self.kept_prefixes.add(f"_i/{key}/")  # readers can do without it; which packs it leads to, nobody can say

    def unreachable(self, folder: str, before: datetime) -> Iterator[ObjectMeta]:
        """List the files that nothing leads to, and that no writer can still commit; note those that are no table's."""
        for file in self.store.list(folder):
            if not _OWN_KEY.fullmatch(file.key):
                self.strays.append(file.key)
                continue
            self.file_count += 1
            reachable = file.key in self.keys or any(file.key.startswith(prefix) for prefix in self.kept_prefixes)
            if not reachable and file.modified < before:
                yield file
