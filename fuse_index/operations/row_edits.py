"""What becomes of the rows of a block, by a condition or by their keys, and rows that are added with them.

In: a condition, and the rows of a block. Out: those that come in their place. Knows no table's other blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.errors import InputError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.engine import Engine
from fuse_index.operations.rewrite_job import (
    RowNumbers,
)
from fuse_index.predicate import Predicate
from fuse_storage import (
    BlockFrame,
    Schema,
    SegmentWriter,
    StagedSegment,
    StoredTable,
    conform_rows,
    live_among,
    unpack_mask,
)


@dataclass(frozen=True)
class RowCondition:
    """Which rows an operation is about; all if there is no predicate."""

    predicate: Predicate | None
    engine: Engine

    def matching_mask(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Mark the rows on which the predicate is true: booleans without NULL, one for each row."""
        if self.predicate is None:
            return pa.array(np.ones(rows.num_rows, np.bool_))
        return evaluate(self.predicate, rows, self.engine.context, self.engine.functions).fill_null(False)

    def conform_and_check(self, rows: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
        """Conform rows to the schema's types. Raises InputError if there is one on which the condition is not true."""
        conformed = conform_rows(rows, schema)
        outside = conformed.filter(pc.invert(self.matching_mask(conformed)))
        if outside.num_rows:
            example = outside.slice(0, 1).to_pylist()[0]
            raise InputError(
                f"the condition is not true on {outside.num_rows} of the rows to be written, such "
                f"as {example}: leave them out"
            )
        return conformed


@dataclass(frozen=True, slots=True)
class EditedBlock:
    """What an edit makes of a block. ``rows``: those that come in its place; None if it stays as it is.

    ``counts``: rows by what became of them. ``matched_rows``: numbers of the rows of a merge's source that match a row
    of the block, int64, in any order.
    """

    rows: pa.Table | None
    counts: Mapping[str, int] = field(default_factory=dict)
    matched_rows: RowNumbers = field(default_factory=lambda: np.zeros(0, np.int64))


class RowEdit(Protocol):
    """A function from the rows of a block to those that come in their place, without a memory of other blocks."""

    def apply(self, block: pa.Table) -> EditedBlock:
        """Edit the rows of one block."""
        ...


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """Live rows of a block that go by its deletion vector, and others that come for them, in blocks of their own.

    ``gone``: bool, shape (rows of the block's file,). ``read_new``: gives the rows that come, with all columns; None if
    none do. ``counts`` and ``matched_rows``: as of an ``EditedBlock``.
    """

    gone: npt.NDArray[np.bool_]
    counts: Mapping[str, int]
    read_new: Callable[[], pa.Table] | None = None
    matched_rows: RowNumbers = field(default_factory=lambda: np.zeros(0, np.int64))


@runtime_checkable
class MarksRows(Protocol):
    """An edit that can tell the rows of a block that go or change from those that stay, without reading these whole."""

    def mark(self, table: StoredTable, blocks: BlockFrame, position: int) -> MarkedRows:
        """Mark the rows of one block. Raises as ``apply``."""
        ...


@dataclass(frozen=True)
class DeleteRows:
    """The edit by which rows that the condition is true on go."""

    condition: RowCondition

    def apply(self, block: pa.Table) -> EditedBlock:
        mask = self.condition.matching_mask(block)
        deleted = int(pc.sum(mask).as_py() or 0)
        return EditedBlock(block.filter(pc.invert(mask)) if deleted else None, {"deleted_rows": deleted})

    def mark(self, table: StoredTable, blocks: BlockFrame, position: int) -> MarkedRows:
        """Mark the rows of the condition. Reads the columns that it names."""
        gone = _mark_matching(self.condition, table, blocks, position)
        return MarkedRows(gone, {"deleted_rows": int(np.count_nonzero(gone))})


def _mark_matching(
    condition: RowCondition, table: StoredTable, blocks: BlockFrame, position: int
) -> npt.NDArray[np.bool_]:
    """The live rows of a block on which a condition is true: bool, shape (rows of the file,)."""
    names = column_names(predicate_terms(condition.predicate))
    live = live_among(blocks, position)
    rows = table.read_block(blocks, position, names or table.snapshot.schema.names[:1], row_mask=live)
    return spread_mask(unpack_mask(condition.matching_mask(rows)), live)


def spread_mask(chosen: npt.NDArray[np.bool_], live: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """A mask of a block's live rows as one of all rows of its file, both bool, shape (rows,).

    ``live``: which rows of the file these are; None if all are.

    >>> spread_mask(np.array([True, False]), np.array([False, True, True])).tolist()
    [False, True, False]
    """
    if live is None:
        return chosen
    marked = np.zeros(len(live), np.bool_)
    marked[live] = chosen
    return marked


@dataclass(frozen=True)
class UpdateRows:
    """The edit by which rows that the condition is true on get other values: by column, a function of those rows."""

    condition: RowCondition
    setters: Mapping[str, Callable[[pa.Table], Any]]
    schema: Schema

    def apply(self, block: pa.Table) -> EditedBlock:
        mask = self.condition.matching_mask(block)
        matching = block.filter(mask)
        if not matching.num_rows:
            return EditedBlock(None)
        rows = replace_rows(block, np.asarray(mask), self._updated(matching))
        return EditedBlock(rows, {"updated_rows": matching.num_rows})

    def mark(self, table: StoredTable, blocks: BlockFrame, position: int) -> MarkedRows:
        """Mark the rows of the condition, whose other columns are read if they are to be written anew."""
        gone = _mark_matching(self.condition, table, blocks, position)

        def read_new() -> pa.Table:
            return self._updated(table.read_block(blocks, position, self.schema.names, row_mask=gone))

        count = int(np.count_nonzero(gone))
        return MarkedRows(gone, {"updated_rows": count} if count else {}, read_new)

    def _updated(self, rows: pa.Table) -> pa.Table:
        values = {name: setter(rows) for name, setter in self.setters.items()}
        updated = pa.table({name: values.get(name, rows.column(name)) for name in rows.column_names})
        return conform_rows(updated, self.schema)


def replace_rows(block: pa.Table, mask: npt.NDArray[np.bool_], replacements: pa.Table) -> pa.Table:
    """Put other rows in place of those that are marked, in their order.

    ``mask``: bool, shape (rows of the block,). ``replacements``: as many rows as are marked, with the columns of
    the block in any order.
    """
    row_numbers = np.where(mask, len(mask) + np.cumsum(mask) - 1, np.arange(len(mask)))
    return pa.concat_tables([block, replacements.select(block.column_names)]).take(pa.array(row_numbers))


def stage_rows(
    table: StoredTable,
    builders: tuple[IndexBuilder, ...],
    batches: Iterable[pa.RecordBatch | pa.Table],
    condition: RowCondition | None = None,
) -> list[StagedSegment]:
    """Write rows that are to be added, sorted by the table's key; the condition must be true on all of them.

    Raises InputError if it is not, and as ``SegmentWriter.write``; then nothing of it stays.
    """
    schema = table.snapshot.schema
    conformed = (
        batches
        if condition is None or condition.predicate is None
        else (condition.conform_and_check(batch, schema) for batch in batches)
    )
    with table.writer(builders) as writer:
        write_sorted_runs(writer, conformed, ClusterKey.from_snapshot(table.snapshot))
        return writer.finish()


class NewRows:
    """Takes rows that come for others, of any blocks, and writes them as ``stage_rows`` does. ``with`` it."""

    def __init__(self, writer: SegmentWriter, key: ClusterKey | None) -> None:
        self._writer, self._key = writer, key
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.Table) -> None:
        """Take rows that fit the table; those of a sort's size are written. Raises as ``SegmentWriter.write``."""
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes > self._writer.options.sort_bytes:
            self._flush()

    def finish(self) -> list[StagedSegment]:
        self._flush()
        return self._writer.finish()

    def _flush(self) -> None:
        write_sorted_runs(self._writer, self._waiting, self._key)
        self._waiting, self._waiting_bytes = [], 0

    def __enter__(self) -> NewRows:
        return self

    def __exit__(self, *raised: object) -> None:
        self._writer.__exit__(*raised)
