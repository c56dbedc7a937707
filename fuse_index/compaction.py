"""Small blocks become larger ones, in their order, a group at a time; what is done is committed as it goes.

Only neighbours are joined, so rows stay where they are among the others, and what a killed run had committed need not be done
again. Memory holds two blocks that are being written and a few that are read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

import fuse_storage as storage
from fuse_index.build import Builder, builders
from fuse_index.host import Host
from fuse_index.reading import read_ahead
from fuse_storage import Snapshot, Swap

if TYPE_CHECKING:
    from fuse_index.table import Table

Span = tuple[int, int]
Progress = Callable[[int, int], None]

COMMIT_ROWS = 20_000_000
"""What is done is committed after about so many rows."""


class Compaction:
    """The part of ``fuse_index.Table`` that joins small blocks and segments."""

    if TYPE_CHECKING:
        stored: storage.Table
        host: Host

        @property
        def snapshot(self) -> Snapshot: ...
        def refresh(self) -> Table: ...
        def _writable(self) -> None: ...
        def _move(self, stored: storage.Table) -> Snapshot: ...

    def compact(self, progress: Progress | None = None) -> Snapshot:
        """Join neighbouring blocks of less than half the rows that a block may have, and segments that fit into one.

        Order is kept, and the new blocks are indexed. ``progress`` is told how many small blocks are done, and of how many.
        Nothing is committed if there is nothing to join. Raises Conflict if somebody replaced one of the blocks meanwhile:
        what was committed before is kept.
        """
        self._writable()
        self.refresh()
        work = _Work(self.stored, builders(self.snapshot, self.host), progress)
        try:
            work.run()
        finally:
            self._move(work.table)
        return self._move(work.table.transaction(work.building).gather().commit("compact"))


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


@dataclass
class _Work:
    """Joins group after group. ``table``: as the last commit left it."""

    table: storage.Table
    building: tuple[Builder, ...]
    progress: Progress | None
    fruitless: set[str] = field(default_factory=set)
    done: int = 0

    def run(self) -> None:
        limit = storage.Limits.of(self.table.snapshot.properties).block_rows
        total: int | None = None
        while spans := self._left(limit):
            total = sum(end - start for start, end in spans) if total is None else total
            rows = np.cumsum([int(self.table.blocks().row_counts[start:end].sum()) for start, end in spans])
            portion = spans[: int(np.searchsorted(rows, COMMIT_ROWS)) + 1]
            self._join(portion, total)

    def _left(self, limit: int) -> list[Span]:
        """Groups to be joined; not those that byte limits cut into as many blocks again."""
        blocks = self.table.blocks()
        return [(start, end) for start, end in groups(blocks.row_counts.tolist(), limit) if blocks.ids[start] not in self.fruitless]

    def _join(self, spans: Sequence[Span], total: int) -> None:
        blocks = self.table.blocks()
        places = [place for start, end in spans for place in range(start, end)]
        touched = self.table.segments().holding(places)
        swaps: list[Swap] = []
        with self.table.writer(self.building) as writer:
            coming = read_ahead(self.table, blocks, places)
            for start, end in spans:
                before = writer.block_count
                for rows in islice(coming, end - start):
                    writer.write(rows)
                    self.done += 1
                    if self.progress is not None:
                        self.progress(min(self.done, total), total)
                writer.cut()
                swaps.append(Swap(tuple(blocks.ids[start:end]), writer.block_count - before))
            staged = writer.finish()
        if sum(swap.made for swap in swaps) >= len(places):
            self.fruitless |= {swap.removed[0] for swap in swaps}
            return
        self.table = self.table.transaction(self.building).rewrite(swaps, staged, touched, name="compact", same_rows=True).commit("compact")
