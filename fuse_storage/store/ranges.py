"""Keys, entries of listings and ranges of bytes; near ranges are joined, to be read together. Knows no store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fuse_storage.errors import RESTORE_HINT, Corrupt, StorageError

ByteRange = tuple[int, int]
"""(offset, length) in bytes."""

STAGING_FOLDER = "_tmp"
"""The folder in which a local store prepares files; its keys belong to nobody, and no listing shows them."""

MAX_FILE_BYTES = 1 << 62
"""No file is longer."""


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One entry of a listing. ``modified`` is by the store's own clock, in UTC. ``etag``: where the store has one."""

    key: str
    size: int
    modified: datetime
    etag: str | None = None


def validate_key(key: str) -> str:
    """The key itself. Raises StorageError for one that could leave the store's folder, whoever wrote it."""
    parts = key.split("/")
    if parts[0] == STAGING_FOLDER or "\\" in key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise StorageError(
            f"{key!r} is no key: it must be a relative path without '.', '..' and empty parts, "
            f"outside {STAGING_FOLDER}/"
        )
    return key


def coalesce_ranges(ranges: Sequence[ByteRange], gap: int) -> list[ByteRange]:
    """The fewest ranges, in order, that cover these, joining those with at most ``gap`` bytes between them.

    Raises Corrupt for a range that cannot be.

    >>> coalesce_ranges([(100, 10), (0, 10), (15, 5)], gap=8)
    [(0, 20), (100, 10)]
    """
    joined: list[ByteRange] = []
    for offset, length in sorted(r for r in ranges if r[1]):
        if offset < 0 or length < 0 or offset + length > MAX_FILE_BYTES:
            raise Corrupt(
                f"bytes {offset} to {offset + length} are in no file: what says so is damaged; {RESTORE_HINT}"
            )
        if joined and offset <= (end := sum(joined[-1])) + gap:
            joined[-1] = (joined[-1][0], max(end, offset + length) - joined[-1][0])
        else:
            joined.append((offset, length))
    return joined


def slice_ranges(
    ranges: Sequence[ByteRange], spans: Sequence[ByteRange], fetched: Sequence[bytes], url: str
) -> list[bytes]:
    """The bytes of each range, cut from the spans that ``coalesce_ranges`` made of them.

    ``fetched``: the bytes of each span, in order. Raises Corrupt if a span has other than its length of bytes.
    """
    for (offset, length), data in zip(spans, fetched, strict=True):
        if len(data) != length:
            raise Corrupt(
                f"{url} ends at byte {offset + len(data)}, and should go on to {offset + length}: it "
                f"was truncated; {RESTORE_HINT}"
            )
    if list(ranges) == list(spans):
        return list(fetched)
    starts = [offset for offset, _ in spans]
    return [_slice_range(r, starts, fetched) for r in ranges]


def _slice_range(byte_range: ByteRange, starts: Sequence[int], fetched: Sequence[bytes]) -> bytes:
    offset, length = byte_range
    if not length:
        return b""
    span = bisect_right(starts, offset) - 1
    return fetched[span][offset - starts[span] : offset - starts[span] + length]
