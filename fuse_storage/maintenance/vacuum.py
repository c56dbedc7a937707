"""Files that nothing leads to any more are deleted, beside running writers and readers; reachable files never are.

What leads to files: snapshots that were the head of a branch not longer ago than the retention, the newest few of each
branch, and tags. A file younger than the longest allowed write is left alone, by the store's own clock: its writer may
be about to commit it. Entries of branches are never deleted; of a snapshot that is gone they still say when it was and
who made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pyarrow.compute as pc

from fuse_storage.commit.snapshot_hold import VACUUM_TIME_LIMIT, post_vacuum_notice
from fuse_storage.commit.transaction import MAX_WRITE_SECONDS
from fuse_storage.errors import Expired, FormatError, InvalidArgument, NotFound, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, read_verified
from fuse_storage.metadata.refs import Branch, list_branch_names
from fuse_storage.metadata.segment import block_path
from fuse_storage.metadata.segment_list import read_segment_list, segment_files, sidecar_files, zone_files
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import list_tags
from fuse_storage.store.abilities import list_strays, read_at_most
from fuse_storage.store.cache import Cache
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES

_FOLDER_KINDS = {"_ss": "snapshots", "_sg": "segments", "_x": "sidecars", "_b": "blocks", "_i": "packs"}
"""Folders in the order in which they are emptied: what leads to others goes first."""
_COMMIT_ALLOWANCE = timedelta(hours=1)
"""On top of the longest allowed write: a commit takes a while too."""
_MIN_RETENTION = timedelta(hours=1)
"""Retention below which readers of what was the head a moment ago would lose their files."""
_DELETE_BATCH_KEYS = 500


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """The files that a vacuum deleted, or would delete, and their bytes, by kind.

    ``kept``: the number of files that stay, because they are reachable or too young. ``passed_over``: the keys of
    links, pipes and devices, which are left as they are, as is whatever they lead to.
    """

    files: dict[str, int]
    bytes: dict[str, int]
    kept: int
    deleted: bool
    passed_over: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def vacuum_table(
    store: Store, retention: timedelta, keep: int = 1, dry_run: bool = False, force: bool = False
) -> VacuumResult:
    """Delete the files that nothing leads to.

    ``keep``: so many snapshots of each branch stay however old they are, at least one. Raises InvalidArgument for a
    retention below an hour, unless ``force``; Expired if deleting takes longer than it may, and what is left is for the
    next; StorageError, before anything is deleted, if anything that leads to files cannot be read.
    """
    if retention < _MIN_RETENTION and not force:
        raise InvalidArgument(
            f"retention={retention}: readers may still need what was replaced in the last hour; say force to risk it"
        )
    if keep < 1 or retention < timedelta(0):
        raise InvalidArgument(f"keep={keep}, retention={retention}: the newest snapshot of each branch always stays")
    cutoff = datetime.now(UTC) - retention
    notice = None if dry_run else post_vacuum_notice(store, cutoff)
    deadline = monotonic() + VACUUM_TIME_LIMIT.total_seconds()
    try:
        passed_over = _find_strays(store)
        reachable = _ReachableFiles(store)
        for snapshot, needed in _live_snapshots(store, cutoff, keep):
            reachable.add(snapshot, needed)
        young_since = (
            (datetime.now(UTC) if notice is None else notice.modified) - reachable.longest_write - _COMMIT_ALLOWANCE
        )
        reachable.add_young(young_since)
        litter = {folder: list(reachable.unreachable(folder, young_since)) for folder in _FOLDER_KINDS}
        for keys in () if dry_run else _deletion_stages(litter):
            for start in range(0, len(keys), _DELETE_BATCH_KEYS):
                if monotonic() > deadline:
                    raise Expired(f"a vacuum may delete for {VACUUM_TIME_LIMIT}, and there is more: run it again")
                store.delete(keys[start : start + _DELETE_BATCH_KEYS])
    finally:
        if notice is not None:
            store.delete([notice.key])
    files = {_FOLDER_KINDS[folder]: len(objects) for folder, objects in litter.items()}
    sizes = {_FOLDER_KINDS[folder]: sum(file.size for file in objects) for folder, objects in litter.items()}
    return VacuumResult(files, sizes, reachable.file_count - sum(files.values()), not dry_run, passed_over)


def _find_strays(store: Store) -> tuple[str, ...]:
    """What is no file in the folders of a table. Raises StorageError if it stands where refs should: they may be lost.

    A folder that is a link itself is refused when it is listed.
    """
    for key in list_strays(store, "_refs"):
        raise StorageError(
            f"{store.url}/{key} is no file, and what it should be might lead to others: nothing is deleted before it "
            f"is removed, or replaced by the file itself"
        )
    return tuple(key for folder in _FOLDER_KINDS for key in list_strays(store, folder))


def _deletion_stages(litter: Mapping[str, Sequence[ObjectMeta]]) -> Iterator[list[str]]:
    """Keys to delete, stage after stage. Snapshots go first: where one is, all that it leads to still is."""
    keys = [file.key for objects in litter.values() for file in objects]
    snapshots = [key for key in keys if key.startswith("_ss/") and key.endswith(".json")]
    yield snapshots
    for folder, objects in litter.items():
        yield [file.key for file in objects if folder != "_ss" or file.key.endswith(".parquet")]


def _live_snapshots(store: Store, cutoff: datetime, keep: int) -> Iterator[tuple[FileRef, bool]]:
    """List every snapshot that must stay, some of them more than once, and whether it is certain to be there.

    An earlier vacuum, told to keep less, may have collected it.
    """
    for name in list_branch_names(store):
        branch = Branch(store, name)
        count, replaced = 0, datetime.max.replace(tzinfo=UTC)
        for entry in branch.walk(branch.complete_head().sequence):
            if count >= keep and replaced < cutoff:
                break
            if entry.reference is not None and (replaced >= cutoff or count < keep):
                yield entry.reference, count == 0
            if entry.kind == "tombstone":
                count = keep  # what was before it stays for the retention alone
            count += entry.reference is not None
            replaced = entry.timestamp
    now = datetime.now(UTC)
    yield from ((tag.reference, True) for tag in list_tags(store) if not tag.expired(now))


class _ReachableFiles:
    """Keys of all files that living snapshots lead to."""

    def __init__(self, store: Store) -> None:
        self.store, self.keys, self.kept_prefixes = store, set[str](), set[str]()
        self.longest_write = timedelta(0)
        self.file_count = 0

    def add(self, reference: FileRef, needed: bool) -> None:
        """Add the files of a snapshot, which may be gone unless it is ``needed``.

        Raises StorageError for anything that leads to rows and cannot be read.
        """
        if reference.path in self.keys:
            return
        try:
            data = read_verified(self.store, reference)
        except NotFound:
            if needed:
                raise
            return
        self._add(Snapshot.decode(data, reference.path))

    def add_young(self, since: datetime) -> None:
        """Add the files of all snapshots that are too young to go: where a snapshot is, all that it leads to is too."""
        for file in self.store.list("_ss"):
            if file.key.endswith(".json") and file.modified >= since and file.key not in self.keys:
                with suppress(NotFound, FormatError):  # nothing leads to it, so nobody needs what it lacks
                    self._add(Snapshot.decode(read_at_most(self.store, file.key, MAX_SNAPSHOT_BYTES), file.key))

    def _add(self, snapshot: Snapshot) -> None:
        self.keys.add(snapshot.path)
        limit = timedelta(seconds=float(snapshot.properties.get("max_write_seconds", MAX_WRITE_SECONDS)))
        self.longest_write = max(self.longest_write, limit)
        if snapshot.segments is None:
            return
        self.keys.add(snapshot.segments.path)
        rows = read_segment_list(self.store, snapshot, Cache(0))
        for segment_file, zones in zip(segment_files(rows), zone_files(rows), strict=True):
            if segment_file.reference.path not in self.keys:
                self.keys |= {segment_file.reference.path} | ({zones.reference.path} if zones is not None else set())
                blocks = metadata_table.read_column_groups(self.store, segment_file, [("id", "location")], Cache(0))[
                    0
                ].to_pylist()
                self.keys |= {block["location"] or block_path(block["id"]) for block in blocks}
        for key in snapshot.keys:
            for sidecars in sidecar_files(rows, key):
                if sidecars is not None and sidecars.reference.path not in self.keys:
                    self.keys.add(sidecars.reference.path)
                    self._add_packs(key, sidecars)

    def _add_packs(self, key: str, sidecars: metadata_table.MetadataFile) -> None:
        try:
            (rows,) = metadata_table.read_column_groups(self.store, sidecars, [("pack",)], Cache(0))
            self.keys |= set(pc.drop_null(pc.unique(rows.column("pack"))).to_pylist())
        except (NotFound, FormatError):
            self.kept_prefixes.add(f"_i/{key}/")  # readers can do without it; which packs it leads to, nobody can say

    def unreachable(self, folder: str, before: datetime) -> Iterator[ObjectMeta]:
        """List the files that nothing leads to, and that no writer can still commit."""
        for file in self.store.list(folder):
            self.file_count += 1
            reachable = file.key in self.keys or any(file.key.startswith(prefix) for prefix in self.kept_prefixes)
            if not reachable and file.modified < before:
                yield file
