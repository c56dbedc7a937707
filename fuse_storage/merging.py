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

from fuse_storage import columnar
from fuse_storage.columnar import Part
from fuse_storage.errors import FormatError, NotFound, StorageError
from fuse_storage.references import Reference, created, new_id
from fuse_storage.schema import Schema
from fuse_storage.segments import (
    BLOCK,
    MAX_BLOCKS,
    beside,
    parts,
    segment_path,
    segment_row,
    sidecar_parts,
    statistics_columns,
    zone_parts,
    zones_path,
)  # fmt: skip
from fuse_storage.sidecar_writing import SidecarBuilder, stage
from fuse_storage.sidecars import unindexed
from fuse_storage.store import Store

FACTOR = 8
CLASSES = 3
"""Classes that merge: below 8, below 64 and below 512 blocks; larger segments are left alone."""

Span = tuple[int, int]


def plan(block_counts: Sequence[int]) -> list[Span]:
    """Which segments to merge: spans [start, end) of at least two, in order, of at most 1,000 blocks each."""
    spans = [(number, number + 1) for number in range(len(block_counts))]
    counts = [int(count) for count in block_counts]
    for size in range(CLASSES):
        spans, counts = _merged(spans, counts, size)
    return [span for span in spans if span[1] - span[0] > 1]


def _merged(spans: list[Span], counts: list[int], size: int) -> tuple[list[Span], list[int]]:
    """The same after merging what stands side by side, of this class or below."""
    found: list[Span] = []
    sums: list[int] = []
    for start, end in _runs(counts, size):
        at = start
        while at < end:
            upto = _group(counts, at, end, size)
            found.append((spans[at][0], spans[upto - 1][1]))
            sums.append(sum(counts[at:upto]))
            at = upto
    return found, sums


def _runs(counts: Sequence[int], size: int) -> list[Span]:
    """Maximal runs of segments that are of this class or below; each larger segment is a run of its own."""
    runs: list[Span] = []
    for number, count in enumerate(counts):
        small = _class(count) <= size
        if runs and small and runs[-1][1] == number and _class(counts[number - 1]) <= size:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs


def _group(counts: Sequence[int], start: int, end: int, size: int) -> int:
    """Where the group that begins at ``start`` ends: eight of the class, or as many as fit; a single one if too few."""
    if sum(_class(count) == size for count in counts[start:end]) < FACTOR:
        return start + 1
    seen, total, at = 0, 0, start
    while at < end and seen < FACTOR and total + counts[at] <= MAX_BLOCKS:
        seen += _class(counts[at]) == size
        total += counts[at]
        at += 1
    return max(at, start + 1)


def _class(count: int) -> int:
    return next((number for number in range(CLASSES) if count < FACTOR ** (number + 1)), CLASSES)


@dataclass(frozen=True, slots=True)
class Merger:
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
        id = new_id()
        blocks = pa.concat_tables([self._blocks(part, rows.slice(number, 1)) for number, part in enumerate(parts(rows))])
        segment = created(self.store, segment_path(id), columnar.encode(blocks))
        added_by = pc.max(rows.column("added_by")).as_py()
        merged = segment_row(id, segment, self._zones(id, rows), blocks, self.schema, added_by)
        for key in self.keys:
            if (joined := self.joined(rows, key)) is not None:
                merged = beside(merged, stage(self.store, id, key, joined, self.builders.get(key)).row)
        return merged

    def _blocks(self, part: Part, row: pa.Table) -> pa.Table:
        """The rows of a segment's blocks, with all that they inherit from the segment written out."""
        table = columnar.read_whole(self.store, part)
        counts = columnar.numbers(table, "row_count")
        first = pc.add(row.column("first_row_id")[0], pa.array(np.cumsum(counts) - counts))
        told = {"first_row_id": first, "added_by": row.column("added_by")[0]}
        columns = {name: pc.coalesce(table.column(name), told[name]) if name in told else table.column(name) for name in BLOCK.names}
        return pa.table(columns | statistics_columns(self.schema, table))

    def _zones(self, id: str, rows: pa.Table) -> Reference | None:
        found = []
        for part in zone_parts(rows):
            table = None if part is None else self._optional(part)
            if table is None:
                return None  # zones only help to skip
            found.append(pa.table({"row_count": table.column("row_count")} | statistics_columns(self.schema, table)))
        return created(self.store, zones_path(id), columnar.encode(pa.concat_tables(found)))

    def joined(self, rows: pa.Table, key: str) -> pa.Table | None:
        """The ``_x`` rows of all these segments, one after the other; None if no block is indexed."""
        tables = [None if part is None else self._optional(part) for part in sidecar_parts(rows, key)]
        first = next((table for table in tables if table is not None), None)
        if first is None:
            return None
        kind = first.schema.field("summary").type
        found = []
        for table, count in zip(tables, rows.column("block_count").to_pylist(), strict=True):
            if table is None or table.schema.field("summary").type != kind:
                table = unindexed(count, kind)
            found.append(table.select(first.column_names))
        return pa.concat_tables(found)

    def _optional(self, part: Part) -> pa.Table | None:
        """A file that can be done without: what is lost with it is built anew."""
        try:
            return columnar.read_whole(self.store, part)
        except (NotFound, FormatError):
            return None
