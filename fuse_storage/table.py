"""The front door: a table at one of its snapshots.

A handle never changes: it reads the snapshot that it was opened at, for ever. ``refresh`` gives another handle, at the
head. Nothing here writes rows or decides who wins; that is done in ``commit``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_storage.commit.draft import CommitLoader
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, create_ref, write_snapshot
from fuse_storage.commit.segment_writer import SegmentWriter, WriteOptions
from fuse_storage.commit.sidecar_writer import SidecarBuilder, SidecarWriter
from fuse_storage.commit.snapshot_hold import tag_snapshot
from fuse_storage.commit.table_keys import cluster_column_ids, key_by
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import AlreadyExists, Corrupt, NotFound, SchemaError
from fuse_storage.location import find_snapshot_entry, raise_if_occupied, resolve_entry, validate_properties
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.encoding import require_time_zone, utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.metadata_table import IndexArray, ranges_to_indices
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, RefEntry, next_timestamp
from fuse_storage.metadata.segment_frame import ScanUnits, SegmentFrame, ZoneFrame
from fuse_storage.metadata.segment_list import read_segment_list
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, FOREIGN_FILES_FEATURE, Snapshot, read_snapshot
from fuse_storage.metadata.tags import Tag
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.parquet.found_rows import RowRequest, read_found_rows
from fuse_storage.parquet.pages import RowMask
from fuse_storage.parquet.reader import read_block
from fuse_storage.schema.schema import Schema, check_names
from fuse_storage.store.shared_files import resolve_foreign_store, resolve_store
from fuse_storage.store.store import Store, open_store

_SNAPSHOT_READER_THREADS = 8
"""Snapshots that are read at a time."""


class StoredTable:
    """One snapshot of one branch. Picklable: what arrives elsewhere reads the same snapshot."""

    def __init__(self, store: Store, branch: str, entry: RefEntry, snapshot: Snapshot) -> None:
        self.store, self.branch, self.entry, self.snapshot = store, branch, entry, snapshot
        self._segments: SegmentFrame | None = None
        self._blocks: BlockFrame | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredTable, (self.store, self.branch, self.entry, self.snapshot)

    def __repr__(self) -> str:
        return f"Table({self.store.url!r}, branch={self.branch!r}, snapshot={self.snapshot.id!r})"

    @staticmethod
    def create(
        store: Store | str | Path,
        schema: pa.Schema,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
        key: Sequence[str] = (),
    ) -> StoredTable:
        """A new table without rows. ``options``: those of the store. ``key``: columns that identify a row.

        Raises AlreadyExists where there is a table or anything else, SchemaError for a column that cannot be,
        InvalidArgument for a property that cannot be.
        """
        store = _to_store(store, options)
        new_schema, properties = Schema.create(schema), validate_properties(properties or {})
        if not new_schema.fields:
            raise SchemaError("a table needs at least one column")
        check_names(new_schema.fields)
        cluster_ids = cluster_column_ids(new_schema, cluster_by, properties.get("cluster_method", CLUSTER_METHODS[0]))
        branch = Branch(store, MAIN_BRANCH)
        raise_if_occupied(branch)
        all_fields = [field_part for field in new_schema.fields for field_part in field.walk()]
        snapshot = Snapshot(
            id=new_id(),
            sequence=1,
            branch=MAIN_BRANCH,
            commit_id=new_id(),
            parent=None,
            timestamp=next_timestamp(None),
            operation="create",
            schema_id=new_schema.id,
            schemas={new_schema.id: new_schema},
            last_column_id=max((field_part.id for field_part in all_fields), default=0),
            names={field_part.id: (field_part.name,) for field_part in all_fields},
            cluster_ids=cluster_ids,
            properties=properties,
        )
        snapshot = key_by(snapshot, key)
        entry = write_snapshot(store, snapshot, None)
        if not create_ref(branch, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
            raise AlreadyExists(f"{store.url} already is a table: somebody else just created it; open it")
        branch.write_head_hint(1)
        return StoredTable(store, MAIN_BRANCH, entry, snapshot)

    @staticmethod
    def open(
        store: Store | str | Path,
        branch: str = MAIN_BRANCH,
        at: str | datetime | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StoredTable:
        """The head of a branch, or what it was ``at`` a snapshot id, a tag or a time.

        A time is a datetime, or text in ISO form, with a zone. Raises NotFound where there is no such table, branch,
        tag, snapshot or time; Unsupported for what is newer than this version; Corrupt for what is damaged.
        """
        return _at_entry(*resolve_entry(Branch(_to_store(store, options), branch), at))

    def at(self, snapshot_id: str) -> StoredTable:
        """Another snapshot of the same table. Raises NotFound."""
        return _at_entry(*find_snapshot_entry(self.store, snapshot_id))

    def at_sequence(self, sequence: int) -> StoredTable:
        """The branch as the commit with this number made it. Raises NotFound if that is no snapshot, or collected."""
        chain = Branch(self.store, self.branch)
        entry = chain.entry(sequence) if sequence <= self.entry.sequence else chain.find(sequence)
        if entry is None:
            raise NotFound(f"{self.store.url}: branch {self.branch!r} has no commit number {sequence}")
        return _at_entry(chain, entry)

    def refresh(self) -> StoredTable:
        """The head of the branch; the same handle if it is there already. Raises NotFound if the branch was dropped."""
        chain = Branch(self.store, self.branch)
        head = chain.head(known=self.entry)
        return self if head is self.entry else _at_entry(chain, head)

    def at_entry(self, entry: RefEntry, snapshot: Snapshot) -> StoredTable:
        """A handle at a snapshot that was just committed."""
        return StoredTable(self.store, self.branch, entry, snapshot)

    def history(self, limit: int | None = None) -> list[RefEntry]:
        """The entries of the branch up to this snapshot, newest first."""
        newest = self.entry.sequence
        oldest = 1 if limit is None else max(newest - limit + 1, 1)
        return list(Branch(self.store, self.branch).walk(newest, oldest))

    def snapshots(self, limit: int | None = None) -> list[tuple[RefEntry, Snapshot | None]]:
        """The entries of the history, newest first, each with its snapshot.

        None stands for a snapshot that was collected, and for an entry by which the branch was dropped.
        """

        def read_if_kept(entry: RefEntry) -> Snapshot | None:
            try:
                return read_snapshot(chain, entry)
            except NotFound:
                return None

        chain, entries = Branch(self.store, self.branch), self.history(limit)
        with ThreadPoolExecutor(_SNAPSHOT_READER_THREADS, "fuse-snapshots") as pool:
            return list(zip(entries, pool.map(read_if_kept, entries), strict=True))

    def commits_since(self, base: Snapshot) -> CommitLoader:
        """The commits after ``base`` up to this one, oldest first, read when they are asked for.

        Those whose snapshots were collected are left out: what they did is in the next one that is kept.
        """
        commits: list[tuple[RefEntry, Snapshot]] = []

        def load_commits() -> list[tuple[RefEntry, Snapshot]]:
            if not commits and self.snapshot.sequence > base.sequence:
                kept = self.snapshots(self.snapshot.sequence - base.sequence)
                commits.extend((entry, snapshot) for entry, snapshot in reversed(kept) if snapshot is not None)
            return commits

        return load_commits

    def was_committed(self, commit_id: str) -> bool:
        """Say whether this commit is on the branch by now. Reads the whole history if it is not."""
        chain = Branch(self.store, self.branch)
        return any(entry.commit_id == commit_id for entry in chain.walk(chain.head(known=self.entry).sequence))

    def tag(self, name: str, expires: datetime | None = None) -> Tag:
        """Name this snapshot, for ever or until a time. Raises AlreadyExists, and InvalidArgument for a bad name."""
        assert self.entry.reference is not None
        self.snapshot.check_writable()
        until = None if expires is None else require_time_zone(expires, str(expires))
        tag = Tag(name, utc_now(), self.snapshot.id, self.entry.reference, until)
        tag_snapshot(self.store, self.branch, self.entry, tag)
        return tag

    def segments(self) -> SegmentFrame:
        """All segments. Raises StorageError if the list cannot be read."""
        if self._segments is None:
            self._segments = SegmentFrame(self.store, self.snapshot, read_segment_list(self.store, self.snapshot))
        return self._segments

    def blocks(self, segments: IndexArray | Sequence[int] | None = None, statistics: Iterable[int] = ()) -> BlockFrame:
        """The blocks of these segments, by default of all.

        ``segments``: int64, shape (k,), numbers of segments. ``statistics``: ids of columns whose statistics will be
        asked for; they are read in the same pass over the files.
        """
        if self._blocks is None:
            self._blocks = BlockFrame.from_segments(self.segments())
        first, counts = self.segments().block_offsets, self.segments().block_counts
        chosen = np.arange(len(counts)) if segments is None else np.asarray(segments, np.int64)
        if np.array_equal(chosen, np.arange(len(counts))):
            return self._blocks.prefetch(statistics)
        return self._blocks.take(ranges_to_indices(first[chosen], counts[chosen])).prefetch(statistics)

    def zones(self, blocks: BlockFrame) -> ZoneFrame:
        """The zones of these blocks. Raises nothing for zones that cannot be read."""
        return blocks.zones()

    def read_block(
        self,
        frame: ScanUnits,
        block: int,
        columns: Sequence[str],
        zones: Sequence[int] | None = None,
        row_mask: RowMask | None = None,
    ) -> pa.Table:
        """These columns, under their logical names, of one block of the frame, or of some of its zones.

        ``row_mask``: bool, shape (rows of these zones,), the rows that are wanted; pages without any are not read.
        Raises SchemaError for an unknown column, NotFound or Corrupt for a damaged file.
        """
        store, file = self._locate(frame.file(block))
        return read_block(store, file, self.snapshot.schema, columns, zones, row_mask=row_mask)

    def read_rows(
        self, frame: ScanUnits, columns: Sequence[str], found: Sequence[tuple[int, Sequence[int], RowMask]]
    ) -> pa.Table:
        """These columns of a few rows of each of many blocks of the frame, decoded together.

        ``found``: blocks, their zones, and a bool mask of shape (rows of these zones,), True where the row is wanted.
        Returns the rows in this order. Raises as ``read_block``.
        """
        requests = [RowRequest(*self._locate(frame.file(block)), zones, row_mask) for block, zones, row_mask in found]
        return read_found_rows(requests, self.snapshot.schema, columns)

    def _locate(self, file: BlockFile) -> tuple[Store, BlockFile]:
        store, key = self._place(file.key, file.foreign is not None)
        return store, replace(file, key=key)

    def _place(self, location: str, foreign: bool) -> tuple[Store, str]:
        if not foreign:
            return resolve_store(self.store, location, self.snapshot.shares_files)
        if self.snapshot.source is None:
            raise Corrupt(f"{self.store.url} refers to {location!r} without the feature {FOREIGN_FILES_FEATURE!r}")
        return resolve_foreign_store(self.store, location, self.snapshot.source["url"])

    def block_files(self) -> tuple[list[str], IndexArray]:
        """List the paths or URLs of all blocks' files, in their order, and their sizes in bytes: int64, shape (n,)."""
        blocks = self.blocks()
        store_keys = map(self._place, blocks.locations, blocks.foreign.mask.tolist())
        return [store.path(key) or f"{store.url}/{key}" for store, key in store_keys], blocks.sizes

    def writer(
        self, sidecars: Sequence[SidecarBuilder] = (), schema: Schema | None = None, level: int = 0, **options: Any
    ) -> SegmentWriter:
        """Takes rows, stages segments with what these indexes know of them. ``options``: see ``WriteOptions``.

        ``schema``: other columns, which the transaction that commits these rows is to bring. ``level``: how often these
        rows have been rewritten to be clustered.
        """
        self.snapshot.check_writable()
        self.snapshot.check_own_rows()
        chosen = WriteOptions.from_properties(self.snapshot.properties, **options)
        return SegmentWriter(self.store, schema or self.snapshot.schema, tuple(sidecars), chosen, level)

    def sidecar_writer(self, builder: SidecarBuilder) -> SidecarWriter:
        """Stages what an index knows of segments that are already there."""
        return SidecarWriter(self.store, builder, WriteOptions.from_properties(self.snapshot.properties).pack_bytes)

    def transaction(
        self, sidecars: Sequence[SidecarBuilder] = (), commit_id: str | None = None
    ) -> Transaction[StoredTable]:
        """Changes to be committed together. ``sidecars``: roll up what is known of segments that merge on the way.

        ``commit_id``: of a commit that may have been made already; then it is not made again.
        """
        return Transaction(
            self, {builder.key: builder for builder in sidecars}, commit_id or new_id(), commit_id is not None
        )


def _to_store(store: Store | str | Path, options: Mapping[str, str] | None) -> Store:
    return open_store(store, options) if isinstance(store, str | Path) else store


def _at_entry(branch: Branch, entry: RefEntry) -> StoredTable:
    return StoredTable(branch.store, branch.name, entry, read_snapshot(branch, entry))
