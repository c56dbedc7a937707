"""References from file to file: path, length and checksum, by which whoever reads a whole file verifies it.

Ids are UUIDs of version 7 in hex, so names sort by the time they were made at. Does not know what any file means.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import xxhash

from fuse_storage.errors import Corrupt, FormatError, NotFound
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import FileRefMembers, convert_members

MAX_METADATA_BYTES = 1 << 30
"""Bytes of a file of metadata, which is read whole."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A whole file: its key in the table's store, its bytes, and their xxh3-128 in hex."""

    path: str
    length: int
    hash: str

    @staticmethod
    def for_data(path: str, data: bytes) -> FileRef:
        return FileRef(path, len(data), xxhash.xxh3_128_hexdigest(data))

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "length": self.length, "hash": self.hash}

    @staticmethod
    def from_json(members: Mapping[str, Any]) -> FileRef:
        try:
            return FileRef.from_members(convert_members(dict(members), FileRefMembers))
        except ValueError as problem:
            raise FormatError(f"{members!r} is no reference: it needs path, length and hash; {problem}") from problem

    @staticmethod
    def from_members(members: FileRefMembers) -> FileRef:
        return FileRef(members.path, members.length, members.hash)


def read_verified(store: Store, reference: FileRef, limit: int = MAX_METADATA_BYTES) -> bytes:
    """Read all bytes of the file. Raises NotFound if it is gone, Corrupt if they are not those that were written.

    ``limit``: of its bytes; a reference to more than these is none of a writer.
    """
    if reference.length > limit:
        raise Corrupt(
            f"{store.url}/{reference.path} cannot have {reference.length} bytes: what refers to it is damaged"
        )
    try:
        data = read_at_most(store, reference.path, reference.length)
    except NotFound as missing:
        raise NotFound(
            f"{missing}, although the table refers to it: an old snapshot may have been collected"
        ) from missing
    if len(data) != reference.length:
        raise Corrupt(
            f"{store.url}/{reference.path} has {len(data)} bytes instead of {reference.length}: restore it from a copy"
        )
    if xxhash.xxh3_128_hexdigest(data) != reference.hash:
        raise Corrupt(f"{store.url}/{reference.path} fails its checksum: restore it from a copy")
    return data


def create_file(store: Store, path: str, data: bytes) -> FileRef:
    """Write a file, and give the reference to it."""
    store.create(path, data)
    return FileRef.for_data(path, data)


def new_id() -> str:
    """Make an id of 32 hex digits: 48 bits of milliseconds since 1970, then version, variant and 74 random bits."""
    random = int.from_bytes(os.urandom(10))
    upper, lower = random >> 64 & 0xFFF, random & (1 << 62) - 1
    return f"{time.time_ns() // 1_000_000:012x}{0x7000 | upper:04x}{1 << 63 | lower:016x}"


def id_time(text: str) -> datetime:
    """When an id was made (UTC), by the clock of whoever made it."""
    return datetime.fromtimestamp(int(text[:12], 16) / 1000, UTC)


def is_snapshot_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None
