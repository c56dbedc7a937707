"""The head of a branch: what a commit is decided on, and how the entry after it is created.

A commit is one create-only write: of the next entry of the branch or, where the head's snapshot has a chain, of the
same entry as the chain's next file, which then becomes the branch's. Of several writers who try the same number one
wins, and the others see that the entry is not theirs. All that an entry leads to is written before it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Protocol, Self

from fuse_storage.commit.draft import CommitLoader
from fuse_storage.errors import AlreadyExists, CommitUnknown, NotFound, ReadOnly, StorageError, TableUrl
from fuse_storage.hot.chain import HotChain, publish
from fuse_storage.metadata.encoding import format_timestamp, utc_now
from fuse_storage.metadata.file_ref import create_file
from fuse_storage.metadata.refs import CLOCK_TOLERANCE, Branch, RefEntry
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store.chain import Chain, EntryT
from fuse_storage.store.store import Store

COMMIT_TIMEOUT_SECONDS = 60.0
"""How long a commit is tried, where others win the race or the store gives no answer."""
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.005, 1.0
"""Bounds of the pause between two attempts."""

_UNCHECKED_GAP = timedelta(days=1)
"""Time between two commits up to which the writer's clock is believed without asking the store."""

_commit_check: ContextVar[Callable[[], None]] = ContextVar("commit_check", default=lambda: None)


@contextmanager
def commits_checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Have ``check`` called before each write by which this thread commits to a table within.

    What it raises, the commit raises, and nothing is committed.
    """
    token = _commit_check.set(check)
    try:
        yield
    finally:
        _commit_check.reset(token)


def check_commit() -> None:
    """Raise what forbids this thread to commit now."""
    _commit_check.get()()


@dataclass(frozen=True, slots=True)
class Sighting:
    """A point in time, by a clock that is never set and by one that goes on while the machine sleeps."""

    monotonic: float = field(default_factory=time.monotonic)
    wall: float = field(default_factory=time.time)

    @property
    def age(self) -> float:
        """The seconds since then, by whichever clock says more."""
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


NEVER_SEEN = Sighting(-math.inf, -math.inf)
"""The sighting of a handle that came from another process: nobody knows how long it was on its way."""


class Head(Protocol):
    """A table as a commit sees it: one snapshot of a branch, from which newer ones are reached."""

    @property
    def store(self) -> Store: ...

    @property
    def branch(self) -> str: ...

    @property
    def entry(self) -> RefEntry:
        """The entry of the branch that made the snapshot visible."""
        ...

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def seen(self) -> Sighting:
        """When this was known to be a state of the branch."""
        ...

    def refresh(self) -> Self:
        """The newest snapshot of the branch; the same object if this is it. Raises NotFound if it was dropped."""
        ...

    def at_entry(self, entry: RefEntry, snapshot: Snapshot) -> Self:
        """The table at a snapshot that was just committed."""
        ...

    def commits_since(self, base: Snapshot) -> CommitLoader:
        """The commits after ``base`` up to this one, oldest first, read when they are asked for."""
        ...


class Backoff:
    """Pauses between attempts: each at random below a bound that doubles, so that writers do not march in step."""

    def __init__(self, max_seconds: float = _MAX_RETRY_SECONDS) -> None:
        self._longest, self._max_seconds = _MIN_RETRY_SECONDS, max_seconds

    def pause(self) -> None:
        time.sleep(random.uniform(0, self._longest))
        self._longest = min(self._longest * 2, self._max_seconds)


def write_snapshot(store: Store, snapshot: Snapshot, parent: RefEntry | None) -> RefEntry:
    """Write a snapshot's file, and give the entry that would make it visible.

    Raises StorageError if it is much later than its parent, and by the store's clock that is not so.
    """
    reference = create_file(store, snapshot.path, snapshot.encode())
    if parent is None or snapshot.timestamp - parent.timestamp > _UNCHECKED_GAP:
        _check_clock(store, snapshot)
    return RefEntry(
        "snapshot",
        snapshot.sequence,
        snapshot.commit_id,
        None if parent is None else parent.commit_id,
        snapshot.timestamp,
        snapshot.operation,
        snapshot.id,
        reference,
        snapshot.stated_version,
    )


def _check_clock(store: Store, snapshot: Snapshot) -> None:
    """Refuse a time that is yet to come: all later commits would have to be later still."""
    written = next((file.modified for file in store.list("_ss") if file.key == snapshot.path), snapshot.timestamp)
    claimed = min(snapshot.timestamp, utc_now())  # a parent may have been dated ahead, and this one has to be later
    if claimed - written > CLOCK_TOLERANCE:
        raise StorageError(
            f"it is {format_timestamp(claimed)} by the clock of this machine, and "
            + f"{format_timestamp(written)} by that of "
            + TableUrl(store.url)
            + ": nothing was committed; set the clock and try again"
        )


def create_ref(
    branch: Branch, entry: RefEntry, deadline: float, after: tuple[RefEntry, Snapshot] | None = None
) -> bool:
    """Create the entry of a branch, as ``create_entry`` does.

    ``after``: the entry before it, and the state that it follows; where that has a chain, the entry is created there
    first, which is what commits: a refusal to put it into the branch then is a CommitUnknown. Raises what
    ``commits_checked_by`` has raise.
    """
    check_commit()
    if after is None or not after[1].has_chain:
        return create_entry(branch, entry, deadline, "table")
    if branch.end_after(entry.sequence - 1) >= entry.sequence:
        return False
    chain, number = HotChain(branch, after[0], after[1].stored), after[1].chain_length + 1
    data = entry.encode()
    create, is_there = partial(chain.create, number, data), lambda: _same(chain.find(number), data)
    if not create_once(create, is_there, entry.commit_id, deadline, "table"):
        return False
    try:
        create, is_there = partial(branch.create, entry), lambda: _same(branch.find(entry.sequence), entry)
        return create_once(create, is_there, entry.commit_id, deadline, "table")
    except StorageError as refusal:
        if not isinstance(refusal, ReadOnly) and not refusal.not_permitted:
            raise
        if publish(branch, entry):
            return True
        raise CommitUnknown(
            f"commit {entry.commit_id} ended its chain, and {refusal}: whoever may write next makes it visible; ask "
            f"table.was_committed({entry.commit_id!r}) before trying again",
            entry.commit_id,
        ) from refusal


def _same(existing: object, own: object) -> bool | None:
    return None if existing is None else existing == own


def create_entry(chain: Chain[EntryT], entry: EntryT, deadline: float, witness: str) -> bool:
    """Create the entry, and tell whether it is the chain's now; False if somebody else's has its number.

    Creating equal bytes again is safe, so without an answer it is tried again until the deadline (of
    ``time.monotonic``). Raises CommitUnknown then, which names the ``witness`` to ask; ReadOnly at once, as what the
    store does not permit at the first try; and Corrupt where an entry was lost and this one would take its number:
    whoever finds the end of the chain beyond it would not find this one.
    """
    if chain.end_after(entry.sequence - 1) >= entry.sequence:
        return False
    find = partial(chain.find, entry.sequence)
    return create_once(partial(chain.create, entry), lambda: _same(find(), entry), entry.commit_id, deadline, witness)


def create_once(
    create: Callable[[], None], is_there: Callable[[], bool | None], commit_id: str, deadline: float, witness: str
) -> bool:
    """Create what commits, and tell whether it is there now; False if something else is.

    ``is_there``: reads it back; None if nothing is there. Raises CommitUnknown, ReadOnly and what is
    not permitted as ``create_entry``.
    """
    backoff, answered = Backoff(), True
    while True:
        try:
            create()
            return True
        except AlreadyExists:
            return False
        except ReadOnly:
            raise  # an answer, which waiting does not change
        except StorageError as silence:
            refused = answered and silence.not_permitted  # or a try before it may have come through
            try:
                existing = is_there()
            except NotFound:
                existing = None
            except StorageError:
                existing, refused = None, False
            if existing is not None:
                return existing
            if refused:
                raise
            answered = False
            if time.monotonic() > deadline:
                text = (
                    f"no answer came to commit {commit_id}: ask {witness}.was_committed({commit_id!r}) before trying "
                    f"again"
                )
                raise CommitUnknown(text, commit_id) from silence
        backoff.pause()
