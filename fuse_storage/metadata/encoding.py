"""How small metadata is written down: times as text, and JSON with a checksum in it.

People read these files (entries of branches, tags, notices), so they are indented JSON; machines have to notice when
one was damaged or edited, so the last member is a checksum of all the others::

    {
      "kind": "tag",
      "timestamp": "2026-03-01T12:00:00.000000Z",
      "checksum": "0f5a…"
    }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import xxhash

from fuse_storage.errors import Corrupt, InvalidArgument
from fuse_storage.validation.json_members import MAX_REF_BYTES, load_json

TIMESTAMP_RESOLUTION = timedelta(microseconds=1)
"""The least difference between two times that files can tell apart."""


def utc_now() -> datetime:
    """The time by the clock of this machine, which may be wrong; a test puts another in its place."""
    return _clock()


def _clock() -> datetime:
    return datetime.now(UTC)


def format_timestamp(time: datetime) -> str:
    """Write a time as all files hold it: ISO 8601 in UTC, to the microsecond.

    >>> format_timestamp(datetime(2026, 3, 1, 12, tzinfo=UTC))
    '2026-03-01T12:00:00.000000Z'
    """
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode_indented(members: Mapping[str, Any]) -> bytes:
    """Write members as JSON that people read."""
    try:
        return orjson.dumps(members, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except (orjson.JSONEncodeError, TypeError):  # it takes no number beyond 64 bits, and no half of a character
        return json.dumps(members, indent=2, ensure_ascii=False).encode() + b"\n"


def is_iso_time(text: str) -> bool:
    """Tell whether a text is a time in ISO form, with or without a zone."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def require_time_zone(time: datetime, text: str) -> datetime:
    """Give the time back. Raises InvalidArgument, quoting ``text``, if it has no zone."""
    if time.tzinfo is None:
        raise InvalidArgument(f"{text!r} has no time zone: add one, such as {time.isoformat()}+00:00")
    return time


def encode_checksummed_json(members: Mapping[str, Any]) -> bytes:
    """Write members as JSON, indented for people, with a checksum of all of them as the last one."""
    return encode_indented({**members, "checksum": _checksum(members)})


def decode_checksummed_json(data: bytes, where: str, limit: int = MAX_REF_BYTES) -> dict[str, Any]:
    """Read what ``encode_checksummed_json`` wrote. Raises Corrupt, naming ``where``, if the checksum differs."""
    try:
        members = load_json(data, limit)
        if members.pop("checksum") == _checksum(members):
            return members
    except (ValueError, LookupError) as problem:
        raise Corrupt(f"{where} cannot be read: restore it from a copy") from problem
    raise Corrupt(f"{where} fails its checksum: restore it from a copy")


def _checksum(members: Mapping[str, Any]) -> str:
    """Hash the members in their order, as compact JSON: how the file is indented does not matter."""
    return xxhash.xxh3_128_hexdigest(json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode())
