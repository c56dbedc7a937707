"""What becomes of the rows of a block, and the job that applies it to all blocks that may hold such rows.

In: a condition, and an edit from the rows of a block to those that come in their place. Out: a ``DmlJob``. Blocks that
cannot hold a row of the condition stay, blocks that hold no other may go unread, and only the rest is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.errors import InputError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.engine import Engine
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.operations.rewrite_job import (
    RewriteOutcome,
    RewriteTask,
    RowNumbers,
    add_counts,
    union_row_numbers,
)
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_storage import BlockFrame, BlockReplacement, Schema, SchemaChange, StagedSegment, StoredTable, conform_rows


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
        """These rows, in the schema's types. Raises InputError if there is one on which the condition is not true."""
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


@dataclass(frozen=True)
class DeleteRows:
    """The edit by which rows that the condition is true on go."""

    condition: RowCondition

    def apply(self, block: pa.Table) -> EditedBlock:
        mask = self.condition.matching_mask(block)
        deleted = int(pc.sum(mask).as_py() or 0)
        return EditedBlock(block.filter(pc.invert(mask)) if deleted else None, {"deleted_rows": deleted})


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
        values = {name: setter(matching) for name, setter in self.setters.items()}
        updated = pa.table({name: values.get(name, matching.column(name)) for name in block.column_names})
        rows = replace_rows(block, np.asarray(mask), conform_rows(updated, self.schema))
        return EditedBlock(rows, {"updated_rows": matching.num_rows})


def replace_rows(block: pa.Table, mask: npt.NDArray[np.bool_], replacements: pa.Table) -> pa.Table:
    """Put other rows in place of those that are marked, in their order.

    ``mask``: bool, shape (rows of the block,). ``replacements``: as many rows as are marked, with the columns of
    the block in any order.
    """
    row_numbers = np.where(mask, len(mask) + np.cumsum(mask) - 1, np.arange(len(mask)))
    return pa.concat_tables([block, replacements.select(block.column_names)]).take(pa.array(row_numbers))


@dataclass
class DmlJob:
    """The ``RewriteJob`` of deletes, updates, overwrites and merges: one commit. Picklable if its edit is.

    ``condition``: on which rows it depends; rows of it that others add meanwhile are a Conflict. ``edit``: None if no
    block is to be rewritten. ``drop_full_blocks``: blocks that are known to hold rows of the condition alone go unread.
    ``unmatched_rows``: from numbers of the rows of a merge's source that matched, int64, ascending, to the rows that
    are added because they did not. ``task_count``: how many tasks are planned if nothing else is said.
    ``schema_change``: the step that gives the table the columns of the rows that come, in the same commit.
    """

    operation: str
    table: StoredTable
    builders: tuple[IndexBuilder, ...]
    condition: RowCondition
    edit: RowEdit | None = None
    drop_full_blocks: bool = False
    unmatched_rows: Callable[[RowNumbers], list[pa.Table]] | None = None
    task_count: int = 1
    schema_change: SchemaChange | None = None
    dropped: RewriteOutcome = field(default_factory=RewriteOutcome)
    added: list[StagedSegment] = field(default_factory=list)
    commit_id: str = field(default_factory=storage.new_id)

    def plan_tasks(self, max_tasks: int | None = None) -> list[RewriteTask]:
        """Divide the blocks that may hold rows of the condition among at most so many tasks, neighbours together."""
        if self.edit is None:
            return []
        plan = self._plan_scan(self.table)
        if self.drop_full_blocks:
            full = plan.always_matching_blocks
            self._drop_blocks(plan.take(np.flatnonzero(full)))
            plan = plan.take(np.flatnonzero(~full))
        block_numbers = plan.blocks.ordinals
        shares = np.array_split(block_numbers, max(1, min(max_tasks or self.task_count, len(block_numbers))))
        return [RewriteTask(tuple((number,) for number in share.tolist())) for share in shares if len(share)]

    def _drop_blocks(self, plan: ScanPlan[BlockFrame]) -> None:
        """Note blocks that go without being read."""
        blocks = plan.blocks
        self.dropped = RewriteOutcome(
            tuple(BlockReplacement((block_id,), 0) for block_id in blocks.ids),
            affected_segment_ids=self.table.segments().segments_containing(blocks.ordinals),
            counts={"deleted_rows": int(blocks.row_counts.sum())} if len(blocks) else {},
        )

    def add_staged(self, staged: Sequence[StagedSegment]) -> None:
        """Add rows that are written already."""
        self.added += staged

    @property
    def evolved(self) -> StoredTable:
        """The table as its columns will be."""
        return evolved_table(self.table, self.schema_change)

    def run(self, task: RewriteTask) -> RewriteOutcome:
        """Edit the blocks of a task. Raises StorageError, and what the edit raises; then nothing of it stays."""
        edit, blocks = self.edit, self.table.blocks().take(np.array(task.block_numbers, np.int64))
        assert edit is not None
        return self.run_edits((blocks, position, edit) for position in range(len(blocks)))

    def run_edits(self, edits: Iterable[tuple[BlockFrame, int, RowEdit]]) -> RewriteOutcome:
        """Edit blocks of the table, given as a frame and a position in it, each by an edit of its own.

        Raises as ``run``.
        """
        table, outcome = self.evolved, _OutcomeBuilder()
        with table.writer(self.builders) as writer:
            for blocks, position, edit in edits:
                edited = edit.apply(table.read_block(blocks, position, table.snapshot.schema.names))
                blocks_before = writer.block_count
                if edited.rows is not None:
                    writer.write(edited.rows)
                    writer.end_block()
                outcome.add(blocks, position, edited, writer.block_count - blocks_before)
            staged = writer.finish()
        return outcome.finish(staged, self.table)

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Commit, once and for all: there is nothing to plan again. Raises Conflict, StorageError."""
        total = RewriteOutcome.combine([self.dropped, RewriteOutcome(counts=_inserted_rows(self.added)), *outcomes])
        counts, added = dict(total.counts), list(self.added)
        if self.unmatched_rows is not None:
            inserted = stage_rows(self.evolved, self.builders, self.unmatched_rows(total.matched_rows))
            add_counts(counts, _inserted_rows(inserted))
            added += inserted
        transaction = self.table.transaction(self.builders, self.commit_id)
        if self.schema_change is not None and (total.replacements or added):
            transaction.evolve_schema(self.schema_change)
        transaction.replace_blocks(
            total.replacements, total.staged, total.affected_segment_ids, self._conflicting_blocks, self.operation
        )
        transaction.append(added)
        committed = transaction.commit(self.operation, summary=counts)
        if total.replacements or added:
            self.table = committed
        return False

    def _plan_scan(self, table: StoredTable) -> ScanPlan[BlockFrame]:
        return plan_scan(table, self.condition.predicate, self.condition.engine)

    def _conflicting_blocks(self, snapshot_id: str) -> Collection[str]:
        """Blocks of a later snapshot that may hold rows that matter."""
        return frozenset(self._plan_scan(self.table.at(snapshot_id)).blocks.ids)


@dataclass
class _OutcomeBuilder:
    """What becomes of the blocks of one task, one after the other."""

    replacements: list[BlockReplacement] = field(default_factory=list)
    rewritten_numbers: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    matched_rows: list[RowNumbers] = field(default_factory=list)

    def add(self, blocks: BlockFrame, position: int, edited: EditedBlock, new_block_count: int) -> None:
        add_counts(self.counts, edited.counts)
        self.matched_rows.append(edited.matched_rows)
        if edited.rows is not None:
            self.replacements.append(BlockReplacement((blocks.ids[position],), new_block_count))
            self.rewritten_numbers.append(int(blocks.ordinals[position]))

    def finish(self, staged: Sequence[StagedSegment], table: StoredTable) -> RewriteOutcome:
        return RewriteOutcome(
            tuple(self.replacements),
            tuple(staged),
            table.segments().segments_containing(self.rewritten_numbers),
            counts=self.counts,
            matched_rows=union_row_numbers(self.matched_rows),
        )


def _inserted_rows(staged: Sequence[StagedSegment]) -> dict[str, int]:
    row_count = sum(segment.row_count for segment in staged)
    return {"inserted_rows": row_count} if row_count else {}


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
