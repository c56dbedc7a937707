"""The job that applies an edit to all blocks that may hold rows of its condition.

Blocks that cannot hold a row of the condition stay, blocks that hold no other may go unread, and only the rest is
rewritten. Where others moved these rows meanwhile and changed none, they are found again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.operations.rewrite_job import (
    RewriteOutcome,
    RewriteTask,
    RowNumbers,
    add_counts,
    rewrite_partition_limit,
    union_row_numbers,
)
from fuse_index.operations.row_edits import (
    EditedBlock,
    MarkedRows,
    MarksRows,
    NewRows,
    RowCondition,
    RowEdit,
    stage_rows,
)
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_storage import (
    DELETE_MODES,
    BlockFrame,
    BlockReplacement,
    Conflict,
    SchemaChange,
    StagedSegment,
    StoredTable,
    read_live_rows,
)

_RowMask = npt.NDArray[np.bool_]

MAX_REPLANS = 5
"""How often a change whose rows were moved finds them again, before it is a Conflict."""


@dataclass
class DmlJob:
    """The ``RewriteJob`` of deletes, updates, overwrites and merges: one commit. Picklable if its edit is.

    ``condition``: on which rows it depends; rows of it that others add meanwhile are a Conflict. ``edit``: None if no
    block is to be rewritten. ``drop_full_blocks``: blocks that are known to hold rows of the condition alone go unread.
    ``unmatched_rows``: from numbers of the rows of a merge's source that matched, int64, ascending, to the rows that
    are added because they did not. ``task_count``: how many tasks are planned if nothing else is said.
    ``schema_change``: the step that gives the table the columns of the rows that come, in the same commit. ``replans``:
    how often it finds its rows again where others moved them and changed none, as tiering and compaction do.
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
    replans: int = 0

    def plan_tasks(self, max_tasks: int | None = None) -> list[RewriteTask]:
        """Divide the blocks that may hold rows of the condition among at most so many tasks, neighbours together."""
        if self.edit is None:
            return []
        plan, dropped = self.plan_blocks()
        if self.drop_full_blocks:
            self._drop_blocks(dropped)
        block_numbers = plan.blocks.ordinals
        shares = np.array_split(block_numbers, max(1, min(max_tasks or self.task_count, len(block_numbers))))
        return [RewriteTask(tuple((number,) for number in share.tolist())) for share in shares if len(share)]

    def plan_blocks(self) -> tuple[ScanPlan[BlockFrame], ScanPlan[BlockFrame]]:
        """Plan which blocks it reads, and which it drops without reading them."""
        plan = self._plan_scan(self.table)
        if self.edit is None:
            none = plan.take(np.zeros(0, np.int64))
            return none, none
        full = plan.always_matching_blocks & self.drop_full_blocks
        return plan.take(np.flatnonzero(~full)), plan.take(np.flatnonzero(full))

    def _drop_blocks(self, plan: ScanPlan[BlockFrame]) -> None:
        """Note blocks that go without being read."""
        blocks = plan.blocks
        self.dropped = RewriteOutcome(
            tuple(BlockReplacement((block_id,), 0) for block_id in blocks.ids),
            affected_segment_ids=self.table.segments().segments_containing(blocks.ordinals),
            counts={"deleted_rows": int(blocks.live_row_counts.sum())} if len(blocks) else {},
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

        Of those of which few rows go or change, these are marked by a deletion vector, where the table wants that, and
        come in blocks of their own. Raises as ``run``.
        """
        table, outcome, marked = self.evolved, _OutcomeBuilder(), dict[int, tuple[str, _RowMask]]()
        key, limit = ClusterKey.from_snapshot(table.snapshot), rewrite_partition_limit(table)
        with (
            table.writer(self.builders, max_partitions=limit) as writer,
            NewRows(table.writer(self.builders, max_partitions=limit), key) as new_rows,
        ):
            for blocks, position, edit in edits:
                if (rows := self._rows_to_mark(blocks, position, edit)) is not None:
                    outcome.add_counts(rows.counts, rows.matched_rows)
                    if rows.gone.any():
                        marked[int(blocks.ordinals[position])] = blocks.ids[position], rows.gone
                        if rows.read_new is not None:
                            new_rows.write(rows.read_new())
                    continue
                edited = edit.apply(read_live_rows(table, blocks, position, table.snapshot.schema.names))
                blocks_before = writer.block_count
                if edited.rows is not None:
                    writer.write(edited.rows)
                    writer.end_block()
                outcome.add(blocks, position, edited, writer.block_count - blocks_before)
            staged, added = writer.finish(), new_rows.finish()
        rewritten = outcome.finish(staged, added, self.table)
        return RewriteOutcome.combine([rewritten, self._stage_marked(marked)]) if marked else rewritten

    def _rows_to_mark(self, blocks: BlockFrame, position: int, edit: RowEdit) -> MarkedRows | None:
        """The rows of a block that go by a deletion vector; None if the block is to be written anew."""
        if not isinstance(edit, MarksRows) or self.table.snapshot.properties.get("delete_mode") != DELETE_MODES[1]:
            return None
        if self.schema_change is not None or blocks.in_tail[position] or blocks.foreign.mask[position]:
            return None
        rows = edit.mark(self.table, blocks, position)
        left = int(blocks.live_row_counts[position]) - int(np.count_nonzero(rows.gone))
        return None if storage.is_worn(int(blocks.row_counts[position]), left) else rows

    def _stage_marked(self, marked: Mapping[int, tuple[str, _RowMask]]) -> RewriteOutcome:
        """Write deletion vectors for blocks. ``marked``: by block number, its id and a mask of the rows to delete."""
        deleted = {}
        for number, (_, rows) in marked.items():
            live = storage.live_among(self.table.blocks(), number)
            deleted[number] = rows if live is None else rows | ~live
        return RewriteOutcome(
            tuple(BlockReplacement((block_id,), 1) for block_id, _ in marked.values()),
            tuple(storage.stage_deletions(self.table, self.builders, deleted)),
            self.table.segments().segments_containing(list(marked)),
        )

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Commit, once and for all; True if rows were moved meanwhile, and are to be found again before that.

        Raises Conflict, StorageError.
        """
        try:
            self._commit(outcomes)
        except Conflict:
            head = self.table.refresh()
            if not self.replans or head is self.table or not self._leaves_rows(head):
                raise
            self.table, self.replans = head, self.replans - 1
            return True
        return False

    def _commit(self, outcomes: Sequence[RewriteOutcome]) -> None:
        total = RewriteOutcome.combine([self.dropped, insertion(self.added), *outcomes])
        if self.unmatched_rows is not None:
            unmatched = stage_rows(self.evolved, self.builders, self.unmatched_rows(total.matched_rows))
            total = RewriteOutcome.combine([total, insertion(unmatched)])
        transaction = self.table.transaction(self.builders, self.commit_id)
        if self.schema_change is not None and (total.replacements or total.added):
            transaction.evolve_schema(self.schema_change)
        transaction.replace_blocks(
            total.replacements, total.staged, total.affected_segment_ids, self._conflicting_blocks, self.operation
        )
        transaction.append(total.added)
        committed = transaction.commit(self.operation, summary=total.counts)
        if total.replacements or total.added:
            self.table = committed

    def _leaves_rows(self, head: StoredTable) -> bool:
        """Say whether each commit up to ``head`` moved rows alone, or added some that the condition is not about."""
        before = self.table.snapshot
        for _, after in head.commits_since(before)():
            if (after.schema_id, after.schemas) != (before.schema_id, before.schemas):
                return False
            if not storage.keeps_rows(before, after):
                known, found = (set(head.at_entry(head.entry, state).blocks().ids) for state in (before, after))
                if known - found or (found - known) & self._blocks_that_matter(head.at_entry(head.entry, after)):
                    return False
            before = after
        return True

    def _plan_scan(self, table: StoredTable) -> ScanPlan[BlockFrame]:
        return plan_scan(evolved_table(table, self.schema_change), self.condition.predicate, self.condition.engine)

    def _conflicting_blocks(self, snapshot_id: str) -> Collection[str]:
        """Blocks of a later snapshot that may hold rows that matter."""
        return self._blocks_that_matter(self.table.at(snapshot_id))

    def _blocks_that_matter(self, table: StoredTable) -> frozenset[str]:
        return frozenset(self._plan_scan(table).blocks.ids)


@dataclass
class _OutcomeBuilder:
    """What becomes of the blocks of one task, one after the other."""

    replacements: list[BlockReplacement] = field(default_factory=list)
    rewritten_numbers: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    matched_rows: list[RowNumbers] = field(default_factory=list)

    def add_counts(self, counts: Mapping[str, int], matched_rows: RowNumbers) -> None:
        add_counts(self.counts, counts)
        self.matched_rows.append(matched_rows)

    def add(self, blocks: BlockFrame, position: int, edited: EditedBlock, new_block_count: int) -> None:
        self.add_counts(edited.counts, edited.matched_rows)
        if edited.rows is not None:
            self.replacements.append(BlockReplacement((blocks.ids[position],), new_block_count))
            self.rewritten_numbers.append(int(blocks.ordinals[position]))

    def finish(
        self, staged: Sequence[StagedSegment], added: Sequence[StagedSegment], table: StoredTable
    ) -> RewriteOutcome:
        return RewriteOutcome(
            tuple(self.replacements),
            tuple(staged),
            table.segments().segments_containing(self.rewritten_numbers),
            counts=self.counts,
            matched_rows=union_row_numbers(self.matched_rows),
            added=tuple(added),
        )


def insertion(staged: Sequence[StagedSegment]) -> RewriteOutcome:
    """The outcome of rows that are added, and take no other's place."""
    row_count = sum(segment.row_count for segment in staged)
    return RewriteOutcome(counts={"inserted_rows": row_count} if row_count else {}, added=tuple(staged))
