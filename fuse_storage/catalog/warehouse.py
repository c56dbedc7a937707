"""A warehouse: a place where tables have names, for all sessions that open it.

``_catalog/warehouse.json`` says that it is one, ``_catalog/log/`` what was done to its names. A change is one
create-only entry, decided on the state before it: of several sessions one wins, and the others decide anew on what is
there then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic

import msgspec

from fuse_storage.catalog.actions import CatalogAction
from fuse_storage.catalog.checkpoint import read_checkpoint, write_checkpoint
from fuse_storage.catalog.log import CatalogEntry, CatalogLog
from fuse_storage.catalog.state import CatalogState
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Backoff, create_entry
from fuse_storage.errors import (
    Advice,
    AlreadyExists,
    Conflict,
    Corrupt,
    FormatError,
    NotFound,
    Sentence,
    StorageError,
    TableUrl,
    Unsupported,
)
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import next_timestamp
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.cache import cache_of
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, convert_members

_MARKER = "_catalog/warehouse.json"
_FORMAT, _FORMAT_VERSION = "fuse-index warehouse", 1
_BYTES_PER_NAME = 1000
"""What a name takes in memory, about."""

_MAX_LISTED_FILES = 1000
"""So many files are looked at where a warehouse is to be: what an object store lists by one request."""

Decision = Callable[[CatalogState], Sequence[CatalogAction]]
"""What is to be done, given all names as they are; asked again if somebody else was first. Nothing is a change, too."""


class _MarkerMembers(msgspec.Struct):
    format: str
    format_version: int
    id: str
    reader_features: list[str] = []
    writer_features: list[str] = []


@dataclass(frozen=True)
class Warehouse:
    """The names in one place. ``id``: of the warehouse, which no other one has that is made in the same place."""

    store: Store
    id: str
    writer_features: tuple[str, ...] = ()

    @staticmethod
    def open(store: Store, create: bool = False) -> Warehouse:
        """Open what is there. ``create``: make one where there is none; whoever does that at the same time, opens it.

        Raises NotFound, saying what there is instead; AlreadyExists where a table is, or files of others; Unsupported
        for what is newer.
        """
        with suppress(NotFound):
            return _read_marker(store)
        if not create:
            raise _missing_warehouse_error(store)
        if (obstacle := _obstacle(store, "choose another place")) is not None:
            raise AlreadyExists(obstacle)
        if (other := _find_other_file(store)) is not None:
            with suppress(NotFound):  # somebody else was just first, and makes a table
                return _read_marker(store)
            raise AlreadyExists(
                f"{store.url} holds other files, such as {other!r}, and is no warehouse: choose an empty folder, or "
                f"one of tables alone"
            )
        marker = {"format": _FORMAT, "format_version": _FORMAT_VERSION, "id": new_id()}
        with suppress(AlreadyExists):
            store.create(_MARKER, encode_checksummed_json(marker))
        return _read_marker(store)

    @property
    def log(self) -> CatalogLog:
        return CatalogLog(self.store)

    def state(self) -> CatalogState:
        """All names as they are now: one request if nothing was done since this process last looked."""
        known = self._known()
        try:
            head = self.log.head(None if known is None else known[0])
        except NotFound:
            return read_checkpoint(self.store, self.log, 0)
        if known is not None and known[0] is head:
            return known[1]
        state = read_checkpoint(self.store, self.log, head.sequence) if known is None else known[1]
        state = self._replay(state, head)
        self._remember(head, state)
        return state

    def commit(self, decide: Decision) -> CatalogEntry | None:
        """Do what ``decide`` says, all of it in one entry; None if that is nothing.

        Raises what ``decide`` raises, and what forbids a change (AlreadyExists, NotFound, NotEmpty), both of the names
        as they are when it would be done; Conflict if others are first for a minute; CommitUnknown; StorageError.
        """
        self._check_writable()
        deadline, backoff = monotonic() + COMMIT_TIMEOUT_SECONDS, Backoff()
        while True:
            state = self.state()
            actions = tuple(decide(state))
            if not actions:
                return None
            timestamp = next_timestamp(state.timestamp)
            entry = CatalogEntry(state.sequence + 1, new_id(), state.commit_id, timestamp, actions)
            after = state.after([entry])
            entry.encode()  # what is too much is refused here, where nothing has been tried yet
            if create_entry(self.log, entry, deadline, "catalog"):
                self._finish(entry, after)
                return entry
            if monotonic() > deadline:
                raise Conflict(f"{self.store.url}: others were first for {COMMIT_TIMEOUT_SECONDS:.0f} s: try again")
            backoff.pause()

    def entries(self) -> Iterator[CatalogEntry]:
        """All entries, newest first."""
        head = self.log.newest_entry()
        return iter(()) if head is None else self.log.walk(head.sequence)

    def was_committed(self, commit_id: str) -> bool:
        """Say whether this commit is in the log by now. Reads all of it if it is not."""
        return any(entry.commit_id == commit_id for entry in self.entries())

    def _replay(self, state: CatalogState, head: CatalogEntry) -> CatalogState:
        if head.sequence == state.sequence + 1:  # as when somebody else was just first
            entries = [head]
        else:
            entries = list(self.log.walk(head.sequence, state.sequence + 1))[::-1]
        where = f"{self.store.url}/{self.log.folder}"
        if entries and entries[0].parent != state.commit_id:
            raise Corrupt(
                f"{where}: number {entries[0].sequence} follows commit {entries[0].parent}, and number "
                f"{state.sequence} is commit {state.commit_id}: restore both from one copy"
            )
        try:
            return state.after(entries)
        except StorageError as problem:
            raise FormatError(f"{where} holds an entry that could not follow the one before: {problem}") from problem

    def _finish(self, entry: CatalogEntry, after: CatalogState) -> None:
        """Help later readers; the change itself is done."""
        self._remember(entry, after)
        self.log.write_head_hint(entry.sequence)
        write_checkpoint(self.store, after)

    def _known(self) -> tuple[CatalogEntry, CatalogState] | None:
        known: tuple[CatalogEntry, CatalogState] | None = cache_of(self.store).find(self._cache_key)
        return known

    def _remember(self, entry: CatalogEntry, state: CatalogState) -> None:
        known = self._known()
        if known is None or known[0].sequence < entry.sequence:
            cache, names = cache_of(self.store), len(state.tables) + len(state.namespaces) + len(state.dropped)
            size = min(1000 + _BYTES_PER_NAME * names, cache.max_bytes // 4)  # else each look would read everything
            cache.put(self._cache_key, (entry, state), size)

    @property
    def _cache_key(self) -> tuple[str, str, str]:
        return (
            "catalog state",
            self.store.url,
            self.id,
        )  # a copy has the same id, another one in its place the same URL

    def _check_writable(self) -> None:
        if self.writer_features:
            raise Unsupported(
                f"{self.store.url} has the writer features {list(self.writer_features)}, which this version does not "
                f"know: upgrade fuse-index"
            )


def _read_marker(store: Store) -> Warehouse:
    where = f"{store.url}/{_MARKER}"
    members = decode_checksummed_json(read_at_most(store, _MARKER, MAX_REF_BYTES), where)
    try:
        found = convert_members(members, _MarkerMembers)
    except ValueError as problem:
        raise FormatError(f"{where} does not say that it is of a warehouse: {problem}") from problem
    if found.format != _FORMAT:
        raise FormatError(f"{where} is of format {found.format!r}, and not {_FORMAT!r}")
    if found.format_version > _FORMAT_VERSION or found.reader_features:
        raise Unsupported(
            f"{store.url} is a warehouse of version {found.format_version} with the features {found.reader_features}, "
            f"and this version of fuse-index knows version {_FORMAT_VERSION}: upgrade it"
        )
    return Warehouse(store, found.id, tuple(found.writer_features))


def _obstacle(store: Store, beside_table: str) -> str | Sentence | None:
    """What is there where a warehouse would be within a table, or over what is left of one; None where nothing is.

    ``beside_table``: what to do where a table is there.
    """
    if next(iter(store.list("_refs")), None) is not None:
        return TableUrl(store.url) + f" is a table: a warehouse is a folder around tables; {beside_table}"
    if next(iter(store.list("_catalog/log")), None) is not None:
        return f"{store.url} is a warehouse whose {_MARKER} is lost: restore it from a copy"
    path = store.path("_catalog")
    if path is not None and Path(path).parent.is_file():
        return f"{store.url} is a file, and a warehouse is a folder"
    return None


def _find_other_file(store: Store) -> str | None:
    """The key of a file that is in no table; None if there is none among the first few. Hidden files do not count."""
    tables: set[str] = set()
    for found in islice(store.list(), _MAX_LISTED_FILES):
        *folders, _ = parts = found.key.split("/")
        if any(part.startswith((".", "_")) for part in parts):
            continue
        places = ["/".join(folders[: depth + 1]) for depth in range(len(folders))]
        if tables.isdisjoint(places):
            table = next((place for place in places if _is_table(store, place)), None)
            if table is None:
                return found.key
            tables.add(table)
    return None


def _is_table(store: Store, folder: str) -> bool:
    return next(iter(store.list(f"{folder}/_refs")), None) is not None


def _missing_warehouse_error(store: Store) -> StorageError:
    if (obstacle := _obstacle(store, "open it with open_table")) is not None:
        return NotFound(obstacle)
    other = next(iter(store.list()), None)
    holds = "there is nothing" if other is None else f"it holds other files, such as {other.key!r}"
    return NotFound(f"{store.url} is no warehouse: {holds}; to make one there, " + Advice.say("catalog", create=True))
