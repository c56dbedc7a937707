"""Branches: which snapshot a name means now, and which it meant before.

A branch is a chain of entries, one file per commit: its head, and the log of all that happened. Knows no snapshot's
content.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fuse_storage.errors import FormatError, InvalidArgument, NotFound, TableUrl, Unsupported
from fuse_storage.metadata.encoding import (
    TIMESTAMP_RESOLUTION,
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
    is_iso_time,
    utc_now,
)
from fuse_storage.metadata.file_ref import FileRef, is_snapshot_id
from fuse_storage.store.chain import Chain
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import (
    MAX_REF_BYTES,
    EntryMembers,
    convert_members,
    parse_stored_time,
)

MAIN_BRANCH = "main"
REF_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
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

    ``kind``: "snapshot", or "tombstone" where the branch was dropped (then there is no snapshot), or "hot" where a hot
    commit is listed among others. ``parent``: the commit before. ``timestamp`` (UTC) is later than the parent's,
    whatever the clocks of the writers say. ``stated_version``: 0 where the entry does not say its version.
    """

    kind: str
    sequence: int
    commit_id: str
    parent: str | None
    timestamp: datetime
    operation: str
    snapshot_id: str | None = None
    reference: FileRef | None = None
    stated_version: int = 0

    @property
    def version(self) -> int:
        """How many states the branch had by then, hot ones too: the sequence, where nothing else is said."""
        return self.stated_version or self.sequence

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
        if self.stated_version:
            members["version"] = self.stated_version
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
            entry = replace(entry, stated_version=found.version)
            if kind == "tombstone":
                return entry
            if found.snapshot is None:
                raise ValueError("it names no snapshot")
            return replace(entry, snapshot_id=found.snapshot.id, reference=FileRef.from_members(found.snapshot))
        except ValueError as problem:
            raise FormatError(f"{where} is no entry of a branch: {problem}") from problem


@dataclass(frozen=True, slots=True)
class Branch(Chain[RefEntry]):
    """The chain of entries of one branch, which need not exist. Raises InvalidArgument for what is no name."""

    name: str

    def __post_init__(self) -> None:
        check_ref_name(self.name, "branch")

    @property
    def folder(self) -> str:
        return f"{_BRANCH_FOLDER}/{self.name}"

    @property
    def max_entry_bytes(self) -> int:
        return MAX_REF_BYTES

    @property
    def repair_hint(self) -> str:
        return RECOVER_HINT

    def decode(self, data: bytes, where: str) -> RefEntry:
        return RefEntry.decode(data, where)

    def absent(self) -> NotFound:
        return NotFound(TableUrl(self.store.url) + f" has no branch {self.name!r}")

    def dropped(self, tombstone: RefEntry) -> NotFound:
        """Make the error for a branch whose newest entry is its tombstone."""
        said = f": branch {self.name!r} was dropped by {tombstone}: open another, or begin it anew"
        return NotFound(TableUrl(self.store.url) + said)

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


def check_new_ref_name(name: str, what: str) -> None:
    """Raises InvalidArgument for what cannot name a new branch or tag. Old ones may look like a version."""
    check_ref_name(name, what)
    if name.isdecimal() or is_snapshot_id(name) or is_iso_time(name):
        raise InvalidArgument(
            f"{name!r} is no name for a {what}: it could be taken for a version, a time or a snapshot id"
        )
