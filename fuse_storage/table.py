"""The front door: a table at one of its snapshots.

A handle never changes: it reads the snapshot that it was opened at, for ever. ``refresh`` gives another handle, at the
head. Nothing here writes rows or decides who wins; that is done by ``writing`` and ``transaction``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_storage.commit.draft import Passed
from fuse_storage.commit.schema_evolution import cluster_ids, key_by
from fuse_storage.commit.segment_writer import Limits, SegmentWriter
from fuse_storage.commit.snapshot_hold import hold
from fuse_storage.commit.transaction import Transaction, land, publish
from fuse_storage.errors import AlreadyExists, InvalidArgument, NotFound, SchemaError
from fuse_storage.location import checked_properties, not_a_table, refuse_occupied
from fuse_storage.metadata.block_frame import Blocks, Zones
from fuse_storage.metadata.file_ref import new_id, read_verified
from fuse_storage.metadata.metadata_table import Indices
from fuse_storage.metadata.refs import MAIN, NAME, Branch, RefEntry, is_id, next_timestamp, written
from fuse_storage.metadata.segment import read_list
from fuse_storage.metadata.segment_frame import SegmentList
from fuse_storage.metadata.sidecar_writer import SidecarBuilder, SidecarWriter
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, Snapshot, place_of, snapshot_path
from fuse_storage.metadata.tags import Tag, find_tag, near, tags
from fuse_storage.parquet import writer as blocks
from fuse_storage.parquet.pages import Mask
from fuse_storage.schema.schema import Schema
from fuse_storage.store.cache import shared
from fuse_storage.store.shared_files import located
from fuse_storage.store.store import Store, open_store

READERS = 8
"""Snapshots that are read at a time."""


class Table:
    """One snapshot of one branch. Picklable: what arrives elsewhere reads the same snapshot."""

    def __init__(self, store: Store, branch: str, entry: RefEntry, snapshot: Snapshot) -> None:
        self.store, self.branch, self.entry, self.snapshot = store, branch, entry, snapshot
        self._segments: SegmentList | None = None
        self._blocks: Blocks | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.store, self.branch, self.entry, self.snapshot)

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
    ) -> Table:
        """A new table without rows. ``options``: those of the store. ``key``: columns that identify a row.


        Raises AlreadyExists where there is a table or anything else, SchemaError for a column that cannot be,
        InvalidArgument for a property that cannot be.
        """
        store = _store(store, options)
        made, properties = Schema.create(schema), checked_properties(properties or {})
        if not made.fields:
            raise SchemaError("a table needs at least one column")
        clustered = cluster_ids(made, cluster_by, properties.get("cluster_method", CLUSTER_METHODS[0]))
        branch = Branch(store, MAIN)
        refuse_occupied(branch)
        columns = [part for field in made.fields for part in field.walk()]
        snapshot = Snapshot(
            id=new_id(),
            sequence=1,
            branch=MAIN,
            commit_id=new_id(),
            parent=None,
            timestamp=next_timestamp(None),
            operation="create",
            schema_id=made.id,
            schemas={made.id: made},
            last_column_id=max((part.id for part in columns), default=0),
            names={part.id: (part.name,) for part in columns},
            cluster_ids=clustered,
            properties=properties,
        )
        snapshot = key_by(snapshot, key)
        entry = publish(store, snapshot, None)
        if not land(branch, entry, monotonic() + 60):
            raise AlreadyExists(f"{store.url} already is a table: somebody else just created it; open it")
        branch.note(1)
        return Table(store, MAIN, entry, snapshot)

    @staticmethod
    def open(
        store: Store | str | Path,
        branch: str = MAIN,
        at: str | datetime | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Table:
        """The head of a branch, or what it was ``at`` a snapshot id, a tag or a time (a datetime, or ISO text, with
        zone).

        Raises NotFound where there is no such table, branch, tag, snapshot or time; Unsupported for what is newer than
        this version; Corrupt for what is damaged.
        """
        store = _store(store, options)
        chain = Branch(store, branch)
        try:
            head = chain.head()
        except NotFound as missing:
            raise not_a_table(chain, missing) from missing
        if at is None:
            return _at_entry(chain, head)
        if isinstance(at, datetime):
            return _at_entry(chain, chain.at_time(_aware(at, str(at))))
        if is_id(at):
            return _at_snapshot(store, at)
        if (tag := find_tag(store, at)) is not None:
            return _at_tag(store, tag)
        try:
            when = datetime.fromisoformat(at)
        except ValueError:
            hint = near(at, [tag.name for tag in tags(store)])
            raise NotFound(
                f"{store.url} has no tag {at!r}, and it is neither a snapshot id nor a time in ISO form{hint}"
            ) from None
        return _at_entry(chain, chain.at_time(_aware(when, at)))

    def at(self, snapshot_id: str) -> Table:
        """Another snapshot of the same table. Raises NotFound."""
        return _at_snapshot(self.store, snapshot_id)

    def number(self, sequence: int) -> Table:
        """What the commit with this number made of the branch. Raises NotFound if it was collected, or is no
        snapshot's.
        """
        chain = Branch(self.store, self.branch)
        if (entry := chain.find(sequence)) is None:
            raise NotFound(f"{self.store.url}: branch {self.branch!r} has no commit number {sequence}")
        return _at_entry(chain, entry)

    def refresh(self) -> Table:
        """The head of the branch; the same handle if it is there already. Raises NotFound if the branch was dropped."""
        chain = Branch(self.store, self.branch)
        head = chain.head(known=self.entry)
        return self if head is self.entry else _at_entry(chain, head)

    def moved(self, entry: RefEntry, snapshot: Snapshot) -> Table:
        """A handle at a snapshot that was just committed."""
        return Table(self.store, self.branch, entry, snapshot)

    def history(self, limit: int | None = None) -> list[RefEntry]:
        """What happened to the branch up to this snapshot, newest first."""
        newest = self.entry.sequence
        oldest = 1 if limit is None else max(newest - limit + 1, 1)
        return list(Branch(self.store, self.branch).walk(newest, oldest))

    def snapshots(self, limit: int | None = None) -> list[tuple[RefEntry, Snapshot | None]]:
        """The history, newest first, each with its snapshot; None where that has been collected, or a branch was
        dropped.
        """

        def found(entry: RefEntry) -> Snapshot | None:
            try:
                return _snapshot(chain, entry)
            except NotFound:
                return None

        chain, entries = Branch(self.store, self.branch), self.history(limit)
        with ThreadPoolExecutor(READERS, "fuse-snapshots") as pool:
            return list(zip(entries, pool.map(found, entries), strict=True))

    def since(self, base: Snapshot) -> Passed:
        """The commits after ``base`` up to this one, oldest first, read when they are asked for."""
        found: list[tuple[RefEntry, Snapshot]] = []

        def passed() -> list[tuple[RefEntry, Snapshot]]:
            if not found and self.snapshot.sequence > base.sequence:
                chain = Branch(self.store, self.branch)
                entries = chain.walk(self.snapshot.sequence, base.sequence + 1)
                found.extend((entry, _snapshot(chain, entry)) for entry in reversed(list(entries)) if entry.reference)
            return found

        return passed

    def was_committed(self, commit_id: str) -> bool:
        """Whether this commit is on the branch by now. Reads the whole history if it is not."""
        chain = Branch(self.store, self.branch)
        return any(entry.commit_id == commit_id for entry in chain.walk(chain.head(known=self.entry).sequence))

    def tag(self, name: str, expires: datetime | None = None) -> Tag:
        """Name this snapshot, for ever or until a time. Raises AlreadyExists if the name is taken, InvalidArgument if
        it is none.
        """
        assert self.entry.reference is not None
        until = None if expires is None else _aware(expires, str(expires))
        tag = Tag(name, datetime.now(UTC), self.snapshot.id, self.entry.reference, until)
        hold(self.store, self.branch, self.entry, tag)
        return tag

    def segments(self) -> SegmentList:
        """All segments. Raises StorageError if the list cannot be read."""
        if self._segments is None:
            self._segments = SegmentList(self.store, self.snapshot, read_list(self.store, self.snapshot))
        return self._segments

    def blocks(self, segments: Indices | Sequence[int] | None = None, statistics: Iterable[int] = ()) -> Blocks:
        """The blocks of these segments, by default of all.

        ``statistics``: ids of columns whose statistics will be asked for; they are read in the same pass over the
        files.
        """
        if self._blocks is None:
            self._blocks = Blocks.of(self.segments())
        first, counts = self.segments().first_block, self.segments().block_counts
        chosen = np.arange(len(counts)) if segments is None else np.asarray(segments, np.int64)
        if np.array_equal(chosen, np.arange(len(counts))):
            return self._blocks.prefetch(statistics)
        starts, lengths = first[chosen], counts[chosen]
        ends = np.cumsum(lengths)
        wanted = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
        return self._blocks.take(wanted).prefetch(statistics)

    def zones(self, blocks: Blocks) -> Zones:
        """The zones of these blocks. Raises nothing for zones that cannot be read."""
        return blocks.zones()

    def read(
        self,
        blocks_of: Blocks,
        block: int,
        columns: Sequence[str],
        zones: Sequence[int] | None = None,
        rows: Mask | None = None,
    ) -> pa.Table:
        """These columns, under their logical names, of one block of the frame, or of some of its zones.

        ``rows``: which rows of these zones, one element for each; pages without any of them are not read.
        Raises SchemaError for an unknown column, NotFound or Corrupt for a damaged file.
        """
        file = blocks_of.file(block)
        store, key = located(self.store, file.key)
        return blocks.read(store, replace(file, key=key), self.snapshot.schema, columns, zones, rows=rows)

    def listing(self) -> tuple[list[str], Indices]:
        """Paths or URLs of all blocks' files, in their order, and their sizes in bytes."""
        found = self.blocks()
        places = [located(self.store, location) for location in found.locations]
        return [store.path(key) or f"{store.url}/{key}" for store, key in places], found.sizes

    def writer(
        self, sidecars: Sequence[SidecarBuilder] = (), schema: Schema | None = None, level: int = 0, **limits: int
    ) -> SegmentWriter:
        """Takes rows, stages segments with what these indexes know of them. ``limits``: see ``writing.Limits``.

        ``schema``: other columns, which the transaction that commits these rows is to bring. ``level``: how often these
        rows have been rewritten to be clustered.
        """
        self.snapshot.refuse_writing()
        properties = self.snapshot.properties
        limited = Limits.of(properties, **limits)
        return SegmentWriter(self.store, schema or self.snapshot.schema, tuple(sidecars), limited, properties, level)

    def sidecar_writer(self, builder: SidecarBuilder) -> SidecarWriter:
        """Stages what an index knows of segments that are already there."""
        return SidecarWriter(self.store, builder, Limits.of(self.snapshot.properties).pack_bytes)

    def transaction(self, sidecars: Sequence[SidecarBuilder] = (), commit_id: str | None = None) -> Transaction:
        """Changes to be committed together. ``sidecars``: roll up what is known of segments that merge on the way.

        ``commit_id``: of a commit that may have been made already; then it is not made again.
        """
        return Transaction(
            self, {builder.key: builder for builder in sidecars}, commit_id or new_id(), commit_id is not None
        )


def _store(store: Store | str | Path, options: Mapping[str, str] | None) -> Store:
    return open_store(store, options) if isinstance(store, str | Path) else store


def _snapshot(chain: Branch, entry: RefEntry) -> Snapshot:
    store, reference = chain.store, entry.reference
    if reference is None:
        raise NotFound(f"{store.url}: branch {chain.name!r} was dropped by {entry}: open another, or begin it anew")

    def load() -> Snapshot:
        return Snapshot.decode(read_verified(store, reference), f"{store.url}/{reference.path}")

    return shared.get(("snapshot", store.url, reference.path), load, lambda _: 20 * reference.length)


def _at_entry(chain: Branch, entry: RefEntry) -> Table:
    return Table(chain.store, chain.name, entry, _snapshot(chain, entry))


def _at_tag(store: Store, tag: Tag) -> Table:
    if tag.expires is not None and tag.expired():
        raise NotFound(
            f"{store.url}: tag {tag.name!r} expired at {written(tag.expires)}; it named snapshot {tag.snapshot_id}"
        )
    return _at_snapshot(store, tag.snapshot_id)


def _at_snapshot(store: Store, id: str) -> Table:
    """A snapshot says which entry made it visible; only that entry is believed."""
    try:
        data = store.read(snapshot_path(id))
    except NotFound as missing:
        raise NotFound(f"{store.url} has no snapshot {id}: it never had, or it was collected") from missing
    branch, sequence = place_of(data, f"{store.url}/{snapshot_path(id)}")
    entry = Branch(store, branch).find(sequence) if NAME.fullmatch(branch) else None
    if entry is None or entry.snapshot_id != id:
        raise NotFound(
            f"{store.url}: no commit made snapshot {id}: a writer prepared it and gave up, or its file is damaged"
        )
    return _at_entry(Branch(store, branch), entry)


def _aware(when: datetime, text: str) -> datetime:
    if when.tzinfo is None:
        raise InvalidArgument(f"{text!r} has no time zone: add one, such as +00:00")
    return when
