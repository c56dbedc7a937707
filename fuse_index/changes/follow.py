"""Following a table, commit by commit: where a reader stands, what comes next, and what it cannot tell.

A reader begins with the rows that are there (the backfill), or after some snapshot, and goes on with what each commit
adds. Its position is small and plain, so that a checkpoint can hold it, and between two positions there are always the
same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import fuse_storage as storage
from fuse_index.errors import StreamError
from fuse_storage import Blocks

Sizes = npt.NDArray[np.int64]

QUIET = timedelta(hours=1)
"""How far behind a reader stays while nothing comes: well within any retention."""
AGAIN = "begin again with a new checkpoint"


class OnChange(StrEnum):
    """What becomes of commits that delete or change rows."""

    REFUSE = "refuse"
    SKIP = "skip"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Position:
    """After commit number ``sequence``, which made ``snapshot``, or after the first ``blocks`` blocks of it.

    Those are the ones that it added; where a reader is ``filling``, all of the snapshot's.
    """

    snapshot: str
    sequence: int
    blocks: int | None = None
    filling: bool = False

    def to_json(self) -> dict[str, Any]:
        midst = {} if self.blocks is None else {"blocks": self.blocks, "filling": self.filling}
        return {"snapshot": self.snapshot, "sequence": self.sequence} | midst

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Position:
        """Raises StreamError for what is none."""
        try:
            blocks = None if found.get("blocks") is None else int(found["blocks"])
            return Position(str(found["snapshot"]), int(found["sequence"]), blocks, bool(found.get("filling")))
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            raise StreamError(f"{found!r} is no position in a table: {AGAIN}") from problem


@dataclass(frozen=True, slots=True)
class Limit:
    """How much is read at once, at most, but one block or one changing commit at least; None: any amount."""

    blocks: int | None = None
    rows: int | None = None

    @property
    def spent(self) -> bool:
        return (self.blocks is not None and self.blocks <= 0) or (self.rows is not None and self.rows <= 0)

    def less(self, blocks: int, rows: int) -> Limit:
        return Limit(
            None if self.blocks is None else self.blocks - blocks, None if self.rows is None else self.rows - rows
        )

    def fitting(self, rows: Sizes) -> int:
        """How many blocks with so many rows each."""
        count = len(rows) if self.blocks is None else min(len(rows), self.blocks)
        return (
            count if self.rows is None else min(count, int(np.searchsorted(np.cumsum(rows), self.rows, side="right")))
        )


@dataclass(frozen=True)
class Step:
    """A commit, part of one, or several: ``came`` are the blocks that it added, from number ``first`` up to before
    ``last``.

    ``before`` is None for a backfill, of all rows. ``changed``: rows may have gone, so that only a comparison with
    ``before`` tells.
    """

    before: storage.Table | None
    after: storage.Table
    first: int = 0
    last: int | None = None

    @cached_property
    def _exchanged(self) -> tuple[Blocks, Blocks]:
        if self.before is None:
            none = self.after.blocks([])
            return none, self.after.blocks()
        if self.after.snapshot.same_rows and self.after.snapshot.parent == self.before.snapshot.id:
            return self.after.blocks([]), self.after.blocks([])
        return storage.exchanged(self.before, self.after)

    @property
    def changed(self) -> bool:
        return len(self._exchanged[0]) > 0

    @property
    def sizes(self) -> Sizes:
        """The rows of each block to be read, or of all at once where they cannot be read one by one."""
        if not self.changed:
            return self.came.row_counts
        return np.array([sum(int(blocks.row_counts.sum()) for blocks in self._exchanged)])

    @cached_property
    def came(self) -> Blocks:
        whole = self._exchanged[1]
        last = len(whole) if self.last is None else self.last
        return whole if (self.first, last) == (0, len(whole)) else whole.take(np.arange(self.first, last))

    def position(self, taken: int | None = None) -> Position:
        """After all of it, or so many of its blocks."""
        snapshot = self.after.snapshot
        if taken is None:
            return Position(snapshot.id, snapshot.sequence)
        return Position(snapshot.id, snapshot.sequence, self.first + taken, self.before is None)


@dataclass
class Follower:
    """Follows the branch of ``shape``, in whose columns rows are to come: later commits that change columns are
    refused.
    """

    shape: storage.Table
    on_change: OnChange = OnChange.REFUSE

    def __post_init__(self) -> None:
        self._head = self.shape
        self._idle: tuple[Position, int] | None = None

    def head(self) -> int:
        """The number of the newest commit. Raises StreamError if the branch was dropped."""
        try:
            self._head = self._head.refresh()
        except storage.NotFound as gone:
            raise StreamError(f"{gone}: {AGAIN}") from gone
        return self._head.snapshot.sequence

    def begin(self, since: storage.Table | None = None) -> Position:
        """Before all rows of the head, or right after ``since``. Raises StreamError if that is on another branch."""
        if since is not None:
            if since.branch != self.shape.branch:
                raise StreamError(
                    f"snapshot {since.snapshot.id} is on branch {since.branch!r}, and {self.shape.branch!r} is followed"
                )
            return Step(None, since).position()
        self.head()
        start = Step(None, self._head)
        return start.position(0) if self._head.snapshot.block_count else start.position()

    def latest(self, start: Position, limit: Limit, newest: int) -> Position:
        """Where a reader at ``start`` comes to within the limit, going no further than commit number ``newest``.

        Commits that change no row are passed over; where there are only such, the reader stays where it is for up to an
        hour of them, since to move costs it a batch without rows. Raises StreamError, once all before it was read, for
        a commit that it cannot go past.
        """
        if self._idle == (start, newest):
            return start
        position, left, reading = start, limit, False
        for step in self._steps(start, newest):
            if left.spent:
                break
            if problem := self._problem(step):
                if not reading:
                    raise StreamError(problem)
                break
            sizes = np.zeros(0, np.int64) if step.changed and self.on_change is OnChange.SKIP else step.sizes
            taken = max(left.fitting(sizes), 0 if reading else 1)
            if taken < len(sizes):
                return step.position(taken) if taken else position
            position, left, reading = (
                step.position(),
                left.less(len(sizes), int(sizes.sum())),
                reading or len(sizes) > 0,
            )
        if reading or self._time(position) - self._time(start) >= QUIET:
            return position
        self._idle = (start, newest)
        return start

    def _time(self, position: Position) -> datetime:
        return self._commit(position.sequence, position).snapshot.timestamp

    def between(self, start: Position, end: Position) -> Iterator[Step]:
        """What is to be read from one position to another; of commits that change rows, only where they are to be
        read.
        """
        for step in self._steps(start, end.sequence):
            if problem := self._problem(step):
                raise StreamError(problem)
            if step.after.snapshot.sequence == end.sequence and end.blocks is not None:
                step = replace(step, last=end.blocks)
            if step.changed and self.on_change is OnChange.SKIP:
                continue
            if step.changed or len(step.came):
                yield step

    def _steps(self, start: Position, newest: int) -> Iterator[Step]:
        """What follows, commit by commit. Raises StreamError for what is not there any more."""
        here = self._commit(start.sequence, start)
        if here.snapshot.id != start.snapshot:
            raise StreamError(
                f"{here!r} has another commit number {start.sequence} than was read, snapshot {start.snapshot}: {AGAIN}"
            )
        if start.blocks is not None:
            before = None if start.filling else self._commit(start.sequence - 1, start)
            yield Step(before, here, start.blocks)
        for sequence in range(start.sequence + 1, newest + 1):
            before, here = here, self._commit(sequence, start)
            yield Step(before, here)

    def _commit(self, sequence: int, start: Position) -> storage.Table:
        try:
            return self.shape.number(sequence)
        except storage.NotFound as gone:
            raise StreamError(
                f"rows were read up to commit number {start.sequence} (snapshot {start.snapshot}), and number "
                f"{sequence} is gone: {gone}; "
                f"{AGAIN}, and vacuum with a retention longer than a reader may stand still"
            ) from gone

    def _problem(self, step: Step) -> str | None:
        """Why a reader cannot go past a commit."""
        then, entry = step.after.snapshot, step.after.entry
        if then.sequence > self.shape.snapshot.sequence and then.schema != self.shape.snapshot.schema:
            return (
                f"columns were changed by {entry} since this reader began: restart it, and it "
                f"goes on with the new columns"
            )
        if step.changed and self.on_change is OnChange.REFUSE:
            return (
                f"rows were deleted or changed by {entry}, and only added rows are read here: set read_changes "
                f"to be told what changed, "
                f"skip_changes to pass over such commits, or {AGAIN}"
            )
        return None
