"""Chains: files numbered from 1 in a folder, created once, contiguous and never deleted; the last one is what counts.

A file that is missing nevertheless, in a copy or a restored backup, must not pass for the end: what follows would be
lost. So the end is where a listing, begun at an advisory hint, shows no more. Knows not what the files say.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fuse_storage.errors import Corrupt, NotFound, StorageError
from fuse_storage.store.abilities import list_keys_after, read_at_most
from fuse_storage.store.cache import cache_of
from fuse_storage.store.store import Store

MAX_PARALLEL_REF_READS = 32
"""Entries that are read at once while walking through history."""
_MAX_HINT_BYTES = 64
_ENTRY_FILE = re.compile(r"(?P<entry>[0-9]{20})\.json")


class ChainEntry(Protocol):
    """One file of a chain: its number, an id that no other entry has, and the id of the entry before."""

    @property
    def sequence(self) -> int: ...

    @property
    def commit_id(self) -> str: ...

    @property
    def parent(self) -> str | None: ...

    def encode(self) -> bytes:
        """The bytes of the file, which no other entry has: so a store tells them apart."""
        ...


EntryT = TypeVar("EntryT", bound=ChainEntry)


@dataclass(frozen=True, slots=True)
class Chain(ABC, Generic[EntryT]):
    """A chain in a store, which need not exist."""

    store: Store

    @property
    @abstractmethod
    def folder(self) -> str: ...

    @property
    @abstractmethod
    def max_entry_bytes(self) -> int:
        """Bytes of an entry; one that has more is refused."""

    @abstractmethod
    def decode(self, data: bytes, where: str) -> EntryT:
        """Read an entry. Raises FormatError."""

    @abstractmethod
    def absent(self) -> NotFound:
        """What is raised where a chain has no entry."""

    @property
    @abstractmethod
    def repair_hint(self) -> str:
        """What to do about a missing entry: the end of a message."""

    def key(self, sequence: int) -> str:
        return f"{self.folder}/{sequence:020}.json"

    def find(self, sequence: int) -> EntryT | None:
        """Read the entry with this number; None if the chain is not that long."""
        data = self._read(sequence)
        return None if data is None else self._decode_entry(sequence, data)

    def entry(self, sequence: int) -> EntryT:
        """Read the entry with this number, which must be there. Raises Corrupt if it is not."""
        entry = self.find(sequence)
        if entry is None:
            raise self._missing(sequence, "is missing from the midst of its chain")
        return entry

    def head(self, known: EntryT | None = None) -> EntryT:
        """Find the newest entry. ``known``: one of the chain, from which to go on. Raises NotFound without any.

        Three requests with a good hint, one from the newest entry that this process knows. Raises Corrupt if an entry
        is missing after the one that it begins at, or the one that the hint names.
        """
        if known is None:
            hinted = self.read_hint()
            newest = self.end_after(hinted - 1) if hinted > 1 else 0
            if newest < max(hinted, 1):  # the hint is missing, or nonsense, or names an entry that is
                newest = self._last_of_all(hinted)
        else:
            newest = known.sequence
            if self._known_end() != newest:
                newest = self.end_after(newest)
            elif self._read(newest + 1) is not None:
                newest = self.end_after(newest + 1)
        self._remember_end(newest)
        return known if known is not None and newest == known.sequence else self.entry(newest)

    def complete_head(self) -> EntryT:
        """Find the newest entry, for whoever relies on all of the others. Raises Corrupt if any is missing."""
        return self.entry(self._last_of_all(self.read_hint()))

    def newest_entry(self) -> EntryT | None:
        """Find the newest entry, whatever it is; None if there never was such a chain. Raises as ``head``."""
        try:
            return self.head()
        except NotFound:
            return None

    def sequences(self, after: int = 0) -> list[int]:
        """List the numbers of the entries that are there, from the first greater than ``after``, in order."""
        names = (key.removeprefix(f"{self.folder}/") for key in list_keys_after(self.store, self.key(after)))
        return sorted(int(match["entry"]) for match in map(_ENTRY_FILE.fullmatch, names) if match is not None)

    def end_after(self, sequence: int) -> int:
        """List what follows an entry: the number of the newest one, or ``sequence`` itself if none does.

        Raises Corrupt, naming it, if an entry in between is missing.
        """
        newest = sequence
        for present in self.sequences(sequence):
            for number in range(newest + 1, present):
                if self._read(number) is None:  # else it came while the others were listed
                    raise self._missing(number, f"is missing, and number {present} of its chain is there")
            newest = present
        return newest

    def create(self, entry: EntryT) -> None:
        """Commit: nothing else makes a change visible. Raises AlreadyExists if someone else's entry is there."""
        self.store.create(self.key(entry.sequence), entry.encode())
        if (self._known_end() or 0) == entry.sequence - 1:
            self._remember_end(entry.sequence)

    def read_hint(self) -> int:
        """Read the number of the entry that the hint names; 0 where there is no hint, or nonsense."""
        with suppress(StorageError):
            text = read_at_most(self.store, self._hint, _MAX_HINT_BYTES)
            return int(text) if re.fullmatch(rb"[0-9]{1,20}", text) else 0
        return 0

    def write_head_hint(self, sequence: int) -> None:
        """Tell later readers where the head was. Advisory, so a failure is of no account."""
        with suppress(StorageError):
            self.store.create(self._hint, str(sequence).encode(), overwrite=True)

    def walk(self, newest: int, oldest: int = 1) -> Iterator[EntryT]:
        """Read the entries from ``newest`` down to ``oldest``, some of them ahead.

        Raises Corrupt where one is missing, or is not the parent of the one after it.
        """
        later: EntryT | None = None
        with ThreadPoolExecutor(MAX_PARALLEL_REF_READS, "fuse-refs") as pool:
            for start in range(newest, oldest - 1, -MAX_PARALLEL_REF_READS):
                numbers = range(start, max(start - MAX_PARALLEL_REF_READS, oldest - 1), -1)
                for entry in pool.map(self.entry, numbers):
                    if later is not None and later.parent != entry.commit_id:
                        raise Corrupt(
                            f"{self.store.url}/{self.key(later.sequence)} follows commit {later.parent}, and number "
                            f"{entry.sequence} is commit {entry.commit_id}: one of them is of another copy of the "
                            f"table; restore both from one copy"
                        )
                    yield entry
                    later = entry

    @property
    def _hint(self) -> str:
        return f"{self.folder}/_hint"

    def _last_of_all(self, hinted: int) -> int:
        """The number of the newest entry, where all before it are there, and one that the hint names."""
        newest = self.end_after(0)
        if newest < hinted:
            raise self._missing(hinted, "is missing, though the hint beside it says that it was there")
        if not newest:
            raise self.absent()
        return newest

    def _known_end(self) -> int | None:
        """The number of the newest entry that this process knows to have been the last one."""
        end: int | None = cache_of(self.store).find(self._end_key)
        return end

    def _remember_end(self, sequence: int) -> None:
        if sequence > (self._known_end() or 0):
            cache_of(self.store).put(self._end_key, sequence, 100)

    @property
    def _end_key(self) -> tuple[str, str, str]:
        return ("end of chain", self.store.url, self.folder)

    def _missing(self, sequence: int, how: str) -> Corrupt:
        return Corrupt(f"{self.store.url}/{self.key(sequence)} {how}: {self.repair_hint}")

    def _read(self, sequence: int) -> bytes | None:
        try:
            return read_at_most(self.store, self.key(sequence), self.max_entry_bytes)
        except NotFound:
            return None

    def _decode_entry(self, sequence: int, data: bytes) -> EntryT:
        where = f"{self.store.url}/{self.key(sequence)}"
        entry = self.decode(data, where)
        if entry.sequence != sequence:
            raise Corrupt(f"{where} says that it is number {entry.sequence}: it was copied from elsewhere")
        return entry
