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
from fuse_index.indexes.builder import Builder, builders
from fuse_index.query.prefetch import read_ahead
from fuse_storage import Snapshot, StagedSegment, Swap

Span = tuple[int, int]
Progress = Callable[[int, int], None]

COMMIT_ROWS = 20_000_000
"""What is done is committed after about so many rows."""


class Compaction(TableHandle):
    """The part of ``fuse_index.Table`` that joins small blocks and segments."""

    def compact(self, progress: Progress | None = None) -> Snapshot:
        """Join neighbouring blocks of less than half the rows that a block may have, and segments that fit into one.

        Order is kept, and the new blocks are indexed. ``progress`` is told how many small blocks are done, and of how
        many. Nothing is committed if there is nothing to join. Raises Conflict if somebody replaced one of the blocks
        meanwhile: what was committed before is kept.
        """
        work = self.compacting()
        total = sum(end - start for start, end in work.left())
        done = count(1)
        tick = (lambda: None) if progress is None else (lambda: progress(min(next(done), total), total))
        try:
            while portions := work.portions():
                work.take([join(portion, tick) for portion in portions])
            work.finish()
        finally:
            self._move_to(work.table)
        return self.snapshot

    def compacting(self) -> Joiner:
        """What ``compact`` does, as work of which portions may be done elsewhere."""
        self._begin_write()
        return Joiner(self.stored, builders(self.snapshot, self.host))


def groups(row_counts: Sequence[int], limit: int) -> list[Span]:
    """Which neighbours to join: spans [start, end) of at least two blocks, each of less than half of ``limit`` rows."""
    spans: list[Span] = []
    start = total = 0
    for place, rows in enumerate([*row_counts, limit]):
        small = rows * 2 < limit
        if not small or total + rows > limit:
            spans.append((start, place))
            start, total = (place, 0) if small else (place + 1, 0)
        total += rows if small else 0
    return [(start, end) for start, end in spans if end - start > 1]


@dataclass(frozen=True)
class Portion:
    """Groups of blocks to be joined, by their numbers in the snapshot. Picklable."""

    table: storage.Table
    building: tuple[Builder, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Joined:
    """What a portion wrote; small and picklable. ``touched``: ids of the segments in which blocks are replaced."""

    swaps: tuple[Swap, ...]
    staged: tuple[StagedSegment, ...]
    touched: frozenset[str]


@dataclass
class Joiner:
    """Which groups are left. ``table``: as the last commit left it; ``fruitless``: blocks that do not become fewer.
    Picklable.
    """

    table: storage.Table
    building: tuple[Builder, ...]
    fruitless: set[str] = field(default_factory=set)
    commit_id: str = ""

    def portions(self, pieces: int = 1) -> list[Portion]:
        """What is to be done before the next commit; nothing is left if there is none."""
        row_counts = self.table.blocks().row_counts
        spans = self.left()
        rows = np.cumsum([int(row_counts[start:end].sum()) for start, end in spans])
        chosen = spans[: int(np.searchsorted(rows, COMMIT_ROWS * pieces)) + 1]
        self.commit_id = storage.new_id()
        cuts = np.linspace(0, len(chosen), min(pieces, len(chosen)) + 1).astype(int).tolist()
        return [Portion(self.table, self.building, tuple(chosen[start:end])) for start, end in pairwise(cuts)]

    def left(self) -> list[Span]:
        """Groups to be joined; not those that byte limits cut into as many blocks again."""
        blocks, limit = self.table.blocks(), storage.Limits.of(self.table.snapshot.properties).block_rows
        return [
            (start, end)
            for start, end in groups(blocks.row_counts.tolist(), limit)
            if blocks.ids[start] not in self.fruitless
        ]

    def take(self, done: Sequence[Joined]) -> None:
        """Commit what the portions wrote, in their order. Raises Conflict, StorageError. A copy may do it a second
        time.
        """
        swaps = [swap for each in done for swap in each.swaps]
        if sum(swap.made for swap in swaps) >= sum(len(swap.removed) for swap in swaps):
            self.fruitless |= {swap.removed[0] for swap in swaps}
            return
        transaction = self.table.transaction(self.building, self.commit_id)
        staged, touched = (
            [segment for each in done for segment in each.staged],
            {id for each in done for id in each.touched},
        )
        transaction.rewrite(swaps, staged, touched, name="compact", same_rows=True)
        self.table = transaction.commit("compact")

    def finish(self) -> None:
        """Join small segments too."""
        self.table = self.table.transaction(self.building).gather().commit("compact")


def join(portion: Portion, tick: Callable[[], None] = lambda: None) -> Joined:
    """Write the groups of a portion as one block each, or as few as byte limits allow; ``tick`` is told after each
    block.
    """
    table, places = portion.table, [place for start, end in portion.spans for place in range(start, end)]
    blocks = table.blocks().take(np.array(places, np.int64))
    ids, coming = iter(blocks.ids), read_ahead(table, blocks, range(len(blocks)))
    swaps: list[Swap] = []
    with table.writer(portion.building) as writer:
        for start, end in portion.spans:
            before = writer.block_count
            for rows in islice(coming, end - start):
                writer.write(rows)
                tick()
            writer.cut()
            swaps.append(Swap(tuple(islice(ids, end - start)), writer.block_count - before))
        return Joined(tuple(swaps), tuple(writer.finish()), table.segments().holding(places))
