"""Rows that Spark says have changed, brought to the tasks that write their blocks anew.

In: a DataFrame of ``operation`` (what happens to a row), ``block`` and ``row`` (where it lies, ``block`` as Spark's
URL; NULL for new rows) and, one by one, the columns of the table as they will be. Out: what tasks wrote, to be
committed together. The DataFrame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import TypeVar
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, concat, lit, spark_partition_id

from fuse_index.operations.dml_job import DmlJob, insertion
from fuse_index.operations.rewrite_job import RewriteOutcome, RowNumbers
from fuse_index.operations.row_edits import EditedBlock, MarkedRows, replace_rows, stage_rows
from fuse_index.spark.answers import ANSWER_SCHEMA, Sealed, capture_answer
from fuse_index.spark.placement import collect_answers
from fuse_index.spark.workers import map_in_workers
from fuse_storage import BlockFrame, Schema, StagedSegment, StoredTable, conform_rows, live_among

_OPERATION, BLOCK_COLUMN, _ROW = "operation", "block", "row"
_DELETE = 1
"""Spark's number of it; what has a place and another number gets other values."""
NEW_ROWS = "+"
"""The block of rows that have none, with the partition they come from: so they stay spread as they are."""

_Batches = Iterator[pa.RecordBatch]
Slices = Iterator[tuple[str, pa.Table]]
"""Rows, each with the block that it is of."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class ReplaceRows:
    """The edit of one block by the numbers of its rows: some go, others are replaced.

    ``deleted``: int64, shape (n,), a row may be named twice. ``updated``: int64, ascending, each once, none of them
    deleted; ``replacements``: what comes in their place, as many rows in their order, with the columns of the schema.
    ``live``: which rows of the file count, bool, shape (rows,); None if all do.
    """

    deleted: RowNumbers
    updated: RowNumbers
    replacements: pa.Table
    schema: Schema
    live: npt.NDArray[np.bool_] | None = None

    def mark(self, table: StoredTable, blocks: BlockFrame, position: int) -> MarkedRows:
        """Mark the live rows that go or are replaced. Reads nothing."""
        gone, counts = np.zeros(int(blocks.row_counts[position]), np.bool_), {}
        gone[self.deleted] = True
        if len(self.deleted):
            counts["deleted_rows"] = int(np.count_nonzero(gone))
        gone[self.updated] = True
        if not len(self.updated):
            return MarkedRows(gone, counts)
        counts["updated_rows"] = len(self.updated)
        return MarkedRows(gone, counts, lambda: conform_rows(self.replacements, self.schema))

    def apply(self, block: pa.Table) -> EditedBlock:
        is_updated, stays = np.zeros(block.num_rows, np.bool_), np.ones(block.num_rows, np.bool_)
        # rows are numbered by their places in the file, and the block's rows are those of them that count
        places = np.arange(block.num_rows) if self.live is None else np.cumsum(self.live) - 1
        is_updated[places[self.updated]] = True
        stays[places[self.deleted]] = False
        rows, counts = block, {}
        if len(self.updated):
            rows = replace_rows(block, is_updated, conform_rows(self.replacements, self.schema))
            counts["updated_rows"] = len(self.updated)
        if len(self.deleted):
            rows = rows.filter(pa.array(stays))
            counts["deleted_rows"] = int((~stays).sum())
        return EditedBlock(rows if counts else None, counts)


def stage_changed_rows(job: Sealed[DmlJob], changes: DataFrame, task_count: int) -> list[RewriteOutcome]:
    """Write the blocks in which rows change, and the rows that are new; nobody sees them yet.

    Raises SchemaError for values that do not fit, and what Spark raises of the rows.
    """
    return [outcome.open() for outcome in run_by_block(changes, task_count, partial(_write_groups, job))]


def run_by_block(
    changes: DataFrame, task_count: int, write: Callable[[Iterable[tuple[str, Slices]]], _T]
) -> list[Sealed[_T]]:
    """Give each task the changes of some blocks, block by block, and get what it makes of them."""
    new_rows = concat(lit(NEW_ROWS), spark_partition_id())
    placed = changes.withColumn(BLOCK_COLUMN, coalesce(col(BLOCK_COLUMN), new_rows))
    order = [name for name in (BLOCK_COLUMN, _ROW) if name in changes.columns]
    grouped = placed.repartition(task_count, BLOCK_COLUMN).sortWithinPartitions(*order)
    return collect_answers(map_in_workers(grouped, _in_task(write), ANSWER_SCHEMA))


def _in_task(write: Callable[[Iterable[tuple[str, Slices]]], _T]) -> Callable[[_Batches], _Batches]:
    def run(batches: _Batches) -> _Batches:
        groups = groupby(_slices_by_block(batches), lambda each: each[0])
        if (first := next(groups, None)) is not None:
            yield capture_answer(lambda: Sealed(write(chain([first], groups))))

    return run


def _write_groups(sealed: Sealed[DmlJob], groups: Iterable[tuple[str, Slices]]) -> RewriteOutcome:
    """Write what became of the rows of each block; the new ones go apart, and are not held in memory."""
    job = sealed.open()
    blocks, positions, evolved = job.table.blocks(), BlockPlaces(job.table), job.evolved
    names, added = evolved.snapshot.schema.names, list[StagedSegment]()

    def edits() -> Iterator[tuple[BlockFrame, int, ReplaceRows]]:
        for name, slices in groups:
            if name == NEW_ROWS:
                added.extend(stage_rows(evolved, job.builders, (table_columns(rows, names) for _, rows in slices)))
            else:
                rows = pa.concat_tables([rows for _, rows in slices])
                position = positions.find(name)
                block = blocks.take(np.array([position], np.int64))
                yield block, 0, replace(_edit(rows, evolved.snapshot.schema), live=live_among(block, 0))

    return RewriteOutcome.combine([job.run_edits(edits()), insertion(added)])


class BlockPlaces:
    """The numbers of a table's blocks, by what Spark calls them."""

    def __init__(self, table: StoredTable) -> None:
        self._numbers = {_without_scheme(path): number for number, path in enumerate(table.block_files()[0])}

    def find(self, block: str) -> int:
        """The number of a block. ``block``: its URL."""
        return self._numbers[_without_scheme(unquote(block))]


def is_deleted(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows go: bool, shape (rows,)."""
    found: npt.NDArray[np.bool_] = np.asarray(rows.column(_OPERATION)) == _DELETE
    return found


def row_numbers(rows: pa.Table) -> RowNumbers:
    """Where rows lie in the file of their block: int64, shape (rows,)."""
    return np.asarray(rows.column(_ROW)).astype(np.int64)


def _edit(rows: pa.Table, schema: Schema) -> ReplaceRows:
    goes, numbers = is_deleted(rows), row_numbers(rows)
    replacements = schema.empty_table()
    if not goes.all():
        replacements = table_columns(rows.filter(pa.array(~goes)), schema.names)
    return ReplaceRows(numbers[goes], numbers[~goes], replacements, schema)


def table_columns(rows: pa.Table, names: list[str]) -> pa.Table:
    """The columns of the table, which follow those that say where a row lies."""
    return rows.drop_columns([_OPERATION, BLOCK_COLUMN, _ROW]).rename_columns(names)


def _without_scheme(path: str) -> str:
    """A path or URL of a block without its scheme: Spark may know a store by another than we do.

    The whole of it, since files of others may have their names in common.
    """
    scheme, _, rest = path.partition(":")
    return path if path.startswith("/") else f"/{rest.lstrip('/')}" if scheme == "file" else rest


def _slices_by_block(batches: _Batches) -> Slices:
    """Cut batches that are sorted by block, so that each slice is of one block, whose name comes with it."""
    for batch in batches:
        names = batch.column(BLOCK_COLUMN)
        codes = np.asarray(names.dictionary_encode().indices)
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            if start < end:
                name = names[start].as_py()
                rows = pa.Table.from_batches([batch.slice(start, end - start)])
                yield (NEW_ROWS if name.startswith(NEW_ROWS) else name), rows
