"""Blocks and zones as frames: columns are read when they are asked for, and only of files in which blocks are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import statistics
from fuse_storage.errors import StorageError
from fuse_storage.metadata.metadata_table import Group, Indices, Rows, flat, numbers, offsets
from fuse_storage.metadata.segment import BLOCK, HOT, block_path, parts, sidecar_parts, zone_parts
from fuse_storage.metadata.segment_frame import SegmentList, filled, group_of, has_statistics, merged, schemas_without
from fuse_storage.metadata.sidecar import SidecarRows
from fuse_storage.parquet.reader import BlockFile
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.cache import shared

T = TypeVar("T")
PLACES: Group = ("id", "location", "size", "footer_offset", "footer_length", "zone_rows")
"""Columns of blocks that are of interest for those that are left: read together, since that is one pass over files."""
LIVE: Group = ("live_rows", "stats_exact")
"""What tells whether more than a vote can be had of statistics: asked for by few."""
ORIGIN: Group = ("level", "schema_id", "added_by")
"""What tells how blocks came to be."""
FEW = 16
"""Of so few files all that is not statistics is read at once: going back to a store is dearer."""


class Blocks:
    """Some blocks of a snapshot. ``ordinals``: their numbers among all of them."""

    def __init__(
        self,
        segments: SegmentList,
        rows: Rows,
        ordinals: Indices,
        listed: Indices,
        parent: tuple[Blocks, Indices] | None = None,
        whole: bool = False,
    ) -> None:
        self.segments, self.ordinals = segments, ordinals
        self._rows, self._listed, self._parent, self._whole = rows, listed, parent, whole
        self._kept: dict[Any, Any] = {}

    @staticmethod
    def of(segments: SegmentList) -> Blocks:
        """All blocks of all segments."""
        rows = Rows.whole(segments.store, parts(segments.table), segments.block_counts)
        return Blocks(segments, rows, np.arange(segments.total_blocks), np.arange(len(segments)), whole=True)

    def __len__(self) -> int:
        return len(self.ordinals)

    def take(self, indices: Indices) -> Blocks:
        """The blocks at these positions, in this order."""
        indices = np.asarray(indices, np.int64)
        used = np.unique(self._rows.files[indices])
        return Blocks(
            self.segments, self._rows.take(indices), self.ordinals[indices], self._listed[used], (self, indices)
        )

    def prefetch(self, column_ids: Iterable[int]) -> Blocks:
        """Read the statistics of these columns, and what every plan needs, in one pass over the files."""
        fields = [self.segments.snapshot.schema.by_id(id) for id in column_ids]
        groups = [group_of(field) for field in fields if has_statistics(field)]
        if any(self._recall(group) is None for group in groups):
            self._read([HOT, *groups])
        return self

    @cached_property
    def row_counts(self) -> Indices:
        return numbers(self._columns(HOT), "row_count")

    @cached_property
    def intact(self) -> npt.NDArray[np.bool_]:
        """Blocks of which every row is live and every bound that is not cut is a value: what is kept of them is an
        answer.
        """
        found = self._columns(LIVE)
        exact = np.asarray(pc.fill_null(found.column("stats_exact"), False).to_numpy(), np.bool_)
        return np.asarray(exact & (numbers(found, "live_rows", -1) == self.row_counts))

    @cached_property
    def levels(self) -> Indices:
        """How often the rows of each were rewritten to be clustered, since they were last written otherwise."""
        return numbers(self._columns(ORIGIN), "level", 0)

    @cached_property
    def schema_ids(self) -> Indices:
        """The schema that each was written with."""
        return numbers(self._columns(ORIGIN), "schema_id")

    @cached_property
    def added_by(self) -> Indices:
        """The sequence of the commit that added each."""
        told = numbers(self._columns(ORIGIN), "added_by", -1)
        return np.where(told < 0, self.segments.added_by[self._listed[self._rows.files]], told)

    @cached_property
    def sizes(self) -> Indices:
        """Bytes of the blocks' files."""
        return numbers(self._columns(PLACES), "size")

    @cached_property
    def zone_offsets(self) -> Indices:
        """Length n + 1: block i has the zones ``zone_offsets[i]:zone_offsets[i + 1]``."""
        return offsets(self.zone_counts)

    @cached_property
    def zone_counts(self) -> Indices:
        return np.asarray(pc.list_value_length(flat(self._columns(PLACES), "zone_rows")).to_numpy(), np.int64)

    @cached_property
    def zone_rows(self) -> Indices:
        """The rows of each zone, block after block."""
        return np.asarray(flat(self._columns(PLACES), "zone_rows").flatten().to_numpy(), np.int64)

    @cached_property
    def ids(self) -> list[str]:
        return list(self._columns(PLACES).column("id").to_pylist())

    @cached_property
    def locations(self) -> list[str]:
        """The keys of the blocks' files in the table's store."""
        located = self._columns(PLACES).column("location").to_pylist()
        return [location or block_path(id) for id, location in zip(self.ids, located, strict=True)]

    def file(self, block: int) -> BlockFile:
        """Where block number ``block`` of this frame is."""
        places = self._columns(PLACES)
        start, length = (places.column(name)[block].as_py() for name in ("footer_offset", "footer_length"))
        location = places.column("location")[block].as_py() or block_path(places.column("id")[block].as_py())
        return BlockFile(location, start, length)

    def statistics(self, column_id: int) -> ColumnStatistics | None:
        field = self.segments.snapshot.schema.by_id(column_id)
        if not has_statistics(field):
            return None
        group = group_of(field)
        if (kept := self._recall(group)) is not None:
            return kept  # type: ignore[no-any-return]
        found = merged(self._read([group]), field, self._rows.counts)
        if (places := self._rows.indices) is not None:
            found = found.take(places)
        if lacking := schemas_without(field, self.segments.snapshot):
            absent = np.isin(numbers(self._columns(HOT), "schema_id"), list(lacking))
            found = filled(found, absent, field, self.row_counts)
        return self._keep(group, found, _statistics_size)

    def sidecars(self, key: str) -> SidecarRows | None:
        """What the definition with this key knows of each block; None if of none. Never raises for damaged files."""
        listed = (
            self.segments.table.take(pa.array(self._listed))
            if len(self._listed) < len(self.segments)
            else self.segments.table
        )
        found = sidecar_parts(listed, key)
        if all(part is None for part in found):
            return None
        rows = self._rows
        return SidecarRows(Rows(rows.store, tuple(found), rows.counts, rows.files, rows.positions))

    def zones(self) -> Zones:
        """The zones of these blocks, block after block."""
        starts = offsets(self._all_zone_counts())[self._block_places()]
        owners = np.repeat(np.arange(len(self)), self.zone_counts)
        within = np.arange(len(owners)) - self.zone_offsets[owners]
        listed = self.segments.table.take(pa.array(self._listed))
        counts = numbers(listed, "zone_count")
        files = self._rows.files[owners]
        positions = starts[owners] + within - offsets(counts)[files]
        rows = Rows(self._rows.store, tuple(zone_parts(listed)), counts, files, positions)
        return Zones(self, rows, owners)

    def _all_zone_counts(self) -> Indices:
        """Of all blocks of the files in which these blocks are."""
        return np.asarray(pc.list_value_length(flat(self._stacked(PLACES), "zone_rows")).to_numpy(), np.int64)

    def _block_places(self) -> Indices:
        places = self._rows.indices
        return np.arange(len(self)) if places is None else places

    def _columns(self, group: Group) -> pa.Table:
        """These columns, one row for each block."""
        if (kept := self._recall(group)) is not None:
            return kept
        rows, places = self._stacked(group), self._rows.indices
        return self._keep(
            group, rows.combine_chunks() if places is None else rows.take(pa.array(places)), lambda rows: rows.nbytes
        )

    def _stacked(self, group: Group) -> pa.Table:
        """These columns of all blocks of the files in which these blocks are."""
        return pa.concat_tables([_empty(group), *(tables[0] for tables in self._read([group]))])

    def _read(self, groups: Sequence[Group]) -> list[list[pa.Table]]:
        """The tables of these groups of each file. Raises StorageError: a segment that is damaged cannot be left
        out.
        """
        if len(self._rows.parts) <= FEW:
            groups = list(dict.fromkeys([*groups, HOT, PLACES]))
        tables = []
        for found in self._rows.read(groups):
            if isinstance(found, StorageError):
                raise found
            assert found is not None
            tables.append(found)
        return tables

    def _recall(self, name: Any) -> Any | None:
        """What is kept under this name here, or by the frame that this one was taken from."""
        found = shared.find(self._shared_name(name)) if self._whole else self._kept.get(name)
        if found is None and self._parent is not None:
            above, indices = self._parent
            if (wider := above._recall(name)) is not None:
                taken = wider.take(pa.array(indices)) if isinstance(wider, pa.Table) else wider.take(indices)
                return self._keep(name, taken, lambda _: 0)
        return found

    def _keep(self, name: Any, found: T, size: Callable[[T], int]) -> T:
        if self._whole:  # of a million blocks it is much: let the cache decide how long
            shared.put(self._shared_name(name), found, size(found))
        else:
            self._kept[name] = found
        return found

    def _shared_name(self, name: Any) -> tuple[Any, ...]:
        snapshot = self.segments.snapshot
        return ("blocks", self._rows.store.url, snapshot.id, name)


class Zones:
    """The zones of some blocks. What cannot be read of them is unknown; nothing is raised."""

    def __init__(self, blocks: Blocks, rows: Rows, owners: Indices) -> None:
        self.blocks, self._rows, self._owners = blocks, rows, owners

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def row_counts(self) -> Indices:
        return self.blocks.zone_rows

    def statistics(self, column_id: int) -> ColumnStatistics | None:
        snapshot = self.blocks.segments.snapshot
        field = snapshot.schema.by_id(column_id)
        if not has_statistics(field):
            return None
        group = group_of(field)
        tables = [found[0] if isinstance(found, list) else None for found in self._rows.read([group])]
        if all(table is None for table in tables) and tables:
            return None
        found = merged([[table] for table in tables], field, self._rows.counts)
        if (places := self._rows.indices) is not None:
            found = found.take(places)
        if lacking := schemas_without(field, snapshot):
            absent = np.isin(numbers(self.blocks._columns(HOT), "schema_id"), list(lacking))[self._owners]
            found = filled(found, absent, field, self.row_counts)
        return found


def _empty(group: Group) -> pa.Table:
    return pa.schema([BLOCK.field(name) for name in group]).empty_table()


def _statistics_size(found: ColumnStatistics) -> int:
    return sum(int(getattr(found, name).nbytes) for name in statistics.PARTS)
