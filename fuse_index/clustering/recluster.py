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
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.query.prefetch import prefetch_blocks
from fuse_storage import (
    BlockFrame,
    BlockReplacement,
    ColumnStatistics,
    Snapshot,
    StagedSegment,
    WriteOptions,
    compute_statistics,
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


class ReclusteringMixin(TableHandle):
    """The part of ``fuse_index.Table`` that sorts what is there by its clustering key."""

    def recluster(
        self,
        depth: int = 2,
        step_blocks: int = DEFAULT_STEP_BLOCKS,
        step_bytes: int = DEFAULT_STEP_BYTES,
        passes: int = DEFAULT_PASSES,
        progress: ReclusterCallback | None = None,
    ) -> Snapshot:
        """Sort blocks that overlap by the clustering key, until no value lies within the bounds of more than ``depth``
        of them.

        Blocks of one value, and those that only touch, are not counted. Of a curve there is no such depth: there,
        blocks are sorted as long as they become narrower. A step holds up to ``step_blocks`` blocks and ``step_bytes``
        of rows in memory, twice while it sorts, and is one commit; ``progress`` is told of each. No row is sorted more
        than ``passes`` times in a run. Rows change their order and nothing else, and new blocks are indexed. Nothing is
        committed if nothing is to be done. Raises InputError where there is no clustering key, Conflict if somebody
        replaced one of the blocks meanwhile: what was committed before is kept.
        """
        work, steps = self.reclustering(depth, step_blocks, step_bytes, passes), 0
        while portions := work.plan_tasks():
            done = [run_recluster_task(portion) for portion in portions]
            work.commit_results(done)
            self._move_to(work.table)
            for step in recluster_steps(done, steps):
                steps = step.number
                if progress is not None:
                    progress(step)
        return self.snapshot

    def reclustering(
        self,
        depth: int = 2,
        step_blocks: int = DEFAULT_STEP_BLOCKS,
        step_bytes: int = DEFAULT_STEP_BYTES,
        passes: int = DEFAULT_PASSES,
    ) -> ReclusterJob:
        """What ``recluster`` does, as work of which portions may be done elsewhere."""
        given = {
            "depth": (depth, 1),
            "step_blocks": (step_blocks, 2),
            "step_bytes": (step_bytes, 1),
            "passes": (passes, 1),
        }
        for name, (value, least) in given.items():
            if value < least:
                raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
        if step_bytes > MAX_STEP_BYTES:
            raise InputError(
                f"step_bytes={step_bytes}: give {MAX_STEP_BYTES} at most, as a text column in memory holds no more"
            )
        self._begin_write()
        key = ClusterKey.from_snapshot(self.snapshot)
        if key is None:
            raise InputError("the table has no clustering key: give it one with cluster_by([...])")
        return ReclusterJob(
            self.stored, key, index_builders(self.snapshot, self.host), depth, step_blocks, step_bytes, passes
        )


@dataclass(frozen=True)
class ReclusterTask:
    """Blocks that overlap, by their numbers in the snapshot, the most needed first. Picklable."""

    table: storage.StoredTable
    key: ClusterKey
    builders: tuple[IndexBuilder, ...]
    block_numbers: tuple[int, ...]
    step_bytes: int


@dataclass(frozen=True)
class ReclusterResult:
    """What became of a portion; small and picklable.

    ``blocks``: ids of those that were read, ``rows`` in number. ``swap``: None if sorting them improves nothing.
    ``level``: that of the new ones. ``touched``: ids of the segments in which blocks are replaced.
    """

    block_ids: tuple[str, ...]
    rows: int
    replacement: BlockReplacement | None = None
    staged: tuple[StagedSegment, ...] = ()
    affected_segment_ids: frozenset[str] = frozenset()
    level: int = 0


@dataclass
class ReclusterJob:
    """Chooses groups of blocks to be sorted. ``table``: as the last commit left it. ``sorted``: how often this run
    sorted the rows of a block. Picklable.

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
        self.sort_counts = dict.fromkeys(self.table.blocks().ids, 0)

    def plan_tasks(self, max_tasks: int = 1) -> list[ReclusterTask]:
        """What is to be done before the next commit, up to so many groups apart from each other; nothing is left if
        there is none.
        """
        self.commit_id = storage.new_id()
        blocks = self.table.blocks(statistics=[field.id for field in self.key.fields])
        found = key_intervals(blocks, self.key)
        able = np.array([self.sort_counts.get(id, self.passes) < self.passes for id in blocks.ids], np.bool_)
        made: list[ReclusterTask] = []
        while len(made) < max_tasks and (group := self._select_group(blocks, found, able)) is not None:
            made.append(ReclusterTask(self.table, self.key, self.builders, tuple(group.tolist()), self.step_bytes))
            able[group] = False
        return made

    def _select_group(self, blocks: BlockFrame, found: Sequence[Intervals], able: MaskArray) -> BlockNumbers | None:
        """Of the blocks that may be chosen, those that most need it first."""
        if self.key.method == "linear":
            order = overlaps.lexicographic_intervals(found, certain=True)
            return select_blocks.select_overlapping(order, blocks.levels, able, self.depth, self.step_blocks)
        return select_blocks.select_curve_group(found, able, self.step_blocks)

    def commit_results(self, results: Sequence[ReclusterResult]) -> None:
        """Commit what the portions wrote, in their order. Raises Conflict, StorageError. A copy may do it a second
        time.
        """
        self.sort_counts |= {id: self.passes for each in results if each.replacement is None for id in each.block_ids}
        better = [each for each in results if each.replacement is not None]
        if not better:
            return
        transaction, known = self.table.transaction(self.builders, self.commit_id), set(self.table.blocks().ids)
        staged, touched = (
            [segment for each in better for segment in each.staged],
            {id for each in better for id in each.affected_segment_ids},
        )
        transaction.replace_blocks(
            [each.replacement for each in better if each.replacement], staged, touched, name="recluster", same_rows=True
        )
        self.table = transaction.commit("recluster")
        times: dict[int, int] = {}
        for each in better:
            times[each.level] = max(times.get(each.level, 0), *(self.sort_counts.pop(id) + 1 for id in each.block_ids))
        now = self.table.blocks()
        new = {
            id: times[level]
            for id, level in zip(now.ids, now.levels.tolist(), strict=True)
            if level in times and id not in known
        }
        self.sort_counts |= new


def run_recluster_task(task: ReclusterTask) -> ReclusterResult:
    """Sort the rows of a portion's blocks, or of as many of the first as there is room for, and write them if that
    improves anything.
    """
    table, options = task.table, WriteOptions.from_properties(task.table.snapshot.properties)
    blocks = table.blocks(statistics=[field.id for field in task.key.fields])
    read = _read_blocks(table, blocks, task.block_numbers, task.step_bytes)
    group = np.array(task.block_numbers[: len(read)], np.int64)
    run = SortedRun.from_rows(pa.concat_tables(read), task.key, options)
    del read
    ids = tuple(blocks.ids[number] for number in np.sort(group).tolist())
    if not _improves(blocks, group, run, task.key):
        return ReclusterResult(ids, len(run))
    level = int(blocks.levels[group].max()) + 1
    with table.writer(task.builders, level=level) as writer:
        run.write(writer)
        staged = tuple(writer.finish())
        swap = BlockReplacement(ids, writer.block_count)
    return ReclusterResult(ids, len(run), swap, staged, table.segments().segments_containing(group), level)


def recluster_steps(results: Sequence[ReclusterResult], steps_before: int) -> list[ReclusterStep]:
    """The steps that were done, ``before`` of them earlier."""
    better = [(each, each.replacement) for each in results if each.replacement is not None]
    return [
        ReclusterStep(number, len(each.block_ids), swap.new_block_count, each.rows)
        for number, (each, swap) in enumerate(better, steps_before + 1)
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


def _read_blocks(
    table: storage.StoredTable, blocks: BlockFrame, group: Sequence[int], step_bytes: int
) -> list[pa.Table]:
    """The rows of these blocks, or of as many of the first ones as there is room for: two at least."""
    found: list[pa.Table] = []
    size = 0
    for rows in prefetch_blocks(table, blocks, group):
        size += rows.nbytes
        if len(found) >= 2 and size > step_bytes:
            break
        found.append(rows)
    return found


def max_depth_between_ranks(intervals: Intervals) -> int:
    """The most blocks that are met between two ranks."""
    turns: RankArray = np.bincount(intervals.low, minlength=1 + int(intervals.high.max(initial=0)))
    turns = turns - np.bincount(intervals.high, minlength=len(turns))
    return int(np.cumsum(turns).max(initial=0))
