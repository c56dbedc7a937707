"""What the tasks of a merge do with batches of rows: each function here makes one for ``mapInArrow``.

In: sealed jobs, and names of columns, since Spark knows them by numbers. Out: rows, or sealed answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.merge_match import MergeRows, MergeSpec
from fuse_index.operations.row_edits import stage_rows
from fuse_index.spark.answers import Sealed, capture_answer
from fuse_index.table.table import Table
from fuse_storage import BlockFrame, read_live_rows

BLOCK_COLUMN = "block"
"""The column that says which block a row of the source is for."""
_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class _Reader:
    """Reads blocks of the job's table, in the columns that it will have."""

    job: DmlJob

    def frame(self, number: int) -> BlockFrame:
        return self.job.table.blocks().take(np.array([number], np.int64))

    def keys(self, number: int, columns: Sequence[str]) -> pa.Table:
        rows = read_live_rows(self.job.evolved, self.frame(number), 0, columns).drop_null()
        return rows.group_by(list(columns)).aggregate([])


def conform_source(
    spec: Sealed[tuple[Table, MergeSpec]], names: Sequence[str], numbered: Sequence[str]
) -> Callable[[_Batches], _Batches]:
    """Give rows of a source the types of the table. Raises SchemaError in the task."""

    def run(batches: _Batches) -> _Batches:
        merge_ = spec.open()[1]
        for batch in batches:
            rows = merge_.match(pa.Table.from_batches([batch]).rename_columns(list(names))).source
            yield from rows.rename_columns(list(numbered)).to_batches()

    return run


def read_block_keys(
    job: Sealed[DmlJob], spec: Sealed[tuple[Table, MergeSpec]], shares: Sequence[Sequence[int]], names: Sequence[str]
) -> Callable[[_Batches], _Batches]:
    """Read the keys of blocks, given by shares, each key once for a block."""

    def run(batches: _Batches) -> _Batches:
        reader, columns = _Reader(job.open()), spec.open()[1].key_columns
        for number in (block for batch in batches for share in batch.column(0).to_pylist() for block in shares[share]):
            keys = reader.keys(number, columns)
            block = pa.repeat(pa.scalar(number, pa.int64()), len(keys))
            yield from pa.table([block, *keys.select(list(columns)).columns], list(names)).to_batches()

    return run


def number_blocks(shares: Sequence[Sequence[int]]) -> Callable[[_Batches], _Batches]:
    """Give the numbers of the blocks of each share."""

    def run(batches: _Batches) -> _Batches:
        for batch in batches:
            numbers = [block for share in batch.column(0).to_pylist() for block in shares[share]]
            yield pa.record_batch({BLOCK_COLUMN: pa.array(numbers, pa.int64())})

    return run


def edit_blocks(
    job: Sealed[DmlJob], spec: Sealed[tuple[Table, MergeSpec]], names: Sequence[str]
) -> Callable[[_Batches], _Batches]:
    """Rewrite the blocks whose rows of the source come, sorted by block."""

    def run(batches: _Batches) -> _Batches:
        rewriting, merge_ = job.open(), spec.open()[1]
        reader = _Reader(rewriting)
        edits = ((reader.frame(n), 0, _match(merge_, rows, names)) for n, rows in _rows_by_block(batches))
        yield capture_answer(lambda: Sealed(rewriting.run_edits(edits)))

    return run


def _match(spec: MergeSpec, rows: pa.Table, names: Sequence[str]) -> MergeRows:
    """The edit of a block by these rows; markers, which have no key, are none of the source's."""
    source = rows.drop_columns([BLOCK_COLUMN]).rename_columns(list(names))
    for name in spec.key_columns:
        source = source.filter(source.column(name).is_valid())
    return spec.match(source)


def _rows_by_block(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Cut rows that are sorted by block into one table for each block."""

    def slices() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in batches:
            numbers = np.asarray(batch.column(0))
            for start, end in zip(*_run_bounds(numbers), strict=True):
                yield int(numbers[start]), batch.slice(start, end - start)

    for number, group in groupby(slices(), lambda each: each[0]):
        yield number, pa.Table.from_batches([rows for _, rows in group])


def _run_bounds(numbers: Any) -> tuple[list[int], list[int]]:
    """Where runs of equal numbers begin and end. ``numbers``: int64, shape (n,)."""
    changes = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    return ([0, *changes], [*changes, len(numbers)]) if len(numbers) else ([], [])


def stage_inserts(
    job: Sealed[DmlJob], spec: Sealed[tuple[Table, MergeSpec]], names: Sequence[str]
) -> Callable[[_Batches], _Batches]:
    """Write the rows of a source that match none, as far as they are to be inserted."""

    def run(batches: _Batches) -> _Batches:
        writing, merge_ = job.open(), spec.open()[1]
        nothing = np.zeros(0, np.int64)
        sources = (merge_.match(pa.Table.from_batches([b]).rename_columns(list(names))) for b in batches)
        rows = (each for source in sources for each in source.unmatched_rows(nothing))
        yield capture_answer(lambda: Sealed(stage_rows(writing.evolved, writing.builders, rows)))

    return run
