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
from fuse_storage import BlockFrame

_RowCounts = npt.NDArray[np.int64]

MAX_IDLE_LAG = timedelta(hours=1)
"""The longest that a reader stays behind while nothing comes: well within any retention."""
_RESTART_ADVICE = "begin again with a new checkpoint"


class OnChange(StrEnum):
    """The ways to treat commits that delete or change rows."""

    REFUSE = "refuse"
    SKIP = "skip"
    READ = "read"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position after commit number ``sequence``, which made ``snapshot``, or after ``blocks_read`` blocks of it.

    The number is the version of the state. Blocks are those that it added; in a backfill (``is_backfill``), all that
    the state has.
    """

    snapshot: str
    sequence: int
    blocks_read: int | None = None
    is_backfill: bool = False

    def to_json(self) -> dict[str, Any]:
        partial = {} if self.blocks_read is None else {"blocks": self.blocks_read, "filling": self.is_backfill}
        return {"snapshot": self.snapshot, "sequence": self.sequence} | partial

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> StreamOffset:
        """Read an offset that ``to_json`` made. Raises StreamError for anything else."""
        try:
            blocks_read = None if document.get("blocks") is None else int(document["blocks"])
            return StreamOffset(
                str(document["snapshot"]), int(document["sequence"]), blocks_read, bool(document.get("filling"))
            )
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            raise StreamError(f"{document!r} is no position in a table: {_RESTART_ADVICE}") from problem


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The most that is read at once, but one block or one changing commit at least; None: any amount."""

    blocks: int | None = None
    rows: int | None = None

    @property
    def is_exhausted(self) -> bool:
        return (self.blocks is not None and self.blocks <= 0) or (self.rows is not None and self.rows <= 0)

    def remaining_after(self, blocks: int, rows: int) -> BatchLimit:
        return BatchLimit(
            None if self.blocks is None else self.blocks - blocks, None if self.rows is None else self.rows - rows
        )

    def fitting_block_count(self, row_counts: _RowCounts) -> int:
        """Count the blocks, from the first, that fit. ``row_counts``: rows of each block, int64, shape (blocks,)."""
        count = len(row_counts) if self.blocks is None else min(len(row_counts), self.blocks)
        return (
            count
            if self.rows is None
            else min(count, int(np.searchsorted(np.cumsum(row_counts), self.rows, side="right")))
        )


@dataclass(frozen=True)
class CommitStep:
    """A commit, part of one, or several: the added blocks from ``first_block`` to before ``end_block``.

    ``before`` is None for a backfill, of all rows. Where rows may have been removed, only a comparison with ``before``
    tells which; without ``preimages`` the puts and deletes of a table with a primary key do, where they are known.
    """

    before: storage.StoredTable | None
    after: storage.StoredTable
    first_block: int = 0
    end_block: int | None = None
    preimages: bool = True

    @cached_property
    def _operations(self) -> storage.KeyOperations | None:
        if self.preimages or self.before is None:
            return None
        return storage.key_operations(self.before, self.after)

    @cached_property
    def _changed_blocks(self) -> tuple[BlockFrame, BlockFrame]:
        if self.before is None:
            return self.after.blocks([]), self.after.blocks()
        if self._operations is not None and not self._operations.row_count:
            return self.after.blocks([]), self.after.blocks([])
        if self.after.snapshot.same_rows and self.after.snapshot.version == self.before.snapshot.version + 1:
            return self.after.blocks([]), self.after.blocks([])
        return storage.changed_blocks(self.before, self.after)

    @property
    def may_remove_rows(self) -> bool:
        if self._operations is not None:
            return self._operations.row_count > 0
        return len(self._changed_blocks[0]) > 0

    @property
    def row_counts(self) -> _RowCounts:
        """The rows of each block to be read, int64, shape (n,); one number where all must be read at once."""
        if not self.may_remove_rows:
            return self.added_blocks.row_counts
        if self._operations is not None:
            return np.array([self._operations.row_count])
        return np.array([sum(int(blocks.row_counts.sum()) for blocks in self._changed_blocks)])

    @cached_property
    def added_blocks(self) -> BlockFrame:
        added = self._changed_blocks[1]
        end = len(added) if self.end_block is None else self.end_block
        return added if (self.first_block, end) == (0, len(added)) else added.take(np.arange(self.first_block, end))

    def offset_after(self, blocks_read: int | None = None) -> StreamOffset:
        """Give the offset after the whole step, or after ``blocks_read`` of its blocks."""
        snapshot = self.after.snapshot
        if blocks_read is None:
            return StreamOffset(snapshot.id, snapshot.version)
        return StreamOffset(snapshot.id, snapshot.version, self.first_block + blocks_read, self.before is None)


@dataclass
class TableFollower:
    """A reader of the branch of ``schema_table``, in whose columns rows come; later changes of columns are refused."""

    schema_table: storage.StoredTable
    on_change: OnChange = OnChange.REFUSE
    preimages: bool = True

    def __post_init__(self) -> None:
        self._head = self.schema_table
        self._idle: tuple[StreamOffset, int] | None = None

    def head_sequence(self) -> int:
        """Refresh, and give the number of the newest commit. Raises StreamError if the branch was dropped."""
        try:
            self._head = self._head.refresh()
        except storage.NotFound as gone:
            raise StreamError(f"{gone}: {_RESTART_ADVICE}") from gone
        return self._head.snapshot.version

    def initial_offset(self, since: storage.StoredTable | None = None) -> StreamOffset:
        """Begin before all rows of the head, or right after ``since``. Raises StreamError if that is on another one."""
        if since is not None:
            if since.branch != self.schema_table.branch:
                raise StreamError(
                    f"snapshot {since.snapshot.id} is on branch {since.branch!r}, and "
                    f"{self.schema_table.branch!r} is followed"
                )
            return CommitStep(None, since).offset_after()
        self.head_sequence()
        start = CommitStep(None, self._head)
        return start.offset_after(0) if self._head.snapshot.block_count else start.offset_after()

    def latest_offset(self, start: StreamOffset, limit: BatchLimit, newest: int) -> StreamOffset:
        """Find the offset that a reader at ``start`` comes to within the limit, at most that of commit ``newest``.

        Commits that change no row are passed over; where there are only such, the reader stays where it is for up to an
        hour of them, since to move costs it a batch without rows. Raises StreamError, once all before it was read, for
        a commit that it cannot go past.
        """
        if self._idle == (start, newest):
            return start
        position, remaining, has_blocks = start, limit, False
        for step in self._steps(start, newest):
            if remaining.is_exhausted:
                break
            if problem := self._problem(step):
                if not has_blocks:
                    raise StreamError(problem)
                break
            row_counts = (
                np.zeros(0, np.int64) if step.may_remove_rows and self.on_change is OnChange.SKIP else step.row_counts
            )
            block_count = max(remaining.fitting_block_count(row_counts), 0 if has_blocks else 1)
            if block_count < len(row_counts):
                return step.offset_after(block_count) if block_count else position
            position = step.offset_after()
            remaining = remaining.remaining_after(len(row_counts), int(row_counts.sum()))
            has_blocks = has_blocks or len(row_counts) > 0
        if has_blocks or self._time(position) - self._time(start) >= MAX_IDLE_LAG:
            return position
        self._idle = (start, newest)
        return start

    def _time(self, position: StreamOffset) -> datetime:
        return self._commit(position.sequence, position).snapshot.timestamp

    def steps_between(self, start: StreamOffset, end: StreamOffset) -> Iterator[CommitStep]:
        """Yield what is to be read between two positions, with commits that change rows only if these are read."""
        for step in self._steps(start, end.sequence):
            if problem := self._problem(step):
                raise StreamError(problem)
            if step.after.snapshot.version == end.sequence and end.blocks_read is not None:
                step = replace(step, end_block=end.blocks_read)
            if step.may_remove_rows and self.on_change is OnChange.SKIP:
                continue
            if step.may_remove_rows or len(step.added_blocks):
                yield step

    def _steps(self, start: StreamOffset, newest: int) -> Iterator[CommitStep]:
        """Yield what follows, commit by commit. Raises StreamError for what is not there any more."""
        current = self._commit(start.sequence, start)
        if current.snapshot.id != start.snapshot:
            raise StreamError(
                f"{current.store.url} has another commit number {start.sequence} than was read, snapshot "
                f"{start.snapshot}: {_RESTART_ADVICE}"
            )
        if start.blocks_read is not None:
            before = None if start.is_backfill else self._commit(start.sequence - 1, start)
            yield CommitStep(before, current, start.blocks_read, preimages=self.preimages)
        for sequence in range(start.sequence + 1, newest + 1):
            before, current = current, self._commit(sequence, start)
            yield CommitStep(before, current, preimages=self.preimages)

    def _commit(self, sequence: int, start: StreamOffset) -> storage.StoredTable:
        try:
            found = self.schema_table.at_version(sequence)
            if found.snapshot.tail is not None and not found.snapshot.chain_length:
                found.segments()  # a vacuum takes tails before snapshots
            return found
        except storage.NotFound as gone:
            raise StreamError(
                f"rows were read up to commit number {start.sequence} (snapshot {start.snapshot}), and number "
                f"{sequence} is gone: {gone}; "
                f"{_RESTART_ADVICE}, and vacuum with a retention and hot_retention longer than a reader may stand still"
            ) from gone

    def _problem(self, step: CommitStep) -> str | None:
        """Say why a reader cannot go past a commit; None if it can."""
        snapshot, entry = step.after.snapshot, step.after.entry
        if (
            snapshot.version > self.schema_table.snapshot.version
            and snapshot.schema != self.schema_table.snapshot.schema
        ):
            return (
                f"columns were changed by {entry} since this reader began: restart it, and it "
                f"goes on with the new columns"
            )
        if step.may_remove_rows and self.on_change is OnChange.REFUSE:
            return (
                f"rows were deleted or changed by {entry}, and only added rows are read here: set read_changes "
                f"to be told what changed, "
                f"skip_changes to pass over such commits, or {_RESTART_ADVICE}"
            )
        return None
