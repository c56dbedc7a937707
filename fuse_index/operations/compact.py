"""Small blocks become larger ones, in their order, a group at a time; what is done is committed as it goes.

Only neighbours are joined, so rows stay where they are among the others, and what a killed run had committed need not
be done again. Memory holds two blocks that are being written and a few that are read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, pairwise

import numpy as np

import fuse_storage as storage
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import BlockReplacement, Snapshot, StagedSegment

_BlockSpan = tuple[int, int]

COMMIT_INTERVAL_ROWS = 20_000_000
"""What is done is committed after about so many rows."""


class CompactionMixin(TableHandle):
    """The part of ``fuse_index.Table`` that joins small blocks and segments."""

    def compact(self, progress: ProgressCallback | None = None) -> Snapshot:
        """Join neighbouring blocks of less than half the rows that a block may have, and segments that fit into one.

        Order is kept, and the new blocks are indexed. ``progress`` is told how many small blocks are done, and of how
        many. Nothing is committed if there is nothing to join. Raises Conflict if somebody replaced one of the blocks
        meanwhile: what was committed before is kept.
        """
        work = self.compacting()
        total = sum(end - start for start, end in work.remaining_spans())
        done = count(1)
        tick = (lambda: None) if progress is None else (lambda: progress(min(next(done), total), total))
        try:
            while portions := work.plan_tasks():
                work.commit_results([run_compact_task(portion, tick) for portion in portions])
            work.finalize()
        finally:
            self._move_to(work.table)
        return self.snapshot

    def compacting(self) -> CompactJob:
        """What ``compact`` does, as work of which portions may be done elsewhere."""
        self._begin_write()
        return CompactJob(self.stored, index_builders(self.snapshot, self.host))


def spans_to_compact(row_counts: Sequence[int], max_rows: int) -> list[_BlockSpan]:
    """Which neighbours to join: spans [start, end) of at least two blocks, each of less than half of ``limit`` rows."""
    spans: list[_BlockSpan] = []
    start = total = 0
    for place, rows in enumerate([*row_counts, max_rows]):
        small = rows * 2 < max_rows
        if not small or total + rows > max_rows:
            spans.append((start, place))
            start, total = (place, 0) if small else (place + 1, 0)
        total += rows if small else 0
    return [(start, end) for start, end in spans if end - start > 1]


@dataclass(frozen=True)
class CompactTask:
    """Groups of blocks to be joined, by their numbers in the snapshot. Picklable."""

    table: storage.StoredTable
    builders: tuple[IndexBuilder, ...]
    spans: tuple[_BlockSpan, ...]


@dataclass(frozen=True)
class CompactResult:
    """What a portion wrote; small and picklable. ``touched``: ids of the segments in which blocks are replaced."""

    replacements: tuple[BlockReplacement, ...]
    staged: tuple[StagedSegment, ...]
    affected_segment_ids: frozenset[str]


@dataclass
class CompactJob:
    """Which groups are left. ``table``: as the last commit left it; ``fruitless``: blocks that do not become fewer.
    Picklable.
    """

    table: storage.StoredTable
    builders: tuple[IndexBuilder, ...]
    unjoinable_ids: set[str] = field(default_factory=set)
    commit_id: str = ""

    def plan_tasks(self, max_tasks: int = 1) -> list[CompactTask]:
        """What is to be done before the next commit; nothing is left if there is none."""
        row_counts = self.table.blocks().row_counts
        spans = self.remaining_spans()
        rows = np.cumsum([int(row_counts[start:end].sum()) for start, end in spans])
        chosen = spans[: int(np.searchsorted(rows, COMMIT_INTERVAL_ROWS * max_tasks)) + 1]
        self.commit_id = storage.new_id()
        cuts = np.linspace(0, len(chosen), min(max_tasks, len(chosen)) + 1).astype(int).tolist()
        return [CompactTask(self.table, self.builders, tuple(chosen[start:end])) for start, end in pairwise(cuts)]

    def remaining_spans(self) -> list[_BlockSpan]:
        """Groups to be joined; not those that byte limits cut into as many blocks again."""
        blocks, limit = (
            self.table.blocks(),
            storage.WriteOptions.from_properties(self.table.snapshot.properties).block_rows,
        )
        return [
            (start, end)
            for start, end in spans_to_compact(blocks.row_counts.tolist(), limit)
            if blocks.ids[start] not in self.unjoinable_ids
        ]

    def commit_results(self, results: Sequence[CompactResult]) -> None:
        """Commit what the portions wrote, in their order. Raises Conflict, StorageError. A copy may do it a second
        time.
        """
        swaps = [swap for each in results for swap in each.replacements]
        if sum(swap.new_block_count for swap in swaps) >= sum(len(swap.removed) for swap in swaps):
            self.unjoinable_ids |= {swap.removed[0] for swap in swaps}
            return
        transaction = self.table.transaction(self.builders, self.commit_id)
        staged, touched = (
            [segment for each in results for segment in each.staged],
            {id for each in results for id in each.affected_segment_ids},
        )
        transaction.replace_blocks(swaps, staged, touched, name="compact", same_rows=True)
        self.table = transaction.commit("compact")

    def finalize(self) -> None:
        """Join small segments too."""
        self.table = self.table.transaction(self.builders).compact_segments().commit("compact")


def run_compact_task(task: CompactTask, on_block: Callable[[], None] = lambda: None) -> CompactResult:
    """Write the groups of a portion as one block each, or as few as byte limits allow; ``tick`` is told after each
    block.
    """
    table, places = task.table, [place for start, end in task.spans for place in range(start, end)]
    blocks = table.blocks().take(np.array(places, np.int64))
    ids, coming = iter(blocks.ids), prefetch_blocks(table, blocks, range(len(blocks)))
    swaps: list[BlockReplacement] = []
    with table.writer(task.builders) as writer:
        for start, end in task.spans:
            before = writer.block_count
            for rows in islice(coming, end - start):
                writer.write(rows)
                on_block()
            writer.end_block()
            swaps.append(BlockReplacement(tuple(islice(ids, end - start)), writer.block_count - before))
        return CompactResult(tuple(swaps), tuple(writer.finish()), table.segments().segments_containing(places))
