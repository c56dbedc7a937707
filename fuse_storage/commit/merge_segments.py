"""Small adjacent segments become one, as in a log-structured merge tree, so that appends stay cheap for ever.

A class of size spans a factor of eight. When eight segments of one class, or smaller ones between them, stand side by
side, they merge: so each block's row is copied at most once per class. No block is touched, order is kept, and what
indexes know is joined along. Merging is housekeeping: where it cannot be done, segments stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.commit.sidecar_writer import SidecarBuilder, stage_sidecars
from fuse_storage.errors import FormatError, NotFound, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, create_file, new_id
from fuse_storage.metadata.metadata_table import IndexArray, MetadataFile
from fuse_storage.metadata.segment import BLOCK_SCHEMA, MAX_BLOCKS_PER_SEGMENT, segment_path, zones_path
from fuse_storage.metadata.segment_list import (
    segment_files,
    segment_row,
    sidecar_files,
    statistics_columns,
    with_columns,
    zone_files,
)
from fuse_storage.metadata.sidecar import unindexed_rows
from fuse_storage.schema.schema import Schema
from fuse_storage.store.store import Store

_MERGE_FACTOR = 8
_SIZE_CLASS_COUNT = 3
"""Classes that merge: below 8 blocks, below 64, and up to half of what a segment holds. Larger ones are full."""

SegmentSpan = tuple[int, int]


def plan_segment_merges(block_counts: Sequence[int]) -> list[SegmentSpan]:
    """Which segments to merge: spans [start, end) of at least two, in order, of at most 1,000 blocks each."""
    spans = [(number, number + 1) for number in range(len(block_counts))]
    counts = [int(count) for count in block_counts]
    for size in range(_SIZE_CLASS_COUNT):
        groups = [group for run in _size_class_runs(counts, size) for group in _merge_groups(counts, run, size)]
        spans = [(spans[start][0], spans[end - 1][1]) for start, end in groups]
        counts = [sum(counts[start:end]) for start, end in groups]
    return [span for span in spans if span[1] - span[0] > 1]


def plan_segment_compaction(block_counts: Sequence[int]) -> list[SegmentSpan]:
    """Every span of at least two neighbours that fit into one segment, whatever their classes."""
    spans: list[SegmentSpan] = []
    start = total = 0
    for number, count in enumerate([*block_counts, MAX_BLOCKS_PER_SEGMENT + 1]):
        if total + count > MAX_BLOCKS_PER_SEGMENT:
            spans.append((start, number))
            start, total = number, 0
        total += count
    return [span for span in spans if span[1] - span[0] > 1]


def _size_class_runs(counts: Sequence[int], size: int) -> list[SegmentSpan]:
    """Maximal runs of segments that are of this class or below; each larger segment is a run of its own."""
    runs: list[SegmentSpan] = []
    joins = False
    for number, count in enumerate(counts):
        small = _size_class(count) <= size
        if joins and small:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
        joins = small
    return runs


def _merge_groups(counts: Sequence[int], run: SegmentSpan, size: int) -> list[SegmentSpan]:
    """A run cut into what merges, eight of the class or as many as fit into one segment, and what stays single.

    So what is merged is of a higher class than its parts, or full: no row of a block is copied twice within a class.
    """
    groups: list[SegmentSpan] = []
    start = at = run[0]
    seen = total = 0
    while at < run[1]:
        if total + counts[at] > MAX_BLOCKS_PER_SEGMENT:
            groups.append((start, at))
            start, seen, total = at, 0, 0
        seen += _size_class(counts[at]) == size
        total += counts[at]
        at += 1
        if seen == _MERGE_FACTOR:
            groups.append((start, at))
            start, seen, total = at, 0, 0
    if size == _SIZE_CLASS_COUNT - 1 and run[1] < len(counts):  # a full one follows, so nothing is ever added here
        return [*groups, (start, run[1])] if start < run[1] else groups
    return groups + [(number, number + 1) for number in range(start, run[1])]


def _size_class(count: int) -> int:
    if count > MAX_BLOCKS_PER_SEGMENT // 2:
        return _SIZE_CLASS_COUNT
    return next(
        (number for number in range(_SIZE_CLASS_COUNT - 1) if count < _MERGE_FACTOR ** (number + 1)),
        _SIZE_CLASS_COUNT - 1,
    )


def _zones_of_blocks(counts: IndexArray, chosen: IndexArray) -> IndexArray:
    """The numbers of the zones of these blocks, where block i of all has ``counts[i]`` zones."""
    starts = metadata_table.counts_to_offsets(counts)
    return metadata_table.ranges_to_indices(starts[chosen], counts[chosen])


@dataclass(frozen=True, slots=True)
class SegmentMerger:
    """Merges rows of a list. ``builders``: by key, to roll up what indexes know of the larger segment."""

    store: Store
    schema: Schema
    keys: Sequence[str]
    builders: Mapping[str, SidecarBuilder]

    def merge(self, rows: pa.Table) -> pa.Table | None:
        """One row of a list in place of these, with its files written; None where something cannot be read."""
        try:
            return self._merge(rows)
        except StorageError:
            return None

    def _merge(self, rows: pa.Table) -> pa.Table:
        return self.rearrange_blocks(rows, np.arange(int(metadata_table.column_as_int64(rows, "block_count").sum())))

    def rearrange_blocks(self, rows: pa.Table, chosen: IndexArray) -> pa.Table:
        """One row of a list, for a segment of these blocks of these segments, in this order. Raises StorageError.

        ``chosen``: numbers of blocks, counted through all the segments; at least one.
        """
        id = new_id()
        every = pa.concat_tables(
            [self._blocks(part, rows.slice(number, 1)) for number, part in enumerate(segment_files(rows))]
        )
        blocks = every.take(pa.array(chosen)).combine_chunks()
        segment = create_file(self.store, segment_path(id), metadata_table.encode_metadata(blocks))
        added_by = pc.max(blocks.column("added_by")).as_py()
        zone_counts = np.asarray(
            pc.list_value_length(metadata_table.column_as_array(every, "zone_rows")).to_numpy(), np.int64
        )
        merged = segment_row(
            id, segment, self._zones(id, rows, _zones_of_blocks(zone_counts, chosen)), blocks, self.schema, added_by
        )
        for key in self.keys:
            joined = self.concat_sidecars(rows, key)
            kept = None if joined is None else joined.take(pa.array(chosen)).combine_chunks()
            if kept is not None and pc.any(kept.column("indexed")).as_py():
                merged = with_columns(merged, stage_sidecars(self.store, id, key, kept, self.builders.get(key)).row)
        return merged

    def _blocks(self, part: MetadataFile, row: pa.Table) -> pa.Table:
        """The rows of a segment's blocks, with all that they inherit from the segment written out."""
        table = metadata_table.read_all_columns(self.store, part)
        counts = metadata_table.column_as_int64(table, "row_count")
        first = pc.add(row.column("first_row_id")[0], pa.array(np.cumsum(counts) - counts))
        told = {"first_row_id": first, "added_by": row.column("added_by")[0]}
        columns = {
            name: pc.coalesce(table.column(name), told[name]) if name in told else table.column(name)
            for name in BLOCK_SCHEMA.names
        }
        return pa.table(columns | statistics_columns(self.schema, table))

    def _zones(self, id: str, rows: pa.Table, chosen: IndexArray) -> FileRef | None:
        found = []
        for part in zone_files(rows):
            table = None if part is None else self._read_or_none(part)
            if table is None:
                return None  # zones only help to skip
            found.append(pa.table({"row_count": table.column("row_count")} | statistics_columns(self.schema, table)))
        return create_file(
            self.store,
            zones_path(id),
            metadata_table.encode_metadata(pa.concat_tables(found).take(pa.array(chosen)).combine_chunks()),
        )

    def concat_sidecars(self, rows: pa.Table, key: str) -> pa.Table | None:
        """The ``_x`` rows of all these segments, one after the other; None if no block is indexed."""
        tables = [None if part is None else self._read_or_none(part) for part in sidecar_files(rows, key)]
        first = next((table for table in tables if table is not None), None)
        if first is None:
            return None
        kind = first.schema.field("summary").type
        found = []
        for table, count in zip(tables, rows.column("block_count").to_pylist(), strict=True):
            if table is None or table.schema.field("summary").type != kind:
                table = unindexed_rows(count, kind)
            found.append(table.select(first.column_names))
        return pa.concat_tables(found)

    def _read_or_none(self, part: MetadataFile) -> pa.Table | None:
        """A file that can be done without: what is lost with it is built anew."""
        try:
            return metadata_table.read_all_columns(self.store, part)
        except (NotFound, FormatError):
            return None
