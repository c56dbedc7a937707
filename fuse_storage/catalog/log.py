"""The log of a warehouse: a chain with one entry for each change of its names, and so their history.

One chain for all names, and not one for each: a rename changes two at once, and whoever lists thousands reads what
changed since a checkpoint, and not thousands of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fuse_storage.catalog.actions import ACTION_NAMES, CatalogAction
from fuse_storage.errors import FormatError, InvalidArgument, NotFound, StorageError, Unsupported
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json, format_timestamp
from fuse_storage.store.chain import Chain
from fuse_storage.validation.json_members import MAX_REF_BYTES, Count, convert_members, parse_stored_time

LOG_FOLDER = "_catalog/log"
_RESTORE_HINT = "restore it from a copy of the warehouse"


class _EntryMembers(msgspec.Struct):
    kind: str
    sequence: Count
    commit: str
    parent: str | None
    timestamp: str
    actions: list[CatalogAction]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One change, of one or more names at once. ``timestamp`` (UTC) is later than that of the entry before."""

    sequence: int
    commit_id: str
    parent: str | None
    timestamp: datetime
    actions: tuple[CatalogAction, ...]

    def encode(self) -> bytes:
        """Raises InvalidArgument for more than an entry can hold."""
        members: dict[str, Any] = {
            "kind": "catalog",
            "sequence": self.sequence,
            "commit": self.commit_id,
            "parent": self.parent,
            "timestamp": format_timestamp(self.timestamp),
            "actions": msgspec.to_builtins(self.actions),
        }
        data = encode_checksummed_json(members)
        if len(data) > MAX_REF_BYTES:
            raise InvalidArgument(f"one change of a warehouse would take {len(data)} bytes, and may {MAX_REF_BYTES}")
        return data

    @staticmethod
    def decode(data: bytes, where: str) -> CatalogEntry:
        """Raises Unsupported for what a newer version wrote, Corrupt for bytes that are not as they were written."""
        members = decode_checksummed_json(data, where)
        _check_known(members, where)
        try:
            found = convert_members(members, _EntryMembers)
            return CatalogEntry(
                found.sequence, found.commit, found.parent, parse_stored_time(found.timestamp), tuple(found.actions)
            )
        except (ValueError, StorageError) as problem:
            raise FormatError(f"{where} is no entry of a warehouse: {problem}") from problem


def _check_known(members: dict[str, Any], where: str) -> None:
    if (kind := members.get("kind")) != "catalog":
        raise Unsupported(f"{where} is an entry of kind {kind!r}, which this version does not know: upgrade fuse-index")
    actions = members.get("actions")
    for action in actions if isinstance(actions, list) else []:
        name = action.get("action") if isinstance(action, dict) else None
        if isinstance(name, str) and name not in ACTION_NAMES:
            raise Unsupported(f"{where} does {name!r}, which this version does not know: upgrade fuse-index")


@dataclass(frozen=True, slots=True)
class CatalogLog(Chain[CatalogEntry]):
    """The chain of entries of a warehouse, of which a new one has none."""

    @property
    def folder(self) -> str:
        return LOG_FOLDER

    @property
    def max_entry_bytes(self) -> int:
        return MAX_REF_BYTES

    @property
    def repair_hint(self) -> str:
        return _RESTORE_HINT

    def decode(self, data: bytes, where: str) -> CatalogEntry:
        return CatalogEntry.decode(data, where)

    def absent(self) -> NotFound:
        return NotFound(f"{self.store.url}: nothing was ever done in this warehouse")
