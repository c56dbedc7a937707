"""Small blocks become larger ones, in their order, a group at a time; what is done is committed as it goes.

Only neighbours are joined, in a partitioned table neighbours within a partition, so rows keep their order there; and
what a killed run had committed need not be done again. Memory holds two blocks that are being written and a few that
are read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, pairwise

import numpy as np

import fuse_storage as storage
from fuse_index.clustering.overlaps import MaskArray
from fuse_index.handle import TableHandle, move_on, resolve_evaluable, writable_head
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.rewrite_job import (
    RewriteOutcome,
    RewriteTask,
    RowNumbers,
    partition_members,
    rewrite_partition_limit,
)
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import BlockReplacement, Snapshot

_BlockSpan = tuple[int, int]

_COMMIT_INTERVAL_ROWS = 20_000_000
"""What is done is committed after about so many rows."""


def compact_table(
    table: TableHandle, progress: ProgressCallback | None = None, where: str | Predicate | None = None
) -> Snapshot:
    """Join small blocks and segments of a table's head, and move the table there; see ``Maintenance.compact``."""
    job = start_compaction(table, where)
    head = job.table
    total = sum(map(len, job.remaining_groups()))
    done = count(1)
    on_block = (lambda: None) if progress is None else (lambda: progress(min(next(done), total), total))
    try:
        while job.commit([job.run(task, on_block) for task in job.plan_tasks()]):
            pass
    finally:
        move_on(table, head, job.table)
    return table.snapshot


def start_compaction(table: TableHandle, where: str | Predicate | None = None) -> CompactJob:
    """Start ``compact_table`` as a job that Spark's executors may run. Raises ReadOnly, WhereError, OpaqueError."""
    head = writable_head(table)
    job = CompactJob(head, index_builders(head.snapshot, table.host))
    if (predicate := resolve_evaluable(where, head.snapshot, table.engine)) is not None:
        job.chosen_ids = frozenset(plan_scan(head, predicate, table.engine).blocks.ids)
    return job


def spans_to_compact(row_counts: Sequence[int], max_rows: int) -> list[_BlockSpan]:
    """Choose spans [start, end) of at least two neighbours to be joined, each of less than ``max_rows`` / 2 rows."""
    spans: list[_BlockSpan] = []
    start = total = 0
    for number, rows in enumerate([*row_counts, max_rows]):
        small = rows * 2 < max_rows
        if not small or total + rows > max_rows:
            spans.append((start, number))
            start, total = (number, 0) if small else (number + 1, 0)
        total += rows if small else 0
    return [(start, end) for start, end in spans if end - start > 1]


@dataclass
class CompactJob:
    """The ``RewriteJob`` that joins small blocks, some 20 million rows a commit and task, and at the end segments.

    A block of which more than a fifth was deleted is written anew, if only by itself.

    ``min_growth``: groups of fewer rows than so many times those of their largest block are left to grow, unless they
    fill half a block: so rows of a table that grows in small steps are not written again at each of them.
    ``chosen_ids``: blocks that may be rewritten; None for all.
    ``unjoinable_ids``: first blocks of groups that do not become fewer, since byte limits cut them as before.
    """

    table: storage.StoredTable
    builders: tuple[IndexBuilder, ...]
    min_growth: float = 1.0
    chosen_ids: frozenset[str] | None = None
    unjoinable_ids: set[str] = field(default_factory=set)
    commit_id: str = ""

    def plan_tasks(self, max_tasks: int = 1) -> list[RewriteTask]:
        """Divide the next groups among at most so many tasks. If there is none, segments are left to be joined."""
        row_counts = storage.stored_blocks(self.table).row_counts
        groups = self.remaining_groups()
        rows = np.cumsum([int(row_counts[list(group)].sum()) for group in groups])
        chosen = groups[: int(np.searchsorted(rows, _COMMIT_INTERVAL_ROWS * max_tasks)) + 1]
        self.commit_id = storage.new_id()
        cuts = np.linspace(0, len(chosen), min(max_tasks, len(chosen)) + 1).astype(int).tolist()
        return [RewriteTask(tuple(chosen[start:end])) for start, end in pairwise(cuts)]

    def remaining_groups(self) -> list[tuple[int, ...]]:
        """Blocks to be joined, by number; not those that byte limits cut into as many again, and none of the tail."""
        blocks = storage.stored_blocks(self.table)
        max_rows = storage.WriteOptions.from_properties(self.table.snapshot.properties).block_rows
        # One that is not chosen is full, as it were: nothing is joined across it.
        row_counts = np.where(self._are_chosen(blocks.ids), blocks.live_row_counts, max_rows)
        groups = [
            tuple(numbers[start:end].tolist())
            for numbers in partition_members(self.table)
            for start, end in spans_to_compact(row_counts[numbers].tolist(), max_rows)
            if blocks.ids[numbers[start]] not in self.unjoinable_ids
            and self._pays(blocks.live_row_counts[numbers[start:end]], max_rows)
        ]
        joined = {number for group in groups for number in group}
        worn = np.flatnonzero(storage.are_worn(blocks) & self._are_chosen(blocks.ids)).tolist()
        return sorted([*groups, *((number,) for number in worn if number not in joined)])

    def _are_chosen(self, block_ids: Sequence[str]) -> MaskArray:
        """Blocks that may be rewritten: bool, shape (blocks,)."""
        chosen = self.chosen_ids
        return np.array([chosen is None or block_id in chosen for block_id in block_ids], np.bool_)

    def _pays(self, row_counts: RowNumbers, max_rows: int) -> bool:
        """Whether blocks of so many rows are worth joining. ``row_counts``: int64, shape (blocks of a group,)."""
        rows = int(row_counts.sum())
        return rows >= self.min_growth * int(row_counts.max()) or rows * 2 >= max_rows

    def run(self, task: RewriteTask, on_block: Callable[[], None] = lambda: None) -> RewriteOutcome:
        """Write each group as one block, or as few as byte limits allow; call ``on_block`` for each block read."""
        table, block_numbers = self.table, task.block_numbers
        blocks = storage.stored_blocks(table).take(np.array(block_numbers, np.int64))
        block_ids, rows_of_blocks = iter(blocks.ids), prefetch_blocks(table, blocks, range(len(blocks)))
        replacements: list[BlockReplacement] = []
        with table.writer(self.builders, max_partitions=rewrite_partition_limit(table)) as writer:
            for group in task.groups:
                blocks_before = writer.block_count
                for rows in islice(rows_of_blocks, len(group)):
                    writer.write(rows)
                    on_block()
                writer.end_block()
                replaced = tuple(islice(block_ids, len(group)))
                replacements.append(BlockReplacement(replaced, writer.block_count - blocks_before))
            staged = tuple(writer.finish())
        return RewriteOutcome(tuple(replacements), staged, table.segments().segments_containing(block_numbers))

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Put the joined blocks in place of the small ones; join segments once no block is left.

        Raises Conflict, StorageError.
        """
        if not outcomes:
            self.table = self.table.transaction(self.builders).compact_segments().commit("compact")
            return False
        total = RewriteOutcome.combine(outcomes)
        removed = {block_id for replacement in total.replacements for block_id in replacement.removed}
        blocks = storage.stored_blocks(self.table)
        renews = not removed.isdisjoint(blocks.take(np.flatnonzero(storage.are_worn(blocks))).ids)
        if not renews and sum(replacement.new_block_count for replacement in total.replacements) >= len(removed):
            self.unjoinable_ids |= {replacement.removed[0] for replacement in total.replacements}
            return True
        transaction = self.table.transaction(self.builders, self.commit_id)
        transaction.replace_blocks(
            total.replacements, total.staged, total.affected_segment_ids, name="compact", same_rows=True
        )
        self.table = transaction.commit("compact")
        return True
