"""The chain of a snapshot: hot entries, and at last the branch's next entry, which ends it (format, 13).

Both are created under the next number of one chain, if it is absent: so of a hot commit and a snapshot, or of two of
either, one wins. The entry that ends a chain becomes visible when it is in the branch, too; whoever finds it missing
there puts it there. Knows no rows and no writer.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from fuse_storage.errors import Corrupt, NotFound, StorageError, TableUrl
from fuse_storage.hot.entry import HotEntry, check_follows, decode_chain_file
from fuse_storage.hot.tail import state_after
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.snapshot import Snapshot, read_snapshot
from fuse_storage.store.abilities import list_keys_after, read_at_most
from fuse_storage.store.cache import cache_of
from fuse_storage.store.chain import MAX_PARALLEL_REF_READS
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES

HOT_FOLDER = "_refs/hot"
MAX_CHAIN_ENTRIES = 64
"""Hot entries of a chain: a reader who knows nothing reads so few files, at once."""
HINT_SECONDS = 1.0
"""The hint of a chain is written once in so many seconds: a third create for those who commit by the second alone."""
_HINT = "_hint"
_MAX_HINT_BYTES = 64
_STATE_BYTES = 2000
"""About what a state takes in memory besides the rows of its tail."""
_CHAIN_FILE = re.compile(r"(?P<number>[0-9]{6})\.json")
CHAIN_KEY = re.compile(rf"{HOT_FOLDER}/(?P<snapshot>[0-9a-f]{{32}})/(?:{_CHAIN_FILE.pattern}|{_HINT})")


@dataclass(frozen=True, slots=True)
class HotChain:
    """What follows a stored snapshot, which the ``entry`` of this branch made visible."""

    branch: Branch
    entry: RefEntry
    snapshot: Snapshot

    @property
    def store(self) -> Store:
        return self.branch.store

    @property
    def folder(self) -> str:
        return f"{HOT_FOLDER}/{self.snapshot.id}"

    def key(self, number: int) -> str:
        return f"{self.folder}/{number:06}.json"

    def create(self, number: int, data: bytes) -> None:
        """Commit a hot entry, or end the chain. Raises AlreadyExists if somebody else did."""
        self.store.create(self.key(number), data)

    def find(self, number: int) -> bytes | None:
        """The bytes of a file of the chain; None if it is not that long."""
        try:
            return read_at_most(self.store, self.key(number), MAX_REF_BYTES)
        except NotFound:
            return None

    def advance(self, state: Snapshot, probe: bool = False) -> tuple[Snapshot, RefEntry | None]:
        """The newest state of this chain from ``state`` on, and the entry that ends the chain, if one does.

        ``probe``: ask for the next number first, as one who looks often; else all is listed. Raises Corrupt for a file
        that is missing or damaged, Unsupported for what is newer than this version.
        """
        number = state.chain_length
        if probe:
            if (data := self.find(number + 1)) is None:
                return state, None
            state, end = self.apply(state, number + 1, data)
            return (state, end) if end is not None else self.advance(state)
        states, end = self.states_after(state)
        return (states[-1] if states else state), end

    def states_after(self, state: Snapshot) -> tuple[list[Snapshot], RefEntry | None]:
        """The states of this chain that come after ``state``, oldest first, and the entry that ends the chain, if any.

        Raises as ``advance``.
        """
        states, number = [state], state.chain_length
        names = [key.removeprefix(f"{self.folder}/") for key in list_keys_after(self.store, self.key(number))]
        numbers = [int(match["number"]) for match in map(_CHAIN_FILE.fullmatch, names) if match is not None]
        if _HINT in names:
            self._check_hint(state, max(numbers, default=number))
        with ThreadPoolExecutor(MAX_PARALLEL_REF_READS, "fuse-hot") as pool:
            files = list(pool.map(self.find, range(number + 1, max(numbers, default=number) + 1)))
        for position, data in enumerate(files, number + 1):
            if data is None:
                raise Corrupt(
                    f"{self.store.url}/{self.key(position)} is missing, and number {max(numbers)} of its chain is "
                    f"there: restore it from a copy"
                )
            after, end = self.apply(states[-1], position, data)
            if end is not None:
                if position != max(numbers):
                    raise Corrupt(f"{self.store.url}/{self.key(position)} ends its chain, and more follows it")
                return states[1:], end
            states.append(after)
        return states[1:], None

    def known_states(self) -> list[Snapshot]:
        """The states after the snapshot that this process has in memory, oldest first, if they were not collected.

        One read tells: a vacuum takes whole chains.
        """
        known: tuple[Snapshot, ...] = cache_of(self.store).find(_states_key(self.store, self.snapshot.id)) or ()
        if not known or (data := self.find(known[-1].chain_length)) is None:
            return []
        found = decode_chain_file(data, f"{self.store.url}/{self.key(known[-1].chain_length)}")
        return list(known) if found.commit_id == known[-1].commit_id else []

    def advance_by(self, state: Snapshot, count: int) -> tuple[Snapshot, RefEntry | None]:
        """Advance by at most so many files, which are asked for at once and unseen: one wait, and no list."""
        numbers = range(state.chain_length + 1, state.chain_length + 1 + count)
        with ThreadPoolExecutor(count, "fuse-hot") as pool:
            for number, data in zip(numbers, pool.map(self.find, numbers), strict=True):
                if data is None:
                    return state, None
                state, end = self.apply(state, number, data)
                if end is not None:
                    return state, end
        return state, None

    def write_hint(self, number: int) -> None:
        """Tell later readers that so many hot entries are there. Advisory, so a failure is of no account."""
        cache, key, now = cache_of(self.store), ("hint of a chain", self.store.url, self.folder), time.monotonic()
        if (written := cache.find(key)) is not None and now - written < HINT_SECONDS:
            return
        cache.put(key, now, 100)
        with suppress(StorageError):
            self.store.create(f"{self.folder}/{_HINT}", str(number).encode(), overwrite=True)

    def _check_hint(self, state: Snapshot, newest: int) -> None:
        """Raise Corrupt where a hint says that there was an entry after the newest: what is lost there is no end."""
        try:
            text = read_at_most(self.store, f"{self.folder}/{_HINT}", _MAX_HINT_BYTES)
        except StorageError:
            return
        hinted = int(text) if re.fullmatch(rb"[0-9]{1,2}", text) else 0
        if newest < hinted <= MAX_CHAIN_ENTRIES and self.find(hinted) is None:
            if self.branch.find(self.entry.sequence + 1) is not None:
                return  # the branch has gone on, and a vacuum may have taken the chain
            raise Corrupt(
                f"{self.store.url}/{self.key(hinted)} is missing, though the hint beside it says that it was there: "
                f"restore it from a copy, or remove {self.folder}/{_HINT} to go on at version "
                f"{state.version - state.chain_length + newest}, without the rows that came after it"
            )

    def apply(self, state: Snapshot, number: int, data: bytes) -> tuple[Snapshot, RefEntry | None]:
        """The state after a file of the chain, or the one before and what ended the chain there. Raises FormatError."""
        where = f"{self.store.url}/{self.key(number)}"
        found = decode_chain_file(data, where)
        if isinstance(found, HotEntry):
            check_follows(found, number, state.commit_id, state.version + 1, state.next_row_id, where)
            if found.timestamp <= state.timestamp or number > MAX_CHAIN_ENTRIES:
                raise Corrupt(f"{where} is of {found.timestamp}, after {state.timestamp}: it was not made by a writer")
            after = state_after(state, found)
            remember_state(self.branch, self.entry, after)
            return after, None
        follows = (found.sequence, found.parent, found.version)
        if follows != (self.entry.sequence + 1, self.entry.commit_id, state.version + 1):
            raise Corrupt(
                f"{where} ends its chain with number {found.sequence} of the branch, version {found.version}, after "
                f"commit {found.parent}, and {self.entry} with {state.chain_length} hot commits comes before it"
            )
        return state, found


def publish(branch: Branch, entry: RefEntry) -> bool:
    """Put what ended a chain into its branch, whoever ended it; False where that cannot be done here."""
    try:
        branch.create(entry)
        return True
    except StorageError:  # perhaps it is there, and only may not be written here
        return branch.find(entry.sequence) == entry


def follow(branch: Branch, entry: RefEntry, state: Snapshot, probe: bool = False) -> tuple[RefEntry, Snapshot]:
    """The newest state of a branch from this one on, which the chain of ``entry``'s snapshot leads to.

    Raises NotFound if the branch was dropped; Corrupt, Unsupported as ``HotChain.advance``.
    """
    while state.has_chain:
        state, end = HotChain(branch, entry, state.stored).advance(state, probe)
        if end is None or not publish(branch, end):
            break
        entry, state, probe = end, read_snapshot(branch, end), False
    return entry, state


def states_between(branch: Branch, entry: RefEntry, following: RefEntry | None) -> list[Snapshot]:
    """The hot states between an entry of a branch and the one that follows it, or that there are by now; oldest first.

    Raises NotFound where they were collected, Corrupt, Unsupported.
    """
    snapshot = read_snapshot(branch, entry)
    if not snapshot.has_chain:
        return []
    chain = HotChain(branch, entry, snapshot)
    states = [snapshot, *chain.known_states()]
    if following is None:
        return [*states[1:], *chain.states_after(states[-1])[0]]
    length = following.version - entry.version - 1
    with ThreadPoolExecutor(MAX_PARALLEL_REF_READS, "fuse-hot") as pool:
        files = list(pool.map(chain.find, range(len(states), length + 1)))
    for number, data in enumerate(files, len(states)):
        if data is None:
            raise NotFound(
                TableUrl(branch.store.url) + f": version {snapshot.version + number} was collected by a vacuum: "
                f"versions {snapshot.version} and {snapshot.version + length + 1}, snapshots before and after it, may "
                f"still be there"
            )
        states.append(chain.apply(states[-1], number, data)[0])
    return states[1:]


def list_chain_files(store: Store, hints: bool = False) -> dict[str, list[ObjectMeta]]:
    """The files of all chains, by the id of the snapshot that they follow. Files of other names are passed over.

    ``hints``: those beside the entries, too.
    """
    found: dict[str, list[ObjectMeta]] = {}
    for file in store.list(HOT_FOLDER):
        if (match := CHAIN_KEY.fullmatch(file.key)) is not None and (hints or match["number"]):
            found.setdefault(match["snapshot"], []).append(file)
    return found


def remember_state(branch: Branch, entry: RefEntry, state: Snapshot) -> None:
    """Keep a hot state in memory, with those before it in its chain, and where it is to be found by its id."""
    cache, key = cache_of(branch.store), _states_key(branch.store, state.stored.id)
    cache.put(_place_key(branch.store, state.id), (branch.name, entry.sequence, state.chain_length), 300)
    known: tuple[Snapshot, ...] = cache.find(key) or ()
    if len(known) == state.chain_length - 1:  # none before it was forgotten
        rows = 0 if state.hot_rows is None else state.hot_rows.nbytes  # which the states before it share
        cache.put(key, (*known, state), rows + _STATE_BYTES * state.chain_length)


def recall_state(store: Store, state_id: str) -> tuple[str, int, int] | None:
    """The branch, the number of the entry and that in its chain, of a hot state that this process has seen."""
    place: tuple[str, int, int] | None = cache_of(store).find(_place_key(store, state_id))
    return place


def _states_key(store: Store, snapshot_id: str) -> tuple[str, str, str]:
    return ("hot states after", store.url, snapshot_id)


def _place_key(store: Store, state_id: str) -> tuple[str, str, str]:
    return ("hot state", store.url, state_id)
