"""What is to be of the rows of a block, and rewriting blocks by it: portions that run here, or wherever they are sent.

A portion writes new blocks in place of some of a snapshot's, with all indexes; nothing of it is visible until it is
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.errors import InputError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_storage import BlockReplacement, Schema, StagedSegment, StoredTable, conform_rows

_Mask = npt.NDArray[np.bool_]


class RowEdit(Protocol):
    """Called with the rows of one block after the other. ``counts``: rows by what became of them, so far."""

    counts: dict[str, int]

    def __call__(self, block: pa.Table) -> pa.Table | None:
        """What they are to be; None if they stay as they are."""
        ...


@dataclass(frozen=True)
class RowCondition:
    """Which rows are meant; all if there is no predicate."""

    predicate: Predicate | None
    engine: Engine

    def matching_mask(self, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        if self.predicate is None:
            return pa.array(np.ones(rows.num_rows, np.bool_))
        return evaluate(self.predicate, rows, self.engine.context, self.engine.functions).fill_null(False)

    def conform_and_check(self, rows: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
        """These rows, in the schema's types. Raises InputError if there is one on which the condition is not true."""
        found = conform_rows(rows, schema)
        outside = found.filter(pc.invert(self.matching_mask(found)))
        if outside.num_rows:
            one = outside.slice(0, 1).to_pylist()[0]
            raise InputError(
                f"the condition is not true on {outside.num_rows} of the rows to be written, such "
                f"as {one}: leave them out"
            )
        return found


@dataclass
class DeleteRows:
    """Rows that the condition is true on go."""

    condition: RowCondition
    counts: dict[str, int] = field(default_factory=dict)

    def __call__(self, block: pa.Table) -> pa.Table | None:
        mask = self.condition.matching_mask(block)
        gone = int(pc.sum(mask).as_py() or 0)
        add_count(self.counts, "deleted_rows", gone)
        return block.filter(pc.invert(mask)) if gone else None


@dataclass
class UpdateRows:
    """Rows that the condition is true on get other values: for each column, a function of those rows."""

    condition: RowCondition
    setters: Mapping[str, Callable[[pa.Table], Any]]
    schema: Schema
    counts: dict[str, int] = field(default_factory=dict)

    def __call__(self, block: pa.Table) -> pa.Table | None:
        mask = self.condition.matching_mask(block)
        found = block.filter(mask)
        if not found.num_rows:
            return None
        add_count(self.counts, "updated_rows", found.num_rows)
        values = {name: setter(found) for name, setter in self.setters.items()}
        made = pa.table({name: values.get(name, found.column(name)) for name in block.column_names})
        return replace_rows(block, np.asarray(mask), conform_rows(made, self.schema))


def add_count(counts: dict[str, int], name: str, rows: int) -> None:
    counts[name] = counts.get(name, 0) + rows


def replace_rows(block: pa.Table, mask: Any, replacements: pa.Table) -> pa.Table:
    """The same rows in the same order, but where the mask is set the next of ``changed``."""
    places = np.where(mask, len(mask) + np.cumsum(mask) - 1, np.arange(len(mask)))
    return pa.concat_tables([block, replacements.select(block.column_names)]).take(pa.array(places))


@dataclass(frozen=True)
class RewriteTask:
    """Blocks of a snapshot, by their numbers in it, that an edit may change. Picklable if the edit is."""

    table: StoredTable
    builders: tuple[IndexBuilder, ...]
    edit: RowEdit
    block_numbers: tuple[int, ...]


@dataclass(frozen=True)
class RewriteResult:
    """What a portion wrote; small and picklable.

    ``touched``: ids of the segments in which blocks are replaced. ``seen``: which rows of a source matched, if there is
    one.
    """

    replacements: tuple[BlockReplacement, ...]
    staged: tuple[StagedSegment, ...]
    affected_segment_ids: frozenset[str]
    counts: Mapping[str, int]
    matched_rows: _Mask | None


def run_rewrite_task(task: RewriteTask) -> RewriteResult:
    """Raises StorageError, and what the edit raises; then nothing of it stays."""
    table, edit, swaps, changed = task.table, task.edit, [], []
    names, found = table.snapshot.schema.names, table.blocks().take(np.array(task.block_numbers, np.int64))
    with table.writer(task.builders) as writer:
        for number in range(len(found)):
            made = edit(table.read_block(found, number, names))
            if made is None:
                continue
            before = writer.block_count
            writer.write(made)
            writer.end_block()
            swaps.append(BlockReplacement((found.ids[number],), writer.block_count - before))
            changed.append(task.block_numbers[number])
        staged = writer.finish()
    return RewriteResult(
        tuple(swaps),
        tuple(staged),
        table.segments().segments_containing(changed),
        dict(edit.counts),
        getattr(edit, "matched_rows", None),
    )


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
    coming = (
        batches
        if condition is None or condition.predicate is None
        else (condition.conform_and_check(batch, schema) for batch in batches)
    )
    with table.writer(builders) as writer:
        write_sorted_runs(writer, coming, ClusterKey.from_snapshot(table.snapshot))
        return writer.finish()
