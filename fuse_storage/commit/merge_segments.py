"""Small adjacent segments become one, as in a log-structured merge tree, so that appends stay cheap for ever.

Segments are of size classes by their numbers of blocks, each a factor of eight wide: 1 to 7, 8 to 63, 64 to 500, and
full above that, or above half of the property ``segment_blocks`` where that is less. When eight segments of one class,
or smaller ones between them, stand side by side, they merge into one of the next class; so the row of a block is copied
at most once per class, three times in its life. No block is touched, order is kept, and what indexes know is joined
along. Merging is housekeeping: where it cannot be done, segments stay as they are.
"""

from __future__ import annotations

from bisect import bisect_right
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
from fuse_storage.metadata.segment import MAX_BLOCKS_PER_SEGMENT, block_columns, segment_path, zones_path
from fuse_storage.metadata.segment_list import (
    segment_files,
    segment_row,
    sidecar_files,
    statistics_columns,
    with_columns,
    zone_parts,
)
from fuse_storage.metadata.sidecar import unindexed_rows
from fuse_storage.schema.schema import Schema
from fuse_storage.statistics import sparse_statistics
from fuse_storage.store.store import Store

_MERGE_FACTOR = 8
"""Segments of one class that merge, and how much larger the next class is."""
_MERGING_CLASSES = 3
"""Classes that merge: below 8 blocks, below 64, and up to half of what a segment holds. Larger ones are full."""

_CLASS_STARTS = [_MERGE_FACTOR**size_class for size_class in range(1, _MERGING_CLASSES)]

SegmentSpan = tuple[int, int]
"""Neighbours in the list of segments, from the first to before the second number."""


def plan_segment_merges(block_counts: Sequence[int], limit: int = MAX_BLOCKS_PER_SEGMENT) -> list[SegmentSpan]:
    """Choose the segments to merge after an append: spans of at least two, in order, of at most ``limit`` blocks each.

    ``block_counts``: the number of blocks of each segment, in the order of the list.

    Seven segments of one block stay as they are; the eighth makes one of eight blocks of them. At the eighth of these,
    all merge into one of 64 at once, the small ones behind them included:

    >>> plan_segment_merges([1, 1, 1, 1, 1, 1, 1])
    []
    >>> plan_segment_merges([1, 1, 1, 1, 1, 1, 1, 1])
    [(0, 8)]
    >>> plan_segment_merges([8, 8, 1, 1, 1, 1, 1, 1, 1, 1])
    [(2, 10)]
    >>> plan_segment_merges([8, 8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1])
    [(0, 15)]

    Larger segments part smaller ones, so that order is kept. Before a full one nothing is ever added any more, so there
    all that is left merges at once:

    >>> plan_segment_merges([1, 1, 1, 1, 8, 1, 1, 1, 1])
    []
    >>> plan_segment_merges([64, 8, 1, 600, 1, 1])
    [(0, 3)]
    """
    spans = [(position, position + 1) for position in range(len(block_counts))]
    counts = [int(count) for count in block_counts]
    for size_class in range(_MERGING_CLASSES):  # what merges in one class may complete eight of the next
        groups = [
            group
            for run in _runs_up_to_class(counts, size_class, limit)
            for group in _cut_run(counts, run, size_class, limit)
        ]
        spans = [(spans[start][0], spans[end - 1][1]) for start, end in groups]
        counts = [sum(counts[start:end]) for start, end in groups]
    return [span for span in spans if span[1] - span[0] > 1]


def plan_segment_compaction(block_counts: Sequence[int], limit: int = MAX_BLOCKS_PER_SEGMENT) -> list[SegmentSpan]:
    """Choose every span of at least two neighbours that fit into one segment of ``limit`` blocks, of any class.

    >>> plan_segment_compaction([1, 2, 600, 500])
    [(0, 3)]
    >>> plan_segment_compaction([1, 2, 3, 4, 5], limit=5)
    [(0, 2)]
    """
    spans: list[SegmentSpan] = []
    start = total = 0
    for position, count in enumerate([*block_counts, limit + 1]):
        if total + count > limit:
            spans.append((start, position))
            start, total = position, 0
        total += count
    return [span for span in spans if span[1] - span[0] > 1]


def _runs_up_to_class(counts: Sequence[int], size_class: int, limit: int) -> list[SegmentSpan]:
    """Find maximal runs of segments of this class or below; each larger segment is a run of its own."""
    runs: list[SegmentSpan] = []
    extends = False
    largest = min(limit // 2, _CLASS_STARTS[size_class] - 1 if size_class < len(_CLASS_STARTS) else limit)
    for position, count in enumerate(counts):
        small = count <= largest
        if extends and small:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
        extends = small
    return runs


def _cut_run(counts: Sequence[int], run: SegmentSpan, size_class: int, limit: int) -> list[SegmentSpan]:
    """Cut a run into what merges, eight of the class or as many as fit into one segment, and what stays single.

    So what is merged is of a higher class than its parts, or full: no row of a block is copied twice within a class.
    """
    if run[1] - run[0] == 1:  # most runs of a long list: full segments
        return [run]
    groups: list[SegmentSpan] = []
    start = position = run[0]
    of_class = total = 0
    while position < run[1]:
        if total + counts[position] > limit and position > start:
            groups.append((start, position))
            start, of_class, total = position, 0, 0
        of_class += _size_class(counts[position], limit) == size_class  # smaller ones come along, and do not count
        total += counts[position]
        position += 1
        if of_class == _MERGE_FACTOR:
            groups.append((start, position))
            start, of_class, total = position, 0, 0
    is_before_full = size_class == _MERGING_CLASSES - 1 and run[1] < len(counts)
    if is_before_full:  # nothing is ever added here, so eight will never be complete
        return [*groups, (start, run[1])] if start < run[1] else groups
    return groups + [(position, position + 1) for position in range(start, run[1])]


def _size_class(count: int, limit: int) -> int:
    """Give the class of a segment of so many blocks: 0 below 8, 1 below 64, 2 up to half the limit, 3 (full) above."""
    if count > limit // 2:
        return _MERGING_CLASSES
    return bisect_right(_CLASS_STARTS, count)


def _zones_of_blocks(zone_counts: IndexArray, block_indices: IndexArray) -> IndexArray:
    """Number the zones of these blocks, in their order, where block i of all has ``zone_counts[i]`` zones."""
    offsets = metadata_table.counts_to_offsets(zone_counts)
    return metadata_table.ranges_to_indices(offsets[block_indices], zone_counts[block_indices])


@dataclass(frozen=True, slots=True)
class SegmentMerger:
    """Merges segments, given as rows of their list.

    ``schema``: the present one, whose statistics are kept. ``keys``: of the indexes whose sidecars are joined.
    ``builders``: by key, to roll up what indexes know of the larger segment; without one there is no roll-up.
    """

    store: Store
    schema: Schema
    keys: Sequence[str]
    builders: Mapping[str, SidecarBuilder]

    def merge(self, rows: pa.Table) -> pa.Table | None:
        """Write one segment in place of these, and give its row of the list; None where something cannot be read."""
        try:
            return self._merge(rows)
        except StorageError:
            return None

    def _merge(self, rows: pa.Table) -> pa.Table:
        return self.rearrange_blocks(rows, np.arange(int(metadata_table.column_as_int64(rows, "block_count").sum())))

    def rearrange_blocks(
        self, rows: pa.Table, block_indices: IndexArray, replaced: Mapping[str, pa.Array] | None = None
    ) -> pa.Table:
        """Write one segment of some blocks of these segments, and give its row of the list. Raises StorageError.

        ``block_indices``: the blocks in their new order, numbered through all the segments; int64, shape (n,), n > 0.
        ``replaced``: columns of their rows that are to be others, by name, n values each.
        """
        segment_id = new_id()
        all_blocks = pa.concat_tables(
            [self._blocks(file, rows.slice(position, 1)) for position, file in enumerate(segment_files(rows))]
        )
        blocks = all_blocks.take(pa.array(block_indices)).combine_chunks()
        for name, values in (replaced or {}).items():
            blocks = blocks.set_column(blocks.schema.names.index(name), name, values)
        blocks = sparse_statistics(blocks)
        segment = create_file(self.store, segment_path(segment_id), metadata_table.encode_metadata(blocks))
        added_by = pc.max(blocks.column("added_by")).as_py()
        zone_counts = np.asarray(
            pc.list_value_length(metadata_table.column_as_array(all_blocks, "zone_rows")).to_numpy(), np.int64
        )
        is_zoned = bool((zone_counts[block_indices] > 1).any())  # else the rows of the blocks tell as much
        zone_indices = _zones_of_blocks(zone_counts, block_indices)
        zones = self._write_zones(segment_id, rows, zone_indices) if is_zoned else None
        merged = segment_row(segment_id, segment, zones, blocks, self.schema, added_by)
        for key in self.keys:
            all_sidecars = self.concat_sidecars(rows, key)
            if all_sidecars is None:
                continue
            sidecars = all_sidecars.take(pa.array(block_indices)).combine_chunks()
            if pc.any(sidecars.column("indexed")).as_py():
                staged = stage_sidecars(self.store, segment_id, key, sidecars, self.builders.get(key))
                merged = with_columns(merged, staged.row)
        return merged

    def _blocks(self, file: MetadataFile, row: pa.Table) -> pa.Table:
        """Read the rows of a segment's blocks, and write out what they inherit from the segment."""
        table = metadata_table.read_all_columns(self.store, file)
        blocks = block_columns(table)
        counts = metadata_table.column_as_int64(blocks, "row_count")
        first_row_ids = pc.add(row.column("first_row_id")[0], pa.array(np.cumsum(counts) - counts))
        inherited = {"first_row_id": first_row_ids, "added_by": row.column("added_by")[0]}
        columns = {
            name: pc.coalesce(blocks.column(name), inherited[name]) if name in inherited else blocks.column(name)
            for name in blocks.schema.names
        }
        return pa.table(columns | statistics_columns(self.schema, table))

    def _write_zones(self, segment_id: str, rows: pa.Table, zone_indices: IndexArray) -> FileRef | None:
        """Write the zones file of the new segment; None where a zones file is missing."""
        zones = []
        for file in zone_parts(rows, segment_files(rows), rows.column("zone_count").to_pylist()):
            table = None if file is None else self._read_or_none(file)
            if table is None:
                return None  # zones only help to skip
            zones.append(pa.table({"row_count": table.column("row_count")} | statistics_columns(self.schema, table)))
        taken = sparse_statistics(pa.concat_tables(zones).take(pa.array(zone_indices)).combine_chunks())
        return create_file(self.store, zones_path(segment_id), metadata_table.encode_metadata(taken))

    def concat_sidecars(self, rows: pa.Table, key: str) -> pa.Table | None:
        """Read the ``_x`` rows of all these segments, one after the other; None if no block is indexed."""
        tables = [None if file is None else self._read_or_none(file) for file in sidecar_files(rows, key)]
        first = next((table for table in tables if table is not None), None)
        if first is None:
            return None
        summary_type = first.schema.field("summary").type
        aligned = []
        for table, count in zip(tables, rows.column("block_count").to_pylist(), strict=True):
            if table is None or table.schema.field("summary").type != summary_type:
                table = unindexed_rows(count, summary_type)
            aligned.append(table.select(first.schema.names))
        return pa.concat_tables(aligned)

    def _read_or_none(self, file: MetadataFile) -> pa.Table | None:
        """Read a file that can be done without: what is lost with it is built anew."""
        try:
            return metadata_table.read_all_columns(self.store, file)
        except (NotFound, FormatError):
            return None
