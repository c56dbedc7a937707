"""The variant binary encoding's layout of names, objects and arrays: what a value is made of, but for scalars.

Source: Parquet's VariantEncoding.md, version 1. Nothing that a length or an offset says is believed beyond the bytes
that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

VARIANT_OBJECT = 2
"""The basic type of objects, in the lowest two bits of a value."""
_VERSION, _VERSION_BITS = 1, 0x0F


class MalformedVariant(ValueError):
    """Bytes that are no variant."""


def little_endian(data: bytes, start: int, width: int) -> int:
    """A number of so many bytes. Raises IndexError where there are fewer."""
    return int.from_bytes(byte_slice(data, start, start + width), "little")


def byte_slice(data: bytes, start: int, end: int) -> bytes:
    """Some bytes of others. Raises IndexError where there are fewer."""
    if not 0 <= start <= end <= len(data):
        raise IndexError(f"bytes {start} to {end} of {len(data)}")
    return data[start:end]


@lru_cache(maxsize=256)
def names_of_metadata(metadata: bytes) -> tuple[str, ...]:
    """The names in a metadata, by their ids; it is read once for rows of one shape. Raises MalformedVariant."""
    if not metadata or metadata[0] & _VERSION_BITS != _VERSION:
        raise MalformedVariant(f"metadata that begins with {metadata[:1].hex() or 'nothing'}")
    width = (metadata[0] >> 6) + 1
    try:
        count = little_endian(metadata, 1, width)
        texts = 1 + (count + 2) * width
        if texts > len(metadata):
            raise MalformedVariant(f"metadata of {count} names in {len(metadata)} bytes")
        edges = [texts + little_endian(metadata, 1 + (each + 1) * width, width) for each in range(count + 1)]
        return tuple(byte_slice(metadata, edges[each], edges[each + 1]).decode() for each in range(count))
    except (IndexError, UnicodeDecodeError) as problem:
        raise MalformedVariant(f"metadata of {len(metadata)} bytes: {problem}") from None


def metadata_of_names(names: Sequence[str]) -> bytes:
    """The metadata of these names, whose ids are their places. Raises UnicodeEncodeError for half a letter."""
    texts = [name.encode() for name in names]
    edges = list(accumulate(map(len, texts), initial=0))
    width = bytes_of(max(edges[-1], len(texts)))
    numbers = b"".join(number.to_bytes(width, "little") for number in (len(texts), *edges))
    return bytes([_VERSION | (width - 1) << 6]) + numbers + b"".join(texts)


@dataclass(frozen=True, slots=True)
class ObjectParts:
    """Where an object's values lie. ``ids``: of its names; ``offsets``: from ``start`` on, of the value of each."""

    ids: list[int]
    offsets: list[int]
    start: int


def object_parts(data: bytes, at: int) -> ObjectParts:
    """The parts of the object that begins at byte ``at``. Raises IndexError."""
    info = data[at] >> 2
    count, ids = _count(data, at + 1, bool(info >> 4 & 1))
    id_width, width = (info >> 2 & 3) + 1, (info & 3) + 1
    offsets = ids + count * id_width
    start = _values_after(data, offsets, count, width)
    return ObjectParts(
        [little_endian(data, ids + each * id_width, id_width) for each in range(count)],
        [little_endian(data, offsets + each * width, width) for each in range(count)],
        start,
    )


def array_places(data: bytes, at: int) -> list[int]:
    """Where each element of the array at byte ``at`` begins. Raises IndexError."""
    info = data[at] >> 2
    count, offsets = _count(data, at + 1, bool(info >> 2 & 1))
    width = (info & 3) + 1
    start = _values_after(data, offsets, count, width)
    return [start + little_endian(data, offsets + each * width, width) for each in range(count)]


def _count(data: bytes, at: int, is_large: bool) -> tuple[int, int]:
    """How many members or elements there are, and where what follows begins."""
    width = 4 if is_large else 1
    return little_endian(data, at, width), at + width


def _values_after(data: bytes, offsets: int, count: int, width: int) -> int:
    start = offsets + (count + 1) * width
    if start > len(data):
        raise IndexError(f"{count} values in {len(data)} bytes")
    return start


def name_order(name: str) -> bytes:
    """What names in an object are ordered by: as Java orders them, since Spark looks a name up by halves."""
    return name.encode("utf-16-be", "surrogatepass")


def object_bytes(ids: Sequence[int], offsets: Sequence[int], values: Sequence[bytes]) -> bytes:
    """An object. ``ids``: of its names, in their order; ``offsets``: where in ``values``, joined, each begins."""
    end, is_large = sum(map(len, values)), len(ids) > 255
    id_width, width = bytes_of(max(ids, default=0)), bytes_of(end)
    return b"".join(
        [
            bytes([(is_large << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | VARIANT_OBJECT]),
            len(ids).to_bytes(4 if is_large else 1, "little"),
            *(number.to_bytes(id_width, "little") for number in ids),
            *(offset.to_bytes(width, "little") for offset in (*offsets, end)),
            *values,
        ]
    )


def array_bytes(elements: Sequence[bytes]) -> bytes:
    """An array of these values."""
    edges, is_large = list(accumulate(map(len, elements), initial=0)), len(elements) > 255
    width = bytes_of(edges[-1])
    return b"".join(
        [
            bytes([(is_large << 2 | (width - 1)) << 2 | 3]),
            len(elements).to_bytes(4 if is_large else 1, "little"),
            *(edge.to_bytes(width, "little") for edge in edges),
            *elements,
        ]
    )


def text_bytes(text: bytes) -> bytes:
    """A text, which is UTF-8."""
    return bytes([len(text) << 2 | 1]) + text if len(text) < 64 else _long(16, text)


def binary_bytes(data: bytes) -> bytes:
    """A value of bytes."""
    return _long(15, data)


def _long(type_number: int, data: bytes) -> bytes:
    return bytes([type_number << 2]) + len(data).to_bytes(4, "little") + data


def bytes_of(largest: int) -> int:
    """The bytes in which numbers up to this one are written."""
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 3 if largest < 1 << 24 else 4
