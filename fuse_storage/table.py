"""The front door: a table at one of its snapshots.

A handle never changes: it reads the snapshot that it was opened at, for ever. ``refresh`` gives another handle, at the
head. Nothing here writes rows or decides who wins; that is done in ``commit``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_storage.commit.draft import CommitLoader
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, NEVER_SEEN, Sighting, create_ref, write_snapshot
from fuse_storage.commit.segment_writer import SegmentWriter, WriteOptions
from fuse_storage.commit.sidecar_writer import SidecarBuilder, SidecarWriter
from fuse_storage.commit.snapshot_hold import tag_snapshot
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import AlreadyExists, Corrupt, TableUrl
from fuse_storage.hot.chain import follow
from fuse_storage.hot.small_blocks import BlockRequest, ChosenRows, read_blocks
from fuse_storage.hot.tail import read_tail, without_tail
from fuse_storage.hot_commit.snapshot_of import snapshot_of
from fuse_storage.location import first_snapshot, raise_if_occupied
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.encoding import require_time_zone, utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.metadata_table import IndexArray, ranges_to_indices
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, RefEntry
from fuse_storage.metadata.segment_frame import ScanUnits, SegmentFrame, ZoneFrame
from fuse_storage.metadata.segment_list import read_segment_list
from fuse_storage.metadata.snapshot import Snapshot, read_snapshot
from fuse_storage.metadata.tags import Tag, check_free_of_branch
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.parquet.found_rows import RowRequest, read_found_rows
from fuse_storage.parquet.pages import RowMask
from fuse_storage.partitions.spec import PartitionSpec
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema.schema import Schema
from fuse_storage.states import CommitReader, find_state, find_version, iterate_commits, resolve_state
from fuse_storage.store.shared_files import resolve_foreign_store, resolve_store
from fuse_storage.store.store import Store, open_store
from fuse_storage.validation.features import FOREIGN_FILES_FEATURE

_SNAPSHOT_READER_THREADS = 8  # snapshots that are read at a time


class StoredTable:
    """One snapshot of one branch, or the state after hot commits. Picklable: what arrives elsewhere reads the same.

    ``entry``: the snapshot's, in its branch. ``seen``: when this was known to be a state of it.
    """

    def __init__(self, store: Store, branch: str, entry: RefEntry, snapshot: Snapshot) -> None:
        self.store, self.branch, self.entry, self.snapshot = store, branch, entry, snapshot
        self._segments: SegmentFrame | None = None
        self._blocks: BlockFrame | None = None
        self._tiered: StoredTable | None = None
        self.seen = Sighting()

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredTable, (self.store, self.branch, self.entry, self.snapshot), {"seen": NEVER_SEEN}

    def __repr__(self) -> str:
        return f"Table({self.store.url!r}, branch={self.branch!r}, snapshot={self.snapshot.id!r})"

    @staticmethod
    def create(
        store: Store | str | Path,
        schema: pa.Schema,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        key: Sequence[str] = (),
        partitions: Sequence[str] = (),
    ) -> StoredTable:
        """A new table without rows. ``key``: columns that identify a row; ``partitions``: whose values no block mixes.

        Raises AlreadyExists where there is anything, SchemaError and InvalidArgument for columns and properties.
        """
        store = open_store(store) if isinstance(store, str | Path) else store
        snapshot = first_snapshot(schema, cluster_by, properties or {}, key, partitions)
        branch = Branch(store, MAIN_BRANCH)
        raise_if_occupied(branch)
        entry = write_snapshot(store, snapshot, None)
        if not create_ref(branch, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
            raise AlreadyExists(TableUrl(store.url) + " already is a table: somebody else just created it; open it")
        branch.write_head_hint(1)
        return StoredTable(store, MAIN_BRANCH, entry, snapshot)

    @staticmethod
    def open(
        store: Store | str | Path,
        branch: str = MAIN_BRANCH,
        at: str | int | datetime | None = None,
        options: Mapping[str, str] | None = None,
        version: int | None = None,
    ) -> StoredTable:
        """The head of a branch, or what it was ``at`` a snapshot id, a tag or a time, or at a version.

        A time is a datetime, or text in ISO form, with a zone. Raises NotFound where there is no such table, branch,
        tag, snapshot or time; Unsupported for what is newer than this version; Corrupt for what is damaged.
        """
        store = open_store(store, options) if isinstance(store, str | Path) else store
        return _at_state(*resolve_state(Branch(store, branch), at, version))

    def at(self, snapshot_id: str) -> StoredTable:
        """Another snapshot of the same table. Raises NotFound."""
        return _at_state(*find_state(self.store, snapshot_id))

    def at_version(self, version: int) -> StoredTable:
        """The branch as its commit number ``version`` made it. Raises NotFound if that is no state, or collected."""
        if version == self.snapshot.version:
            return self
        return _at_state(*find_version(Branch(self.store, self.branch), version))

    def refresh(self) -> StoredTable:
        """The head of the branch; the same handle if it is there already. Raises NotFound if the branch was dropped."""
        chain = Branch(self.store, self.branch)
        head = chain.head(known=self.entry)
        state = self.snapshot if head is self.entry else read_snapshot(chain, head)
        entry, newest = follow(chain, head, state, probe=head is self.entry)
        if newest is self.snapshot:
            self.seen = Sighting()
            return self
        return _at_state(chain, entry, newest)

    def at_entry(self, entry: RefEntry, snapshot: Snapshot) -> StoredTable:
        """A handle at a snapshot that was just committed."""
        return StoredTable(self.store, self.branch, entry, snapshot)

    def history(self, limit: int | None = None) -> list[RefEntry]:
        """The commits of the branch up to this state, newest first; of hot ones those that were not collected."""
        return [entry for entry, _ in islice(self._commits(limit), limit)]

    def snapshots(self, limit: int | None = None) -> list[tuple[RefEntry, Snapshot | None]]:
        """The commits of the history, newest first, each with the state that it made.

        None stands for a snapshot that was collected, and for an entry by which the branch was dropped.
        """
        with ThreadPoolExecutor(_SNAPSHOT_READER_THREADS, "fuse-snapshots") as pool:
            return list(pool.map(lambda each: (each[0], each[1]()), islice(self._commits(limit), limit)))

    def entries(self, oldest: int = 1) -> list[RefEntry]:
        """The entries of the branch up to this state, newest first, without hot commits."""
        return list(Branch(self.store, self.branch).walk(self.entry.sequence, oldest))

    def without_tail(self) -> StoredTable:
        """What is in segments; only to be read."""
        if self._tiered is None:
            self._tiered = StoredTable(self.store, self.branch, self.entry, without_tail(self.snapshot))
        return self._tiered

    def commits_since(self, base: Snapshot) -> CommitLoader:
        """The commits after ``base`` up to this one, oldest first, read when they are asked for.

        Those whose snapshots were collected are left out: what they did is in the next one that is kept.
        """
        commits: list[tuple[RefEntry, Snapshot]] = []

        def load_commits() -> list[tuple[RefEntry, Snapshot]]:
            if not commits and self.snapshot.version > base.version:
                for entry, snapshot in reversed(self.snapshots(self.snapshot.version - base.version)):
                    if snapshot is not None and entry.version > base.version:
                        commits.append((entry, snapshot))
            return commits

        return load_commits

    def was_committed(self, commit_id: str) -> bool:
        """Say whether this commit is on the branch by now. Reads the whole history if it is not."""
        return commit_id in (entry.commit_id for entry in self.refresh().history())

    def _commits(self, limit: int | None) -> Iterator[CommitReader]:
        return iterate_commits(Branch(self.store, self.branch), self.entry, self.snapshot, limit)

    def tag(self, name: str, expires: datetime | None = None) -> Tag:
        """Name this snapshot, for ever or until a time. Raises AlreadyExists, and InvalidArgument for a bad name."""
        check_free_of_branch(self.store, name)
        table = snapshot_of(self)
        assert table.entry.reference is not None
        table.snapshot.check_writable()
        until = None if expires is None else require_time_zone(expires, str(expires))
        tag = Tag(name, utc_now(), table.snapshot.id, table.entry.reference, until)
        tag_snapshot(table.store, table.branch, table.entry, tag)
        return tag

    def segments(self) -> SegmentFrame:
        """All segments. Raises StorageError if the list cannot be read."""
        if self._segments is None:
            rows, tail = read_segment_list(self.store, self.snapshot), read_tail(self.store, self.snapshot)
            self._segments = row_rules(self.snapshot).open_segments(self.store, rows, tail)
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
        """Read columns, under their logical names, of one block of the frame, or of some of its zones.

        ``row_mask``: bool, shape (rows of these zones,), the rows that are wanted; pages without any are not read.
        Raises SchemaError for an unknown column, NotFound or Corrupt for a damaged file.
        """
        return self.read_blocks(frame, columns, [(block, zones, row_mask)])[0]

    def read_blocks(self, frame: ScanUnits, columns: Sequence[str], chosen: Iterable[ChosenRows]) -> list[pa.Table]:
        """What ``read_block`` gives of each of these blocks, zones and masks: small hot blocks are read all at once."""
        requests = [BlockRequest(*self._locate(frame.file(block)), zones, mask) for block, zones, mask in chosen]
        return read_blocks(requests, self.snapshot.schema, columns)

    def read_rows(
        self, frame: ScanUnits, columns: Sequence[str], found: Sequence[tuple[int, Sequence[int], RowMask]]
    ) -> pa.Table:
        """Read columns of a few rows of each of many blocks of the frame, decoded together.

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
            raise Corrupt(
                TableUrl(self.store.url) + f" refers to {location!r} without the feature {FOREIGN_FILES_FEATURE!r}"
            )
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

        ``schema``: other columns, brought by the transaction that commits. ``level``: how often rows were rewritten.
        """
        self.snapshot.check_writable()
        self.snapshot.check_own_rows()
        chosen = WriteOptions.from_properties(self.snapshot.properties, **options)
        schema, spec = schema or self.snapshot.schema, PartitionSpec.from_snapshot(self.snapshot, schema)
        return SegmentWriter(self.store, schema, tuple(sidecars), chosen, level, spec)

    def sidecar_writer(self, builder: SidecarBuilder) -> SidecarWriter:
        """Stages what an index knows of segments that are already there."""
        return SidecarWriter(self.store, builder, WriteOptions.from_properties(self.snapshot.properties).pack_bytes)

    def transaction(
        self, sidecars: Sequence[SidecarBuilder] = (), commit_id: str | None = None
    ) -> Transaction[StoredTable]:
        """Changes to be committed together. ``sidecars``: roll up what is known of segments that merge on the way.

        ``commit_id``: of a commit that may have been made already; then it is not made again.
        """
        builders = {builder.key: builder for builder in sidecars}
        return Transaction(self, builders, commit_id or new_id(), commit_id is not None)


def _at_state(branch: Branch, entry: RefEntry, state: Snapshot) -> StoredTable:
    return StoredTable(branch.store, branch.name, entry, state)
