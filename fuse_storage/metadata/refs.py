"""Branches: which snapshot a name means now, and which it meant before.

A branch is a chain of entries, one file per commit, created once and never changed, contiguous and never deleted: its
head, and the log of all that happened. An entry that is missing nevertheless, in a copy or a restored backup, must not
pass for the end: what follows would be lost. So the end is where a listing, begun at an advisory hint, shows no more.
Knows no snapshot's content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fuse_storage.errors import Corrupt, FormatError, InvalidArgument, NotFound, StorageError, Unsupported
from fuse_storage.metadata.encoding import (
    TIMESTAMP_RESOLUTION,
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
    utc_now,
)
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.store.abilities import list_keys_after, read_at_most
from fuse_storage.store.cache import cache_of
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import (
    MAX_HINT_BYTES,
    MAX_REF_BYTES,
    EntryMembers,
    convert_members,
    parse_stored_time,
)

MAIN_BRANCH = "main"
REF_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_PARALLEL_REF_READS = 32
"""Entries that are read at once while walking through history."""
RECOVER_HINT = "restore it from a copy, or make it anew (fuse-index recover)"
"""The end of messages about a missing entry: what is left to do."""
CLOCK_TOLERANCE = timedelta(hours=1)
"""How far two clocks that are right may differ."""
_BRANCH_FOLDER = "_refs/branch"
_BRANCH_FILE = re.compile(
    rf"{_BRANCH_FOLDER}/(?P<name>{REF_NAME_PATTERN.pattern})/(?:(?P<entry>[0-9]{{20}})\.json|_hint)"
)


@dataclass(frozen=True, slots=True)
class RefEntry:
    """One commit to a branch.

    ``kind``: "snapshot", or "tombstone" where the branch was dropped (then there is no snapshot). ``parent``: the
    commit before. ``timestamp`` (UTC) is later than the parent's, whatever the clocks of the writers say.
    """

    kind: str
    sequence: int
    commit_id: str
    parent: str | None
    timestamp: datetime
    operation: str
    snapshot_id: str | None = None
    reference: FileRef | None = None

    def __str__(self) -> str:
        return f"{self.operation} (commit {self.commit_id}, number {self.sequence}, {format_timestamp(self.timestamp)})"

    def encode(self) -> bytes:
        """Write the entry as checksummed JSON. No other commit has these bytes, so a store tells them apart."""
        members: dict[str, Any] = {
            "kind": self.kind,
            "sequence": self.sequence,
            "commit": self.commit_id,
            "parent": self.parent,
            "timestamp": format_timestamp(self.timestamp),
            "operation": self.operation,
        }
        if self.reference is not None:
            members["snapshot"] = {"id": self.snapshot_id, **self.reference.to_json()}
        return encode_checksummed_json(members)

    @staticmethod
    def decode(data: bytes, where: str) -> RefEntry:
        """Raises Unsupported for a kind of a newer version, Corrupt for bytes that are not as they were written."""
        members = decode_checksummed_json(data, where)
        if (kind := members.get("kind")) not in ("snapshot", "tombstone"):
            raise Unsupported(
                f"{where} is an entry of kind {kind!r}, which this version does not know: upgrade fuse-index"
            )
        try:
            found = convert_members(members, EntryMembers)
            timestamp = parse_stored_time(found.timestamp)
            entry = RefEntry(kind, found.sequence, found.commit, found.parent, timestamp, found.operation)
            if kind == "tombstone":
                return entry
            if found.snapshot is None:
                raise ValueError("it names no snapshot")
            return replace(entry, snapshot_id=found.snapshot.id, reference=FileRef.from_members(found.snapshot))
        except ValueError as problem:
            raise FormatError(f"{where} is no entry of a branch: {problem}") from problem


@dataclass(frozen=True, slots=True)
class Branch:
    """The chain of entries of one branch, which need not exist. Raises InvalidArgument for what is no name."""

    store: Store
    name: str

    def __post_init__(self) -> None:
        check_ref_name(self.name, "branch")

    def key(self, sequence: int) -> str:
        return f"{_BRANCH_FOLDER}/{self.name}/{sequence:020}.json"

    def find(self, sequence: int) -> RefEntry | None:
        """Read the entry with this number; None if the branch is not that long."""
        data = self._read(sequence)
        return None if data is None else self._decode_entry(sequence, data)

    def entry(self, sequence: int) -> RefEntry:
        """Read the entry with this number, which must be there. Raises Corrupt if it is not."""
        entry = self.find(sequence)
        if entry is None:
            raise self._missing(sequence, "is missing from the midst of its branch")
        return entry

    def head(self, known: RefEntry | None = None) -> RefEntry:
        """Find the newest entry. ``known``: one of the branch, from which to go on. Raises NotFound without any.

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

    def complete_head(self) -> RefEntry:
        """Find the newest entry, for whoever relies on all of the others. Raises Corrupt if any is missing."""
        return self.entry(self._last_of_all(self.read_hint()))

    def newest_entry(self) -> RefEntry | None:
        """Find the newest entry, a tombstone too; None if there never was such a branch. Raises as ``head``."""
        try:
            return self.head()
        except NotFound:
            return None

    def sequences(self, after: int = 0) -> list[int]:
        """List the numbers of the entries that are there, from the first greater than ``after``, in order."""
        found = map(_BRANCH_FILE.fullmatch, list_keys_after(self.store, self.key(after)))
        return sorted(int(match["entry"]) for match in found if match is not None and match["entry"])

    def end_after(self, sequence: int) -> int:
        """List what follows an entry: the number of the newest one, or ``sequence`` itself if none does.

        Raises Corrupt, naming it, if an entry in between is missing.
        """
        newest = sequence
        for present in self.sequences(sequence):
            for number in range(newest + 1, present):
                if self._read(number) is None:  # else it came while the others were listed
                    raise self._missing(number, f"is missing, and number {present} of its branch is there")
            newest = present
        return newest

    def create(self, entry: RefEntry) -> None:
        """Commit: nothing else makes a snapshot visible. Raises AlreadyExists if someone else's entry is there."""
        self.store.create(self.key(entry.sequence), entry.encode())
        if (self._known_end() or 0) == entry.sequence - 1:
            self._remember_end(entry.sequence)

    def read_hint(self) -> int:
        """Read the number of the entry that the hint names; 0 where there is no hint, or nonsense."""
        with suppress(StorageError):
            text = read_at_most(self.store, self._hint, MAX_HINT_BYTES)
            return int(text) if re.fullmatch(rb"[0-9]{1,20}", text) else 0
        return 0

    def write_head_hint(self, sequence: int) -> None:
        """Tell later readers where the head was. Advisory, so a failure is of no account."""
        with suppress(StorageError):
            self.store.create(self._hint, str(sequence).encode(), overwrite=True)

    def walk(self, newest: int, oldest: int = 1) -> Iterator[RefEntry]:
        """Read the entries from ``newest`` down to ``oldest``, some of them ahead.

        Raises Corrupt where one is missing, or is not the parent of the one after it.
        """
        later: RefEntry | None = None
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

    def commit_times(self, now: datetime) -> dict[int, datetime]:
        """When each entry was made, at the latest, by its number and by the store's own clock. Lists the branch.

        ``now``: the time by the store's clock. A file whose time is yet to come, or before that of an earlier entry,
        was dated by a clock that was wrong; its entry came before the next one, or else just now.
        """
        modified = {}
        for file in self.store.list(f"{_BRANCH_FOLDER}/{self.name}"):
            if (match := _BRANCH_FILE.fullmatch(file.key)) is not None and match["entry"]:
                modified[int(match["entry"])] = file.modified
        times = dict[int, datetime]()
        latest = datetime.min.replace(tzinfo=UTC)
        for sequence in sorted(modified):
            if latest <= modified[sequence] <= now:
                times[sequence] = latest = modified[sequence]
        bound = now
        for sequence in sorted(modified, reverse=True):
            bound = times.setdefault(sequence, bound)
        return times

    @property
    def _hint(self) -> str:
        return f"{_BRANCH_FOLDER}/{self.name}/_hint"

    def _last_of_all(self, hinted: int) -> int:
        """The number of the newest entry, where all before it are there, and one that the hint names."""
        newest = self.end_after(0)
        if newest < hinted:
            raise self._missing(hinted, "is missing, though the hint beside it says that it was there")
        if not newest:
            raise NotFound(f"{self.store.url} has no branch {self.name!r}")
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
        return ("end of branch", self.store.url, self.name)

    def _missing(self, sequence: int, how: str) -> Corrupt:
        return Corrupt(f"{self.store.url}/{self.key(sequence)} {how}: {RECOVER_HINT}")

    def _read(self, sequence: int) -> bytes | None:
        try:
            return read_at_most(self.store, self.key(sequence), MAX_REF_BYTES)
        except NotFound:
            return None

    def _decode_entry(self, sequence: int, data: bytes) -> RefEntry:
        where = f"{self.store.url}/{self.key(sequence)}"
        entry = RefEntry.decode(data, where)
        if entry.sequence != sequence:
            raise Corrupt(f"{where} says that it is number {entry.sequence}: it was copied from elsewhere")
        return entry


def list_branch_names(store: Store) -> list[str]:
    """List the names of branches of which there is an entry, or a hint. Strays in their folders are passed over."""
    found = (_BRANCH_FILE.fullmatch(listed.key) for listed in store.list(_BRANCH_FOLDER))
    return sorted({match["name"] for match in found if match is not None})


def next_timestamp(parent: datetime | None, now: datetime | None = None) -> datetime:
    """Choose the time of a commit: now, or just after the parent's where this writer's clock is behind."""
    now = now or utc_now()
    return now if parent is None else max(now, parent + TIMESTAMP_RESOLUTION)


def check_ref_name(name: str, what: str) -> None:
    """Raises InvalidArgument for what cannot name a branch or a tag."""
    if REF_NAME_PATTERN.fullmatch(name) is None:
        raise InvalidArgument(
            f"{name!r} is no name for a {what}: use up to 100 letters, digits and . _ - and "
            f"begin with a letter or digit"
        )
