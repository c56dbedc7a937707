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
from fuse_index.clustering.overlaps import Flags, Intervals, Ranks
from fuse_index.clustering.report import columns
from fuse_index.clustering.select_blocks import Numbers
from fuse_index.clustering.sorted_writer import Run
from fuse_index.errors import InputError
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import Builder, builders
from fuse_index.query.prefetch import read_ahead
from fuse_storage import Blocks, ColumnStatistics, Limits, Snapshot, StagedSegment, Swap, compute_statistics

STEP_BLOCKS = 256
STEP_BYTES = 512 << 20
"""Rows of a step in memory; they are there twice while they are sorted."""
MOST_BYTES = 2 << 30
"""A text column of Arrow's holds no more."""
PASSES = 8


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did: ``read`` blocks with ``rows`` became ``written`` ones. ``number`` counts from 1."""

    number: int
    read: int
    written: int
    rows: int


Progress = Callable[[Step], None]


class Reclustering(TableHandle):
    """The part of ``fuse_index.Table`` that sorts what is there by its clustering key."""

    def recluster(
        self,
        depth: int = 2,
        step_blocks: int = STEP_BLOCKS,
        step_bytes: int = STEP_BYTES,
        passes: int = PASSES,
        progress: Progress | None = None,
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
        while portions := work.portions():
            done = [sort(portion) for portion in portions]
            work.take(done)
            self._move_to(work.table)
            for step in told(done, steps):
                steps = step.number
                if progress is not None:
                    progress(step)
        return self.snapshot

    def reclustering(
        self, depth: int = 2, step_blocks: int = STEP_BLOCKS, step_bytes: int = STEP_BYTES, passes: int = PASSES
    ) -> Sorter:
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
        if step_bytes > MOST_BYTES:
            raise InputError(
                f"step_bytes={step_bytes}: give {MOST_BYTES} at most, as a text column in memory holds no more"
            )
        self._begin_write()
        key = ClusterKey.of(self.snapshot)
        if key is None:
            raise InputError("the table has no clustering key: give it one with cluster_by([...])")
        return Sorter(self.stored, key, builders(self.snapshot, self.host), depth, step_blocks, step_bytes, passes)


@dataclass(frozen=True)
class Portion:
    """Blocks that overlap, by their numbers in the snapshot, the most needed first. Picklable."""

    table: storage.Table
    key: ClusterKey
    building: tuple[Builder, ...]
    group: tuple[int, ...]
    step_bytes: int


@dataclass(frozen=True)
class Sorted:
    """What became of a portion; small and picklable.

    ``blocks``: ids of those that were read, ``rows`` in number. ``swap``: None if sorting them improves nothing.
    ``level``: that of the new ones. ``touched``: ids of the segments in which blocks are replaced.
    """

    blocks: tuple[str, ...]
    rows: int
    swap: Swap | None = None
    staged: tuple[StagedSegment, ...] = ()
    touched: frozenset[str] = frozenset()
    level: int = 0


@dataclass
class Sorter:
    """Chooses groups of blocks to be sorted. ``table``: as the last commit left it. ``sorted``: how often this run
    sorted the rows of a block. Picklable.

    Blocks that others add meanwhile are not in it, and are left for the next run: else there might be no end.
    """

    table: storage.Table
    key: ClusterKey
    building: tuple[Builder, ...]
    depth: int
    step_blocks: int
    step_bytes: int
    passes: int
    sorted: dict[str, int] = field(init=False)
    commit_id: str = ""

    def __post_init__(self) -> None:
        self.sorted = dict.fromkeys(self.table.blocks().ids, 0)

    def portions(self, pieces: int = 1) -> list[Portion]:
        """What is to be done before the next commit, up to so many groups apart from each other; nothing is left if
        there is none.
        """
        self.commit_id = storage.new_id()
        blocks = self.table.blocks(statistics=[field.id for field in self.key.fields])
        found = columns(blocks, self.key)
        able = np.array([self.sorted.get(id, self.passes) < self.passes for id in blocks.ids], np.bool_)
        made: list[Portion] = []
        while len(made) < pieces and (group := self._group(blocks, found, able)) is not None:
            made.append(Portion(self.table, self.key, self.building, tuple(group.tolist()), self.step_bytes))
            able[group] = False
        return made

    def _group(self, blocks: Blocks, found: Sequence[Intervals], able: Flags) -> Numbers | None:
        """Of the blocks that may be chosen, those that most need it first."""
        if self.key.method == "linear":
            order = overlaps.lexicographic(found, sure=True)
            return select_blocks.along_order(order, blocks.levels, able, self.depth, self.step_blocks)
        return select_blocks.along_curve(found, able, self.step_blocks)

    def take(self, done: Sequence[Sorted]) -> None:
        """Commit what the portions wrote, in their order. Raises Conflict, StorageError. A copy may do it a second
        time.
        """
        self.sorted |= {id: self.passes for each in done if each.swap is None for id in each.blocks}
        better = [each for each in done if each.swap is not None]
        if not better:
            return
        transaction, known = self.table.transaction(self.building, self.commit_id), set(self.table.blocks().ids)
        staged, touched = (
            [segment for each in better for segment in each.staged],
            {id for each in better for id in each.touched},
        )
        transaction.rewrite(
            [each.swap for each in better if each.swap], staged, touched, name="recluster", same_rows=True
        )
        self.table = transaction.commit("recluster")
        times: dict[int, int] = {}
        for each in better:
            times[each.level] = max(times.get(each.level, 0), *(self.sorted.pop(id) + 1 for id in each.blocks))
        now = self.table.blocks()
        new = {
            id: times[level]
            for id, level in zip(now.ids, now.levels.tolist(), strict=True)
            if level in times and id not in known
        }
        self.sorted |= new


def sort(portion: Portion) -> Sorted:
    """Sort the rows of a portion's blocks, or of as many of the first as there is room for, and write them if that
    improves anything.
    """
    table, limits = portion.table, Limits.of(portion.table.snapshot.properties)
    blocks = table.blocks(statistics=[field.id for field in portion.key.fields])
    read = _read(table, blocks, portion.group, portion.step_bytes)
    group = np.array(portion.group[: len(read)], np.int64)
    run = Run.of(pa.concat_tables(read), portion.key, limits)
    del read
    ids = tuple(blocks.ids[number] for number in np.sort(group).tolist())
    if not _better(blocks, group, run, portion.key):
        return Sorted(ids, len(run))
    level = int(blocks.levels[group].max()) + 1
    with table.writer(portion.building, level=level) as writer:
        run.write(writer)
        staged = tuple(writer.finish())
        swap = Swap(ids, writer.block_count)
    return Sorted(ids, len(run), swap, staged, table.segments().holding(group), level)


def told(done: Sequence[Sorted], before: int) -> list[Step]:
    """The steps that were done, ``before`` of them earlier."""
    better = [(each, each.swap) for each in done if each.swap is not None]
    return [
        Step(number, len(each.blocks), swap.made, each.rows) for number, (each, swap) in enumerate(better, before + 1)
    ]


def _better(blocks: Blocks, group: Numbers, run: Run, key: ClusterKey) -> bool:
    """Whether bounds will tell the new blocks better apart than those that are there."""
    counts = np.concatenate([blocks.row_counts[group], np.diff(run.offsets)])
    both: list[Intervals] = []
    for path, leaf in zip(key.paths, key.fields, strict=True):
        kept = blocks.statistics(leaf.id) or ColumnStatistics.unknown(leaf.type, len(blocks))
        made = compute_statistics(run.sorted(path), run.offsets)
        both.append(overlaps.column(ColumnStatistics.concat([kept.take(group), made]), counts))
    old, new = np.arange(len(group)), np.arange(len(group), len(counts))
    if key.method != "linear":
        before, after = (np.mean([select_blocks.width(column.take(part)) for column in both]) for part in (old, new))
        return bool(after <= select_blocks.GAIN * before)
    order = overlaps.lexicographic(both, sure=True)
    return deepest(order.take(new)) < deepest(order.take(old))


def _read(table: storage.Table, blocks: Blocks, group: Sequence[int], step_bytes: int) -> list[pa.Table]:
    """The rows of these blocks, or of as many of the first ones as there is room for: two at least."""
    found: list[pa.Table] = []
    size = 0
    for rows in read_ahead(table, blocks, group):
        size += rows.nbytes
        if len(found) >= 2 and size > step_bytes:
            break
        found.append(rows)
    return found


def deepest(found: Intervals) -> int:
    """The most blocks that are met between two ranks."""
    turns: Ranks = np.bincount(found.low, minlength=1 + int(found.high.max(initial=0)))
    turns = turns - np.bincount(found.high, minlength=len(turns))
    return int(np.cumsum(turns).max(initial=0))
