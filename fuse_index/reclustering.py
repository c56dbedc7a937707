"""Blocks that overlap are sorted together, a step at a time, until no value is in more of them than it has to be.

Each step takes blocks that overlap, as many as memory allows, sorts their rows by the clustering key, and puts new blocks in
their place, indexed, in one commit. What it does not improve it leaves alone, and no row is sorted more than a few times in a run,
so a run comes to an end; what a killed run had committed need not be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index import grouping, overlaps
from fuse_index.build import Builder, builders
from fuse_index.clustering import columns
from fuse_index.errors import InputError
from fuse_index.grouping import Numbers
from fuse_index.host import Host
from fuse_index.ordering import ClusterKey
from fuse_index.overlaps import Intervals, Ranks
from fuse_index.reading import read_ahead
from fuse_index.runs import Run
from fuse_storage import Blocks, ColumnStatistics, Limits, Snapshot, Swap, compute_statistics

if TYPE_CHECKING:
    from fuse_index.table import Table

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


class Reclustering:
    """The part of ``fuse_index.Table`` that sorts what is there by its clustering key."""

    if TYPE_CHECKING:
        stored: storage.Table
        host: Host

        @property
        def snapshot(self) -> Snapshot: ...
        def refresh(self) -> Table: ...
        def _writable(self) -> None: ...
        def _move(self, stored: storage.Table) -> Snapshot: ...

    def recluster(
        self, depth: int = 2, step_blocks: int = STEP_BLOCKS, step_bytes: int = STEP_BYTES, passes: int = PASSES,
        progress: Progress | None = None,
    ) -> Snapshot:  # fmt: skip
        """Sort blocks that overlap by the clustering key, until no value lies within the bounds of more than ``depth`` of them.

        Blocks of one value, and those that only touch, are not counted. Of a curve there is no such depth: there, blocks are
        sorted as long as they become narrower. A step holds up to ``step_blocks`` blocks and ``step_bytes`` of rows in memory, twice
        while it sorts, and is one commit; ``progress`` is told of each. No row is sorted more than ``passes`` times in a run.
        Rows change their order and nothing else, and new blocks are indexed. Nothing is committed if nothing is to be done.
        Raises InputError where there is no clustering key, Conflict if somebody replaced one of the blocks meanwhile: what was
        committed before is kept.
        """
        given = {"depth": (depth, 1), "step_blocks": (step_blocks, 2), "step_bytes": (step_bytes, 1), "passes": (passes, 1)}
        for name, (value, least) in given.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name}={value!r}: give a whole number, {least} or more")
        if step_bytes > MOST_BYTES:
            raise InputError(f"step_bytes={step_bytes}: give {MOST_BYTES} at most, as a text column in memory holds no more")
        self._writable()
        self.refresh()
        key = ClusterKey.of(self.snapshot)
        if key is None:
            raise InputError("the table has no clustering key: give it one with cluster_by([...])")
        work = _Work(self.stored, key, builders(self.snapshot, self.host), depth, step_blocks, step_bytes, passes, progress)
        try:
            work.run()
        finally:
            self._move(work.table)
        return self.snapshot


@dataclass
class _Work:
    """Sorts group after group. ``table``: as the last commit left it. ``sorted``: how often this run sorted the rows of a block.

    Blocks that others add meanwhile are not in it, and are left for the next run: else there might be no end.
    """

    table: storage.Table
    key: ClusterKey
    building: tuple[Builder, ...]
    depth: int
    step_blocks: int
    step_bytes: int
    passes: int
    progress: Progress | None
    sorted: dict[str, int] = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.sorted = dict.fromkeys(self.table.blocks().ids, 0)

    def run(self) -> None:
        while (group := self._next()) is not None:
            self._sort(group)

    def _next(self) -> Numbers | None:
        """The blocks of the next step, the most needed first."""
        blocks = self.table.blocks(statistics=[field.id for field in self.key.fields])
        found = columns(blocks, self.key)
        able = np.array([self.sorted.get(id, self.passes) < self.passes for id in blocks.ids], np.bool_)
        if self.key.method == "linear":
            order = overlaps.lexicographic(found, sure=True)
            return grouping.along_order(order, blocks.levels, able, self.depth, self.step_blocks)
        return grouping.along_curve(found, able, self.step_blocks)

    def _sort(self, group: Numbers) -> None:
        blocks = self.table.blocks()
        read = self._read(blocks, group.tolist())
        group = group[: len(read)]
        run = Run.of(pa.concat_tables(read), self.key, Limits.of(self.table.snapshot.properties))
        del read
        if not self._better(blocks, group, run):
            self.sorted |= {blocks.ids[number]: self.passes for number in group.tolist()}
            return
        level = int(blocks.levels[group].max()) + 1
        self._replace(blocks, np.sort(group), run, level)
        self.steps += 1

    def _replace(self, blocks: Blocks, group: Numbers, run: Run, level: int) -> None:
        touched = self.table.segments().holding(group)
        with self.table.writer(self.building, level=level) as writer:
            run.write(writer)
            staged = writer.finish()
        gone = tuple(blocks.ids[number] for number in group.tolist())
        swap = Swap(gone, writer.block_count)
        transaction = self.table.transaction(self.building).rewrite([swap], staged, touched, name="recluster", same_rows=True)
        self.table = transaction.commit("recluster")
        times = max(self.sorted.pop(id) for id in gone) + 1
        now, known = self.table.blocks(), set(blocks.ids)
        made = [id for id, of in zip(now.ids, now.levels.tolist(), strict=True) if of == level and id not in known]
        self.sorted |= dict.fromkeys(made, times)
        if self.progress is not None:
            self.progress(Step(self.steps + 1, len(gone), writer.block_count, len(run)))

    def _better(self, blocks: Blocks, group: Numbers, run: Run) -> bool:
        """Whether bounds will tell the new blocks better apart than those that are there."""
        counts = np.concatenate([blocks.row_counts[group], np.diff(run.offsets)])
        both: list[Intervals] = []
        for path, leaf in zip(self.key.paths, self.key.fields, strict=True):
            kept = blocks.statistics(leaf.id) or ColumnStatistics.unknown(leaf.type, len(blocks))
            made = compute_statistics(run.sorted(path), run.offsets)
            both.append(overlaps.column(ColumnStatistics.concat([kept.take(group), made]), counts))
        old, new = np.arange(len(group)), np.arange(len(group), len(counts))
        if self.key.method != "linear":
            before, after = (np.mean([grouping.width(column.take(part)) for column in both]) for part in (old, new))
            return bool(after <= grouping.GAIN * before)
        order = overlaps.lexicographic(both, sure=True)
        return deepest(order.take(new)) < deepest(order.take(old))

    def _read(self, blocks: Blocks, group: Sequence[int]) -> list[pa.Table]:
        """The rows of these blocks, or of as many of the first ones as there is room for: two at least."""
        found: list[pa.Table] = []
        size = 0
        for rows in read_ahead(self.table, blocks, group):
            size += rows.nbytes
            if len(found) >= 2 and size > self.step_bytes:
                break
            found.append(rows)
        return found


def deepest(found: Intervals) -> int:
    """The most blocks that are met between two ranks."""
    turns: Ranks = np.bincount(found.low, minlength=1 + int(found.high.max(initial=0)))
    turns = turns - np.bincount(found.high, minlength=len(turns))
    return int(np.cumsum(turns).max(initial=0))
