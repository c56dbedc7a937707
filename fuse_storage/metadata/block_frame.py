"""Blocks and zones as frames: columns are read when they are asked for, and only of files in which blocks are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import StorageError
from fuse_storage.lazy import cached_property
from fuse_storage.metadata.metadata_table import (
    ColumnGroup,
    IndexArray,
    MetadataRows,
    column_as_array,
    column_as_int64,
    counts_to_offsets,
    list_lengths,
)
from fuse_storage.metadata.segment import (
    LOCATION_COLUMNS,
    PLANNING_COLUMNS,
    ForeignColumns,
    block_file,
    block_path,
    empty_block_rows,
    foreign_columns,
    has_deleted_rows,
)
from fuse_storage.metadata.segment_frame import (
    SegmentFrame,
    ZoneFrame,
    concat_statistics,
    fill_default_statistics,
    schema_ids_without,
    statistics_group,
)
from fuse_storage.metadata.segment_list import sidecar_files, take_without_statistics, zone_parts
from fuse_storage.metadata.sidecar import SidecarRows
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.cache import cache_of, keep_if_whole

_T = TypeVar("_T")
_LIVE_ROW_COLUMNS: ColumnGroup = ("live_rows", "stats_exact")  # few queries need them
_ORIGIN_COLUMNS: ColumnGroup = ("level", "added_by")  # they tell how blocks came to be
_MAX_FILES_READ_EAGERLY = 16  # all of them that is not statistics at once: going back to a store is dearer


class BlockFrame:
    """Some blocks of a snapshot. ``ordinals``: their numbers among all of them."""

    def __init__(
        self,
        segments: SegmentFrame,
        rows: MetadataRows,
        ordinals: IndexArray,
        segment_indices: IndexArray,
        parent: tuple[BlockFrame, IndexArray] | None = None,
        is_whole: bool = False,
    ) -> None:
        self.segments, self.ordinals = segments, ordinals
        self._rows, self._segment_indices = rows, segment_indices
        self._parent, self.is_whole = parent, is_whole
        self.kept: dict[Any, Any] = {}
        self._cache: dict[Any, Any] = {}

    @staticmethod
    def from_segments(segments: SegmentFrame) -> BlockFrame:
        """All blocks of all segments."""
        rows = MetadataRows.all_rows(segments.store, segments.block_files(), segments.block_counts)
        return BlockFrame(segments, rows, np.arange(segments.total_blocks), np.arange(len(segments)), is_whole=True)

    def __len__(self) -> int:
        return len(self.ordinals)

    def take(self, indices: IndexArray) -> BlockFrame:
        """Choose the blocks at these positions, in this order. ``indices``: int64, shape (k,), into this frame."""
        indices = np.asarray(indices, np.int64)
        used = np.unique(self._rows.file_indices[indices])
        rows, segment_indices = self._rows.take(indices), self._segment_indices[used]
        return BlockFrame(self.segments, rows, self.ordinals[indices], segment_indices, (self, indices))

    def prefetch(self, column_ids: Iterable[int]) -> BlockFrame:
        """Read the statistics of these columns, and what every plan needs, in one pass over the files."""
        fields = [self.segments.snapshot.schema.by_id(column_id) for column_id in column_ids]
        groups = [statistics_group(field) for field in fields if field.is_leaf]
        if any(self.find_cached(group) is None for group in groups):
            self._read([PLANNING_COLUMNS, *groups])
        return self

    @cached_property
    def row_counts(self) -> IndexArray:
        """The rows of each block: int64, shape (n,)."""
        return column_as_int64(self._columns(PLANNING_COLUMNS), "row_count")

    @cached_property
    def has_deleted_rows(self) -> bool:
        """Whether any block of the snapshot has rows that do not count."""
        return has_deleted_rows(self.segments.table) or bool(self.segments.hidden_rows)

    @cached_property
    def live_row_counts(self) -> IndexArray:
        """The rows of each that count: int64, shape (n,)."""
        live_rows = self._columns(_LIVE_ROW_COLUMNS) if self.has_deleted_rows else None
        counts = self.row_counts if live_rows is None else column_as_int64(live_rows, "live_rows").copy()
        for number, live in self.segments.hidden_rows.items():
            counts[self.ordinals == number] = np.count_nonzero(live)
        return counts

    @cached_property
    def has_all_rows(self) -> npt.NDArray[np.bool_]:
        """Blocks of which every row is live: bool, shape (n,)."""
        return np.asarray(self.live_row_counts == self.row_counts)

    @cached_property
    def deletion_vectors(self) -> list[str | None]:
        """Where the vector of each is that says which rows do not count; None: there is none."""
        return self.texts("deletion_vector")

    def texts(self, name: str) -> list[str | None]:
        """A column of a block's row that few ask for, one text for each block."""
        return list(self._columns((name,)).column(name).to_pylist())

    @cached_property
    def has_exact_statistics(self) -> npt.NDArray[np.bool_]:
        """The blocks of which each bound that is not cut is a value that they hold: bool, shape (n,)."""
        exact = pc.fill_null(self._columns(_LIVE_ROW_COLUMNS).column("stats_exact"), False).to_numpy()
        return np.asarray(np.asarray(exact, np.bool_) & self.has_all_rows)

    @cached_property
    def levels(self) -> IndexArray:
        """How often the rows of each were rewritten to be clustered, since they were written: int64, shape (n,)."""
        return column_as_int64(self._columns(_ORIGIN_COLUMNS), "level", 0)

    @cached_property
    def schema_ids(self) -> IndexArray:
        """The schema that each was written with: int64, shape (n,)."""
        return column_as_int64(self._columns(PLANNING_COLUMNS), "schema_id")

    @cached_property
    def added_by(self) -> IndexArray:
        """The sequence of the commit that added each: int64, shape (n,)."""
        own = column_as_int64(self._columns(_ORIGIN_COLUMNS), "added_by", -1)
        return np.where(own < 0, self.segments.added_by[self._segment_indices[self._rows.file_indices]], own)

    @cached_property
    def sizes(self) -> IndexArray:
        """Bytes of the blocks' files: int64, shape (n,)."""
        return column_as_int64(self._columns(LOCATION_COLUMNS), "size")

    @cached_property
    def seals(self) -> IndexArray:
        """The checksum in the seal of each, by which it is known: int64, shape (n,); 0 where it is not known."""
        return column_as_int64(self._columns(LOCATION_COLUMNS), "seal", 0)

    @cached_property
    def in_tail(self) -> npt.NDArray[np.bool_]:
        """Which of them are of hot commits, and not yet in segments: bool, shape (n,)."""
        return np.asarray(self.ordinals >= self.segments.base_block_count)

    @cached_property
    def zone_offsets(self) -> IndexArray:
        """Where the zones of each begin: int64, shape (n + 1,); block i has ``zone_offsets[i]:zone_offsets[i + 1]``."""
        return counts_to_offsets(self.zone_counts)

    @cached_property
    def zone_counts(self) -> IndexArray:
        """The number of zones of each: int64, shape (n,)."""
        return list_lengths(self._columns(LOCATION_COLUMNS), "zone_rows")

    @cached_property
    def zone_rows(self) -> IndexArray:
        """The rows of each zone, block after block: int64, shape (number of zones,)."""
        return np.asarray(column_as_array(self._columns(LOCATION_COLUMNS), "zone_rows").flatten().to_numpy(), np.int64)

    @cached_property
    def zone_sizes(self) -> IndexArray:
        """The bytes of each zone, block after block: int64, shape (number of zones,); -1 where they are not known."""
        columns, zones = self._columns(("zone_sizes",)), np.full(len(self.zone_rows), -1, np.int64)
        known = list_lengths(columns, "zone_sizes") == self.zone_counts
        sizes = column_as_array(columns, "zone_sizes").filter(pa.array(known))
        zones[np.repeat(known, self.zone_counts)] = pc.list_flatten(sizes).to_numpy()
        return zones

    @cached_property
    def ids(self) -> list[str]:
        return list(self._columns(LOCATION_COLUMNS).column("id").to_pylist())

    @cached_property
    def locations(self) -> list[str]:
        """The keys of the blocks' files in the table's store."""
        located = self._columns(LOCATION_COLUMNS).column("location").to_pylist()
        return [location or block_path(block_id) for block_id, location in zip(self.ids, located, strict=True)]

    def file(self, block: int) -> BlockFile:
        """Where block number ``block`` of this frame is."""
        return block_file(self._columns(LOCATION_COLUMNS), block)

    @cached_property
    def partitions(self) -> list[str | None]:
        """The text of the partition that each is of, in a partitioned table; None of hot ones."""
        return list(self._columns(LOCATION_COLUMNS).column("partition").to_pylist())

    @cached_property
    def foreign(self) -> ForeignColumns:
        """What is known of blocks that are files somebody else wrote."""
        return foreign_columns(self._columns(LOCATION_COLUMNS))

    def statistics(self, column_id: int) -> ColumnStatistics | None:
        field = self.segments.snapshot.schema.by_id(column_id)
        if not field.is_leaf:
            return None
        group = statistics_group(field)
        if (cached := self.find_cached(group)) is not None:
            return cached  # type: ignore[no-any-return]
        column_stats = concat_statistics(self._read([group]), field, self._rows.file_row_counts)
        if (stacked_indices := self._rows.stacked_indices) is not None:
            column_stats = column_stats.take(stacked_indices)
        if lacking := schema_ids_without(field, self.segments.snapshot):
            absent = np.isin(self.schema_ids, list(lacking))
            column_stats = fill_default_statistics(column_stats, absent, field, self.row_counts)
        return self._cache_value(group, column_stats, lambda found: found.nbytes)

    @keep_if_whole
    def sidecars(self, key: str) -> SidecarRows | None:
        """What the definition with this key knows of each block; None if of none. Never raises for damaged files."""
        segment_rows = self.segments.table
        if len(self._segment_indices) < len(segment_rows):
            segment_rows = take_without_statistics(segment_rows, self._segment_indices)
        files = sidecar_files(segment_rows, key)
        if all(part is None for part in files):
            return None
        rows = self._rows
        known = MetadataRows(rows.store, tuple(files), rows.file_row_counts, rows.file_indices, rows.positions)
        return SidecarRows(known, self.segments.snapshot.shares_files)

    @keep_if_whole
    def zones(self) -> ZoneFrame:
        """The zones of these blocks, block after block."""
        all_counts = list_lengths(self._read_all_rows(LOCATION_COLUMNS), "zone_rows")
        starts, stacked_indices = counts_to_offsets(all_counts), self._rows.stacked_indices
        starts = starts if stacked_indices is None else starts[stacked_indices]
        owners = np.repeat(np.arange(len(self)), self.zone_counts)
        within = np.arange(len(owners)) - self.zone_offsets[owners]
        counts = np.add.reduceat(all_counts, counts_to_offsets(self._rows.file_row_counts)[:-1])
        files = self._rows.file_indices[owners]
        positions = starts[owners] + within - counts_to_offsets(counts)[files]
        segment_rows = take_without_statistics(self.segments.table, self._segment_indices)
        parts = zone_parts(segment_rows, self._rows.metadata_files, counts.tolist())
        rows = MetadataRows(self._rows.store, tuple(parts), counts, files, positions)
        zone_frame = ZoneFrame(self.segments.snapshot, rows, self.zone_rows, lambda: self.schema_ids[owners])
        zone_frame.is_whole = self.is_whole
        return zone_frame

    def _columns(self, group: ColumnGroup) -> pa.Table:
        """Read columns, one row for each block."""
        if (cached := self.find_cached(group)) is not None:
            return cached
        rows, stacked_indices = self._read_all_rows(group), self._rows.stacked_indices
        found = rows.combine_chunks() if stacked_indices is None else rows.take(pa.array(stacked_indices))
        return self._cache_value(group, found, lambda found: found.nbytes)

    def _read_all_rows(self, group: ColumnGroup) -> pa.Table:
        """Read columns of all blocks of the files in which these blocks are."""
        tables = [empty_block_rows(group), *(tables[0] for tables in self._read([group]))]
        return pa.concat_tables(tables, promote_options="default")  # a column that a file lacks is null

    def _read(self, groups: Sequence[ColumnGroup]) -> list[list[pa.Table]]:
        """The tables of these groups of each file. Raises StorageError: no damaged segment can be left out."""
        if len(self._rows.metadata_files) <= _MAX_FILES_READ_EAGERLY:
            groups = list(dict.fromkeys([*groups, PLANNING_COLUMNS, LOCATION_COLUMNS]))
        tables = self._rows.read(groups)
        if problem := next((found for found in tables if isinstance(found, StorageError)), None):
            raise problem
        return [found for found in tables if isinstance(found, list)]

    def find_cached(self, name: Any) -> Any | None:
        """The value that is cached under this name here, or by the frame that this one was taken from."""
        cached = cache_of(self._rows.store).find(self._cache_key(name)) if self.is_whole else self._cache.get(name)
        if cached is None and self._parent is not None:
            parent, indices = self._parent
            if (parent_value := parent.find_cached(name)) is not None:
                taken = parent_value.take(pa.array(indices) if isinstance(parent_value, pa.Table) else indices)
                return self._cache_value(name, taken, lambda _: 0)
        return cached

    def _cache_value(self, name: Any, value: _T, size: Callable[[_T], int]) -> _T:
        if self.is_whole:  # of a million blocks it is much: let the cache decide how long
            cache_of(self._rows.store).put(self._cache_key(name), value, size(value))
        else:
            self._cache[name] = value
        return value

    def _cache_key(self, name: Any) -> tuple[Any, ...]:
        return ("blocks", self._rows.store.url, self.segments.snapshot.id, self.segments.snapshot.block_count, name)
