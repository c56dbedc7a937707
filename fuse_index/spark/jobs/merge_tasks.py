"""What the tasks of a merge do with batches of rows.

In: sealed jobs, and names of columns, since Spark knows them by numbers. Out: rows, or outcomes for the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from fuse_index.operations.dml_job import DmlJob, insertion
from fuse_index.operations.merge_match import MergeRows, MergeSpec
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask
from fuse_index.operations.row_edits import stage_rows
from fuse_index.spark.answers import Sealed, refusals_encoded
from fuse_index.spark.jobs.changed_rows import BLOCK_COLUMN, Slices
from fuse_index.table.table import Table
from fuse_storage import BlockFrame, read_live_rows

_Batches = Iterator[pa.RecordBatch]
_Spec = Sealed[tuple[Table, MergeSpec]]


def conform_source(spec: _Spec, names: Sequence[str], numbered: Sequence[str]) -> Callable[[_Batches], _Batches]:
    """Give rows of a source the types of the table. Raises SchemaError in the task."""

    def run(batches: _Batches) -> _Batches:
        merge_ = spec.open()[1]
        for batch in batches:
            with refusals_encoded():
                rows = merge_.match(pa.Table.from_batches([batch]).rename_columns(list(names))).source
            yield from rows.rename_columns(list(numbered)).to_batches()

    return run


def read_block_keys(
    job: Sealed[DmlJob], spec: _Spec, tasks: Sequence[Sealed[RewriteTask]], names: Sequence[str]
) -> Callable[[_Batches], _Batches]:
    """Read the keys of the blocks of tasks, which come by their numbers; each key once for a block."""

    def run(batches: _Batches) -> _Batches:
        opened, columns = job.open(), list(spec.open()[1].key_columns)
        for number in _block_numbers(tasks, batches):
            rows = read_live_rows(opened.evolved, _block(opened, number), 0, columns).drop_null()
            keys = rows.group_by(columns).aggregate([]).select(columns)
            yield from pa.table([pa.repeat(str(number), len(keys)), *keys.columns], list(names)).to_batches()

    return run


def name_blocks(tasks: Sequence[Sealed[RewriteTask]]) -> Callable[[_Batches], _Batches]:
    """Give the numbers of the blocks of tasks as text, as which the rows of a block are told from others."""

    def run(batches: _Batches) -> _Batches:
        yield pa.record_batch({BLOCK_COLUMN: pa.array(map(str, _block_numbers(tasks, batches)), pa.string())})

    return run


def _block_numbers(tasks: Sequence[Sealed[RewriteTask]], batches: _Batches) -> Iterator[int]:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield from tasks[task].open().block_numbers


def _block(job: DmlJob, number: int) -> BlockFrame:
    return job.table.blocks().take(np.array([number], np.int64))


def edit_blocks(
    job: Sealed[DmlJob], spec: _Spec, names: Sequence[str], groups: Iterable[tuple[str, Slices]]
) -> RewriteOutcome:
    """Rewrite the blocks for which rows of the source come, block by block."""
    opened, merge_ = job.open(), spec.open()[1]
    return opened.run_edits(
        (_block(opened, int(name)), 0, _match(merge_, pa.concat_tables([rows for _, rows in slices]), names))
        for name, slices in groups
    )


def _match(spec: MergeSpec, rows: pa.Table, names: Sequence[str]) -> MergeRows:
    """The edit of a block by these rows; markers, which have no key, are none of the source's."""
    source = rows.drop_columns([BLOCK_COLUMN]).rename_columns(list(names))
    for name in spec.key_columns:
        source = source.filter(source.column(name).is_valid())
    return spec.match(source)


def stage_inserts(
    job: Sealed[DmlJob], spec: _Spec, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Sealed[RewriteOutcome]:
    """Write the rows of a source that match none, as far as they are to be inserted."""
    opened, merge_ = job.open(), spec.open()[1]
    sources = (merge_.match(pa.Table.from_batches([batch]).rename_columns(list(names))) for batch in batches)
    rows = (each for source in sources for each in source.unmatched_rows(np.zeros(0, np.int64)))
    return Sealed(insertion(stage_rows(opened.evolved, opened.builders, rows)))
