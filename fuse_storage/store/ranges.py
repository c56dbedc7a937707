"""What stores hold, and how what is near is read together. Knows no store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fuse_storage.errors import RESTORE, Corrupt, StorageError

Range = tuple[int, int]
"""(offset, length) in bytes."""

STAGING = "_tmp"
"""The folder in which a local store prepares files; its keys belong to nobody, and no listing shows them."""


@dataclass(frozen=True, slots=True)
class Object:
    """One entry of a listing. ``modified`` is by the store's own clock, in UTC."""

    key: str
    size: int
    modified: datetime


def checked(key: str) -> str:
    """The key itself. Raises StorageError for one that could leave the store's folder, whoever wrote it."""
    parts = key.split("/")
    if parts[0] == STAGING or "\\" in key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise StorageError(
            f"{key!r} is no key: it must be a relative path without '.', '..' and empty parts, outside {STAGING}/"
        )
    return key


def coalesced(ranges: Sequence[Range], gap: int) -> list[Range]:
    """The fewest ranges, in order, that cover these, joining those with at most ``gap`` bytes between them."""
    joined: list[Range] = []
    for offset, length in sorted(r for r in ranges if r[1]):
        if joined and offset <= (end := sum(joined[-1])) + gap:
            joined[-1] = (joined[-1][0], max(end, offset + length) - joined[-1][0])
        else:
            joined.append((offset, length))
    return joined


def carved(ranges: Sequence[Range], spans: Sequence[Range], fetched: Sequence[bytes], where: str) -> list[bytes]:
    """The bytes of each range, from those of the spans that ``coalesced`` made of them. Raises Corrupt if bytes
    lack.
    """
    for (offset, length), data in zip(spans, fetched, strict=True):
        if len(data) != length:
            raise Corrupt(
                f"{where} ends at byte {offset + len(data)}, and should go on to {offset + length}: it "
                f"was truncated; {RESTORE}"
            )
    if list(ranges) == list(spans):
        return list(fetched)
    starts = [offset for offset, _ in spans]
    return [_carve(r, starts, fetched) for r in ranges]


def _carve(wanted: Range, starts: Sequence[int], fetched: Sequence[bytes]) -> bytes:
    offset, length = wanted
    if not length:
        return b""
    place = bisect_right(starts, offset) - 1
    return fetched[place][offset - starts[place] : offset - starts[place] + length]
