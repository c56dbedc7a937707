"""Segments and zones as frames, and what all frames share: many units at once, a column at a time.

What a planner votes on. A frame never changes, and knows what it is asked of, by column ids, in the present types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import statistics
from fuse_storage.lazy import cached_property
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.metadata_table import (
    ColumnGroup,
    IndexArray,
    MetadataFile,
    MetadataRows,
    column_as_array,
    column_as_int64,
    counts_to_offsets,
    has_column,
)
from fuse_storage.metadata.segment import tail_path
from fuse_storage.metadata.segment_list import assemble_segment_list, segment_files, segment_row, sidecar_columns
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.schema.schema import Field
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.cache import keep_if_whole
from fuse_storage.store.store import Store


class UnitFrame(Protocol):
    """Things that have rows and statistics: segments, blocks or zones."""

    def __len__(self) -> int: ...

    @property
    def row_counts(self) -> IndexArray:
        """The rows of each unit: int64, shape (n,)."""
        ...

    def statistics(self, column_id: int) -> ColumnStatistics | None:
        """One unit each, in the column's present type; None if nothing is kept of such a column. Raises SchemaError."""
        ...


class ScanUnits(Protocol):
    """Blocks whose rows are to be read: where they are, and how they are cut into zones."""

    def __len__(self) -> int: ...

    @property
    def zone_offsets(self) -> IndexArray:
        """int64, shape (n + 1,): block i has the zones ``zone_offsets[i]:zone_offsets[i + 1]``."""
        ...

    @property
    def zone_rows(self) -> IndexArray:
        """int64, shape (number of zones,): the rows of each."""
        ...

    @property
    def in_tail(self) -> npt.NDArray[np.bool_]:
        """Which of them are of hot commits, and not yet in segments: bool, shape (n,)."""
        ...

    def file(self, block: int) -> BlockFile:
        """Where block number ``block`` is."""
        ...


class SegmentFrame:
    """All segments of a snapshot, in order; last, as if it were one, its tail.

    ``table``: the list of segments. ``tail``: rows of the hot blocks, as of a segment's, if there are any.
    """

    def __init__(self, store: Store, snapshot: Snapshot, table: pa.Table, tail: pa.Table | None = None) -> None:
        self.store, self.snapshot, self.table, self._tail = store, snapshot, table, tail
        if tail is not None:
            row = segment_row(
                snapshot.id, FileRef(tail_path(snapshot.id), 0, ""), None, tail, snapshot.schema, snapshot.version
            )
            self.table = assemble_segment_list([table, row], snapshot.schema, snapshot.keys)

    @property
    def hidden_rows(self) -> Mapping[int, npt.NDArray[np.bool_]]:
        """Which rows count of blocks whose other ones a primary key hides: by number, bool, shape (rows,)."""
        return {}

    @property
    def base_block_count(self) -> int:
        """The blocks that are in segments: the first ones, before those of the tail."""
        return self.total_blocks - (0 if self._tail is None else len(self._tail))

    def block_files(self) -> list[MetadataFile]:
        """The files that hold the rows of the blocks, segment by segment."""
        if self._tail is None:
            return segment_files(self.table)
        name = FileRef(f"{tail_path(self.snapshot.id)}#{self.snapshot.block_count}", 0, "")
        known = MetadataFile(name, len(self._tail), rows=self._tail)
        return [*segment_files(self.table.slice(0, len(self) - 1)), known]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ids(self) -> list[str]:
        return list(self.table.column("id").to_pylist())

    @cached_property
    def row_counts(self) -> IndexArray:
        """The rows of each segment: int64, shape (n,)."""
        return column_as_int64(self.table, "row_count")

    @cached_property
    def block_counts(self) -> IndexArray:
        """The number of blocks of each segment: int64, shape (n,)."""
        return column_as_int64(self.table, "block_count")

    @cached_property
    def zone_counts(self) -> IndexArray:
        """The number of zones of each segment: int64, shape (n,)."""
        return column_as_int64(self.table, "zone_count")

    @cached_property
    def sizes(self) -> IndexArray:
        """Bytes of the blocks' files of each segment: int64, shape (n,)."""
        return column_as_int64(self.table, "size")

    @cached_property
    def added_by(self) -> IndexArray:
        """The sequence of the commit that added the latest of its blocks: int64, shape (n,)."""
        return column_as_int64(self.table, "added_by")

    @cached_property
    def block_offsets(self) -> IndexArray:
        """Where the blocks of each begin among those of the snapshot: int64, shape (n + 1,).

        Segment i has the blocks ``block_offsets[i]:block_offsets[i + 1]``.
        """
        return counts_to_offsets(self.block_counts)

    def segments_containing(self, blocks: Sequence[int] | IndexArray) -> frozenset[str]:
        """Find the ids of the segments that hold these blocks. ``blocks``: int64, shape (k,), their numbers."""
        return frozenset(
            self.ids[number] for number in np.unique(np.searchsorted(self.block_offsets, blocks, side="right") - 1)
        )

    @property
    def total_rows(self) -> int:
        return int(self.row_counts.sum())

    @property
    def total_blocks(self) -> int:
        return int(self.block_offsets[-1])

    def statistics(self, column_id: int) -> ColumnStatistics | None:
        field = self.snapshot.schema.by_id(column_id)
        if not field.is_leaf:
            return None
        column_stats = statistics.decode_statistics(self.table, field.id, field.type)
        column_stats = column_stats or ColumnStatistics.unknown(field.type, len(self))
        if not (lacking := schema_ids_without(field, self.snapshot)):
            return column_stats
        absent = [bool(ids) and lacking.issuperset(ids) for ids in self.table.column("schema_ids").to_pylist()]
        return fill_default_statistics(column_stats, np.array(absent, bool), field, self.row_counts)

    def roll_ups(self, key: str) -> pa.Array | None:
        """What the definition with this key knows of whole segments: one value each, null where nothing.

        None if no segment has one. Use a value only where ``roll_up_versions`` >= 0: elsewhere some blocks of the
        segment are not in it.
        """
        name = sidecar_columns(key)[5]
        return column_as_array(self.table, name) if has_column(self.table, name) else None

    def roll_up_versions(self, key: str) -> IndexArray:
        """In which payload version all blocks of each segment are indexed that is rolled up: int64, shape (n,).

        -1 where that is not known, or not all blocks are indexed: then the roll-up says nothing of the segment.
        """
        name = sidecar_columns(key)[6]
        if not has_column(self.table, name):
            return np.full(len(self), -1, np.int64)
        complete = self.indexed_block_counts(key) == self.block_counts
        return np.where(complete, column_as_int64(self.table, name, -1), -1)

    def indexed_block_counts(self, key: str) -> IndexArray:
        """How many blocks of each segment are indexed: int64, shape (n,)."""
        return self._sidecar_column(key, 3)

    def sidecar_bytes(self, key: str) -> IndexArray:
        """Bytes that the index takes for each segment, payloads included: int64, shape (n,)."""
        return self._sidecar_column(key, 4)

    def _sidecar_column(self, key: str, part: int) -> IndexArray:
        name = sidecar_columns(key)[part]
        return column_as_int64(self.table, name) if has_column(self.table, name) else np.zeros(len(self), np.int64)


class ZoneFrame:
    """The zones of some blocks, block after block. What cannot be read of them is unknown; nothing is raised.

    ``row_counts``: int64, shape (zones,). ``schema_ids``: gives the schema that each zone's block was written with,
    int64, shape (zones,); called only where some blocks lack a column.
    """

    def __init__(
        self, snapshot: Snapshot, rows: MetadataRows, row_counts: IndexArray, schema_ids: Callable[[], IndexArray]
    ) -> None:
        self.row_counts, self._snapshot, self._rows, self._schema_ids = row_counts, snapshot, rows, schema_ids
        self.is_whole, self.kept = False, dict[Any, Any]()

    def __len__(self) -> int:
        return len(self._rows)

    @keep_if_whole
    def statistics(self, column_id: int) -> ColumnStatistics | None:
        field = self._snapshot.schema.by_id(column_id)
        if not field.is_leaf:
            return None
        results = self._rows.read([statistics_group(field)])
        tables = [result[0] if isinstance(result, list) else None for result in results]
        self.is_whole = self.is_whole and not any(table is None for table in tables)  # what failed is tried again
        if all(table is None for table in tables) and tables:
            return None
        column_stats = concat_statistics([[table] for table in tables], field, self._rows.file_row_counts)
        if (positions := self._rows.stacked_indices) is not None:
            column_stats = column_stats.take(positions)
        if lacking := schema_ids_without(field, self._snapshot):
            absent = np.isin(self._schema_ids(), list(lacking))
            column_stats = fill_default_statistics(column_stats, absent, field, self.row_counts)
        return column_stats


def statistics_group(field: Field) -> ColumnGroup:
    """The names of this column's statistics in any file."""
    return tuple(statistics.statistics_column_names(field.id, field.type))


def concat_statistics(
    tables: Sequence[Sequence[pa.Table | None]], field: Field, counts: IndexArray
) -> ColumnStatistics:
    """Join the statistics of a column in these tables, in the present type; unknown where there are none.

    ``tables``: for each file, a list whose first table has the statistics, or None. ``counts``: int64, shape (files,),
    the units of each.
    """
    file_tables = [table for table, *_ in tables]
    if not file_tables:
        return ColumnStatistics.unknown(field.type, 0)
    same_schema = file_tables[0] is not None and all(
        table is not None and table.schema.equals(file_tables[0].schema) for table in file_tables
    )
    if (
        same_schema
        and (
            column_stats := statistics.decode_statistics(
                pa.concat_tables(file_tables).combine_chunks(), field.id, field.type
            )
        )
        is not None
    ):
        return column_stats
    decoded = [
        None if table is None else statistics.decode_statistics(table, field.id, field.type) for table in file_tables
    ]
    units = zip(decoded, counts, strict=True)
    return ColumnStatistics.concat([each or ColumnStatistics.unknown(field.type, int(count)) for each, count in units])


def schema_ids_without(field: Field, snapshot: Snapshot) -> frozenset[int]:
    """The schemas in which there was no such column: blocks written with them hold its default throughout."""
    return frozenset(
        number for number, schema in snapshot.schemas.items() if all(leaf.id != field.id for _, leaf in schema.leaves())
    )


def fill_default_statistics(
    column_stats: ColumnStatistics, absent: npt.NDArray[np.bool_], field: Field, row_counts: IndexArray
) -> ColumnStatistics:
    """Replace statistics by those of the column's default where the column is absent.

    ``absent``: bool, shape (n,). ``row_counts``: int64, shape (n,), the rows of each unit.
    """
    if not absent.any():
        return column_stats
    default, mask = ColumnStatistics.constant(field.initial_scalar, row_counts), pa.array(absent)
    parts = (
        pc.if_else(mask, getattr(default, name), getattr(column_stats, name)) for name in statistics.STATISTICS_PARTS
    )
    return ColumnStatistics(*parts)
