"""Branches: which snapshot a name means now, and which it meant before.

A branch is a chain of entries, one file per commit, created once and never changed, contiguous and never deleted: its
head, and the log of all that happened. So a stale idea of the head is harmless: walk on from it. Nothing is listed to
find the head; it is found by reading entries, from an advisory hint. Knows no snapshot's content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from fuse_storage.errors import Corrupt, FormatError, InvalidArgument, NotFound, StorageError, Unsupported
from fuse_storage.metadata.encoding import (
    TIMESTAMP_RESOLUTION,
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
)
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.store.store import Store

MAIN_BRANCH = "main"
REF_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_PARALLEL_REF_READS = 32
"""Entries that are read at once while walking through history."""


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
            timestamp = datetime.fromisoformat(members["timestamp"])
            entry = RefEntry(
                kind, members["sequence"], members["commit"], members["parent"], timestamp, members["operation"]
            )
            if kind == "tombstone":
                return entry
            snapshot = members["snapshot"]
            return replace(entry, snapshot_id=snapshot["id"], reference=FileRef.from_json(snapshot))
        except (LookupError, TypeError, ValueError) as problem:
            raise FormatError(f"{where} is no entry of a branch: {problem!r}") from problem


@dataclass(frozen=True, slots=True)
class Branch:
    """The chain of entries of one branch, which need not exist. Raises InvalidArgument for what is no name."""

    store: Store
    name: str

    def __post_init__(self) -> None:
        check_ref_name(self.name, "branch")

    def key(self, sequence: int) -> str:
        return f"_refs/branch/{self.name}/{sequence:020}.json"

    def find(self, sequence: int) -> RefEntry | None:
        """Read the entry with this number; None if the branch is not that long."""
        data = self._read(sequence)
        return None if data is None else self._decode_entry(sequence, data)

    def entry(self, sequence: int) -> RefEntry:
        """Read the entry with this number, which must be there. Raises Corrupt if it is not."""
        entry = self.find(sequence)
        if entry is None:
            raise Corrupt(
                f"{self.store.url}/{self.key(sequence)} is missing from the midst of its branch: restore it from a copy"
            )
        return entry

    def head(self, known: RefEntry | None = None) -> RefEntry:
        """Find the newest entry. ``known``: one of the branch, from which to go on. Raises NotFound without any.

        Steps double until an entry is missing, then the gap is halved: about two reads for each doubling of the number
        of commits since ``known``, or since the hint.
        """
        low, data = self._start_from_hint() if known is None else (known.sequence, b"")
        step = 1
        while (further := self._read(low + step)) is not None:
            low, data, step = low + step, further, step * 2
        missing = low + step
        while missing - low > 1:
            middle = (low + missing) // 2
            if (further := self._read(middle)) is None:
                missing = middle
            else:
                low, data = middle, further
        return known if known is not None and low == known.sequence else self._decode_entry(low, data)

    def newest_entry(self) -> RefEntry | None:
        """Find the newest entry, a tombstone too; None if there never was such a branch."""
        return self.head() if self.find(1) is not None else None

    def create(self, entry: RefEntry) -> None:
        """Commit: nothing else makes a snapshot visible. Raises AlreadyExists if someone else's entry is there."""
        self.store.create(self.key(entry.sequence), entry.encode())

    def write_head_hint(self, sequence: int) -> None:
        """Tell later readers where the head was. Advisory, so a failure is of no account."""
        with suppress(StorageError):
            self.store.create(self._hint, str(sequence).encode(), overwrite=True)

    def walk(self, newest: int, oldest: int = 1) -> Iterator[RefEntry]:
        """Read the entries from ``newest`` down to ``oldest``, some of them ahead."""
        with ThreadPoolExecutor(MAX_PARALLEL_REF_READS, "fuse-refs") as pool:
            for start in range(newest, oldest - 1, -MAX_PARALLEL_REF_READS):
                yield from pool.map(self.entry, range(start, max(start - MAX_PARALLEL_REF_READS, oldest - 1), -1))

    def at_time(self, when: datetime) -> RefEntry:
        """Find the newest entry that is not later than ``when``. Raises NotFound if the branch began after it."""
        low, missing = 0, self.head().sequence + 1
        newest = None
        while missing - low > 1:
            middle = (low + missing) // 2
            entry = self.entry(middle)
            if entry.timestamp <= when:
                low, newest = middle, entry
            else:
                missing = middle
        if newest is None:
            first = format_timestamp(self.entry(1).timestamp)
            raise NotFound(f"{self.store.url}: branch {self.name!r} began at {first}, after {format_timestamp(when)}")
        return newest

    @property
    def _hint(self) -> str:
        return f"_refs/branch/{self.name}/_hint"

    def _start_from_hint(self) -> tuple[int, bytes]:
        """Read the entry that the hint names, or else the first: its number and bytes. Raises NotFound without any."""
        with suppress(StorageError, ValueError):
            hinted = max(int(self.store.read(self._hint)[:20]), 1)
            if (data := self._read(hinted)) is not None:
                return hinted, data
        if (data := self._read(1)) is None:
            raise NotFound(f"{self.store.url} has no branch {self.name!r}")
        return 1, data

    def _read(self, sequence: int) -> bytes | None:
        try:
            return self.store.read(self.key(sequence))
        except NotFound:
            return None

    def _decode_entry(self, sequence: int, data: bytes) -> RefEntry:
        where = f"{self.store.url}/{self.key(sequence)}"
        entry = RefEntry.decode(data, where)
        if entry.sequence != sequence:
            raise Corrupt(f"{where} says that it is number {entry.sequence}: it was copied from elsewhere")
        return entry


def next_timestamp(parent: datetime | None, now: datetime | None = None) -> datetime:
    """Choose the time of a commit: now, or just after the parent's where this writer's clock is behind."""
    now = now or datetime.now(UTC)
    return now if parent is None else max(now, parent + TIMESTAMP_RESOLUTION)


def is_snapshot_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


def check_ref_name(name: str, what: str) -> None:
    """Raises InvalidArgument for what cannot name a branch or a tag."""
    if REF_NAME_PATTERN.fullmatch(name) is None:
        raise InvalidArgument(
            f"{name!r} is no name for a {what}: use up to 100 letters, digits and . _ - and "
            f"begin with a letter or digit"
        )
