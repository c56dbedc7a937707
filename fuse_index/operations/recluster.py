"""Blocks that overlap are sorted together, a step at a time, until no value is in more of them than it has to be.

Each step takes blocks that overlap, as many as memory allows, sorts their rows by the clustering key, and puts new
blocks in their place, indexed, in one commit. What it does not improve it leaves alone, and no row is sorted more than
a few times in a run, so a run comes to an end; what a killed run had committed need not be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering import overlaps, select_blocks
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.overlaps import Intervals, MaskArray, RankArray
from fuse_index.clustering.report import key_intervals
from fuse_index.clustering.select_blocks import BlockNumbers
from fuse_index.clustering.sorted_writer import SortedRun
from fuse_index.errors import InputError
from fuse_index.handle import TableHandle, move_on, writable_head
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask, partition_members
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import (
    Advice,
    BlockFrame,
    BlockReplacement,
    ColumnStatistics,
    Snapshot,
    WriteOptions,
    compute_statistics,
    stored_blocks,
)

DEFAULT_STEP_BLOCKS = 256
DEFAULT_STEP_BYTES = 512 << 20
"""Rows of a step in memory; they are there twice while they are sorted."""
MAX_STEP_BYTES = 2 << 30
"""A text column of Arrow's holds no more."""
DEFAULT_PASSES = 8


@dataclass(frozen=True, slots=True)
class ReclusterStep:
    """What one step did: ``read`` blocks with ``rows`` became ``written`` ones. ``number`` counts from 1."""

    number: int
    read: int
    written: int
    rows: int


ReclusterCallback = Callable[[ReclusterStep], None]


def recluster_table(
    table: TableHandle,
    depth: int = 2,
    step_blocks: int = DEFAULT_STEP_BLOCKS,
    step_bytes: int = DEFAULT_STEP_BYTES,
    passes: int = DEFAULT_PASSES,
    progress: ReclusterCallback | None = None,
) -> Snapshot:
    """Sort blocks of a table's head that overlap, moving the table with each step; see ``Maintenance.recluster``."""
    job, steps, unfinished = start_reclustering(table, depth, step_blocks, step_bytes, passes), 0, True
    head = job.table
    while unfinished:
        outcomes = [job.run(task) for task in job.plan_tasks()]
        unfinished = job.commit(outcomes)
        move_on(table, head, job.table)
        for step in recluster_steps(outcomes, steps):
            steps = step.number
            if progress is not None:
                progress(step)
    return table.snapshot


def start_reclustering(
    table: TableHandle,
    depth: int = 2,
    step_blocks: int = DEFAULT_STEP_BLOCKS,
    step_bytes: int = DEFAULT_STEP_BYTES,
    passes: int = DEFAULT_PASSES,
) -> ReclusterJob:
    """Start ``recluster_table`` as a job, whose tasks Spark's executors may run.

    Raises InputError for a number that is too small or too large, and where there is no clustering key; ReadOnly.
    """
    minima = {
        "depth": (depth, 1),
        "step_blocks": (step_blocks, 2),
        "step_bytes": (step_bytes, 1),
        "passes": (passes, 1),
    }
    for name, (value, minimum) in minima.items():
        if value < minimum:
            raise InputError(f"{name}={value!r}: give a whole number, {minimum} or more")
    if step_bytes > MAX_STEP_BYTES:
        raise InputError(
            f"step_bytes={step_bytes}: give {MAX_STEP_BYTES} at most, as a text column in memory holds no more"
        )
    head = writable_head(table)
    key = ClusterKey.from_snapshot(head.snapshot)
    if key is None:
        raise InputError("the table has no clustering key: give it one with " + Advice.call("cluster_by", [...]))
    return ReclusterJob(head, key, index_builders(head.snapshot, table.host), depth, step_blocks, step_bytes, passes)


@dataclass
class ReclusterJob:
    """The ``RewriteJob`` that sorts blocks which overlap.

    ``sort_counts``: how often this run sorted the rows of a block, by its id.

    Blocks that others add meanwhile are not in it, and are left for the next run: else there might be no end.
    """

    table: storage.StoredTable
    key: ClusterKey
    builders: tuple[IndexBuilder, ...]
    depth: int
    step_blocks: int
    step_bytes: int
    passes: int
    sort_counts: dict[str, int] = field(init=False)
    commit_id: str = ""

    def __post_init__(self) -> None:
        in_segments = self.table.segments().base_block_count  # the tail is for tiering
        self.sort_counts = dict.fromkeys(stored_blocks(self.table).ids[:in_segments], 0)

    def plan_tasks(self, max_tasks: int = 1) -> list[RewriteTask]:
        """Choose up to so many groups apart from each other, one for each task, the blocks that need it most first."""
        self.commit_id = storage.new_id()
        blocks = self._blocks_with_bounds()
        intervals = key_intervals(blocks, self.key)
        selectable = np.array(
            [self.sort_counts.get(block_id, self.passes) < self.passes for block_id in blocks.ids], np.bool_
        )
        tasks: list[RewriteTask] = []
        while len(tasks) < max_tasks and (group := self._select_group(blocks, intervals, selectable)) is not None:
            tasks.append(RewriteTask((tuple(group.tolist()),)))
            selectable[group] = False
        return tasks

    def _blocks_with_bounds(self) -> BlockFrame:
        return stored_blocks(self.table).prefetch(field.id for field in self.key.fields)

    def _select_group(
        self, blocks: BlockFrame, intervals: Sequence[Intervals], selectable: MaskArray
    ) -> BlockNumbers | None:
        """Choose, of the blocks that may be, those that need it most, these first; None if there are none.

        All are of one partition.
        """
        order = overlaps.lexicographic_intervals(intervals, certain=True) if self.key.method == "linear" else None
        for members in partition_members(self.table):
            eligible = np.zeros(len(blocks), np.bool_)
            eligible[members] = selectable[members]
            group = (
                select_blocks.select_curve_group(intervals, eligible, self.step_blocks)
                if order is None
                else select_blocks.select_overlapping(order, blocks.levels, eligible, self.depth, self.step_blocks)
            )
            if group is not None:
                return group
        return None

    def depth_of(self, task: RewriteTask) -> int | None:
        """How many blocks of a task meet at most between two values; None along a curve, where no such depth is."""
        if self.key.method != "linear":
            return None
        intervals = key_intervals(self._blocks_with_bounds(), self.key)
        order = overlaps.lexicographic_intervals(intervals, certain=True)
        return max_depth_between_ranks(order.take(np.array(task.block_numbers, np.int64)))

    def run(self, task: RewriteTask) -> RewriteOutcome:
        """Sort the rows of a task's blocks, or of as many of the first as there is room for.

        They are written if that improves anything; if not, the outcome names the blocks as unimproved.
        """
        table, options = self.table, WriteOptions.from_properties(self.table.snapshot.properties)
        blocks = self._blocks_with_bounds()
        tables = self._read_blocks(blocks, task.block_numbers)
        group = np.array(task.block_numbers[: len(tables)], np.int64)
        sorted_run = SortedRun.from_rows(pa.concat_tables(tables), self.key, options)
        del tables
        block_ids = tuple(blocks.ids[number] for number in np.sort(group).tolist())
        if not _improves(blocks, group, sorted_run, self.key):
            return RewriteOutcome(unimproved_ids=block_ids)
        with table.writer(self.builders, level=int(blocks.levels[group].max()) + 1) as writer:
            sorted_run.write(writer)
            staged = tuple(writer.finish())
            replacement = BlockReplacement(block_ids, writer.block_count)
        return RewriteOutcome((replacement,), staged, table.segments().segments_containing(group))

    def _read_blocks(self, blocks: BlockFrame, group: Sequence[int]) -> list[pa.Table]:
        """Read the rows of these blocks, or of as many of the first ones as there is room for: two at least."""
        tables: list[pa.Table] = []
        byte_count = 0
        for rows in prefetch_blocks(self.table, blocks, group):
            byte_count += rows.nbytes
            if len(tables) >= 2 and byte_count > self.step_bytes:
                break
            tables.append(rows)
        return tables

    def commit(self, outcomes: Sequence[RewriteOutcome]) -> bool:
        """Put the sorted blocks in place of those that overlapped. Raises Conflict, StorageError."""
        total = RewriteOutcome.combine(outcomes)
        self.sort_counts |= dict.fromkeys(total.unimproved_ids, self.passes)
        if not total.replacements:
            return bool(outcomes)
        blocks_before = stored_blocks(self.table)
        transaction = self.table.transaction(self.builders, self.commit_id)
        transaction.replace_blocks(
            total.replacements, total.staged, total.affected_segment_ids, name="recluster", same_rows=True
        )
        self.table = transaction.commit("recluster")
        self._count_sorts(total.replacements, blocks_before)
        return True

    def _count_sorts(self, replacements: Sequence[BlockReplacement], blocks_before: BlockFrame) -> None:
        """Give each new block the number of times that its rows have been sorted, at most that of any of its level.

        Which new block came of which group is not known, but its level is: one more than the highest of the group.
        """
        level_by_id = dict(zip(blocks_before.ids, blocks_before.levels.tolist(), strict=True))
        sort_counts_by_level: dict[int, int] = {}
        for replacement in replacements:
            level = 1 + max(level_by_id[block_id] for block_id in replacement.removed)
            sort_count = 1 + max(self.sort_counts.pop(block_id) for block_id in replacement.removed)
            sort_counts_by_level[level] = max(sort_counts_by_level.get(level, 0), sort_count)
        blocks = stored_blocks(self.table)
        for block_id, level in zip(blocks.ids, blocks.levels.tolist(), strict=True):
            if level in sort_counts_by_level and block_id not in level_by_id:
                self.sort_counts[block_id] = sort_counts_by_level[level]


def recluster_steps(outcomes: Sequence[RewriteOutcome], steps_before: int) -> list[ReclusterStep]:
    """The steps that these outcomes were, numbered on from those before."""
    improved = [outcome for outcome in outcomes if outcome.replacements]
    return [
        ReclusterStep(
            number,
            sum(len(replacement.removed) for replacement in outcome.replacements),
            sum(replacement.new_block_count for replacement in outcome.replacements),
            sum(segment.row_count for segment in outcome.staged),
        )
        for number, outcome in enumerate(improved, steps_before + 1)
    ]


def _improves(blocks: BlockFrame, group: BlockNumbers, run: SortedRun, key: ClusterKey) -> bool:
    """Whether bounds will tell the new blocks better apart than those that are there."""
    counts = np.concatenate([blocks.row_counts[group], np.diff(run.offsets)])
    both: list[Intervals] = []
    for path, leaf in zip(key.paths, key.fields, strict=True):
        kept = blocks.statistics(leaf.id) or ColumnStatistics.unknown(leaf.type, len(blocks))
        made = compute_statistics(run.sorted_values(path), run.offsets)
        both.append(overlaps.column_intervals(ColumnStatistics.concat([kept.take(group), made]), counts))
    old, new = np.arange(len(group)), np.arange(len(group), len(counts))
    if key.method != "linear":
        before, after = (
            np.mean([select_blocks.overlap_shares(column.take(part)) for column in both]) for part in (old, new)
        )
        return bool(after <= select_blocks.MAX_CURVE_WIDTH_RATIO * before)
    order = overlaps.lexicographic_intervals(both, certain=True)
    return max_depth_between_ranks(order.take(new)) < max_depth_between_ranks(order.take(old))


def max_depth_between_ranks(intervals: Intervals) -> int:
    """The most blocks that are met between two ranks."""
    turns: RankArray = np.bincount(intervals.low, minlength=1 + int(intervals.high.max(initial=0)))
    turns = turns - np.bincount(intervals.high, minlength=len(turns))
    return int(np.cumsum(turns).max(initial=0))
