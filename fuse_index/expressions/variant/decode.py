"""The variant binary encoding, read: a value as Python has it, whole or what lies at a path of it.

The layout is that of Parquet's VariantEncoding.md, version 1. Nothing that a length or an offset says is believed
beyond the bytes that are there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from fuse_index.expressions.errors import NotReproducible
from fuse_storage import (
    VARIANT_OBJECT,
    MalformedVariant,
    array_places,
    byte_slice,
    little_endian,
    names_of_metadata,
    object_parts,
)

_PRIMITIVE, _SHORT_TEXT = 0, 1
_MAX_DEPTH = 500
"""Objects and arrays within each other that are read here."""
_EPOCH_DAY, _EPOCH, _EPOCH_UTC = date(1970, 1, 1), datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)

_EXACT = Context(prec=50)

MISSING = object()
"""What lies at a path that a value does not have."""


class Float32(float):
    """A number that the encoding holds in 32 bits."""

    __slots__ = ()


class Exotic(str):
    """A value of a type that Spark lacks (UUID, a time of day, nanoseconds), as text."""

    __slots__ = ()


VariantStep = str | int


def decode(value: bytes, metadata: bytes) -> Any:
    """The value as Python has it: a dict, list, str, int, Decimal, float, bool, None, bytes, date or datetime.

    Raises MalformedVariant, and NotReproducible for what Python cannot hold.
    """
    return decode_at(value, metadata, ())


def decode_at(value: bytes, metadata: bytes, steps: Sequence[VariantStep]) -> Any:
    """What lies at a path, by names in objects and places in arrays; MISSING for nothing. Raises as ``decode``."""
    reader = _Reader(value, names_of_metadata(metadata))
    try:
        place = 0
        for step in steps:
            found = reader.member(place, step) if isinstance(step, str) else reader.element(place, step)
            if found is None:
                return MISSING
            place = found
        return reader.value(place, _MAX_DEPTH)
    except (IndexError, struct.error, UnicodeDecodeError) as problem:
        raise MalformedVariant(f"a variant of {len(value)} bytes: {problem}") from None
    except OverflowError as beyond:
        raise NotReproducible(f"a date beyond those of Python: {beyond}") from None


@dataclass(slots=True)
class _Reader:
    data: bytes
    names: tuple[str, ...]

    def value(self, at: int, depth: int) -> Any:
        header = self.data[at]
        kind, info = header & 3, header >> 2
        if kind == _PRIMITIVE:
            return self._primitive(info, at + 1)
        if kind == _SHORT_TEXT:
            return byte_slice(self.data, at + 1, at + 1 + info).decode()
        if not depth:
            raise NotReproducible(f"a variant of more than {_MAX_DEPTH} levels")
        if kind == VARIANT_OBJECT:
            return {name: self.value(place, depth - 1) for name, place in self._members(at)}
        return [self.value(place, depth - 1) for place in array_places(self.data, at)]

    def member(self, at: int, name: str) -> int | None:
        """Where the member of this name lies, if there is an object here that has it."""
        if self.data[at] & 3 != VARIANT_OBJECT:
            return None
        return next((place for known, place in self._members(at) if known == name), None)

    def element(self, at: int, number: int) -> int | None:
        """Where the element at this place lies, if there is an array here that has it."""
        if self.data[at] & 3 <= VARIANT_OBJECT:
            return None
        places = array_places(self.data, at)
        return places[number] if number < len(places) else None

    def _members(self, at: int) -> Iterator[tuple[str, int]]:
        parts = object_parts(self.data, at)
        return ((self.names[name], parts.start + offset) for name, offset in zip(parts.ids, parts.offsets, strict=True))

    def _primitive(self, info: int, at: int) -> Any:
        if info in _CONSTANTS:
            return _CONSTANTS[info]
        if info in (15, 16):
            length = little_endian(self.data, at, 4)
            data = byte_slice(self.data, at + 4, at + 4 + length)
            return data if info == 15 else data.decode()
        if info not in _FIXED:
            raise MalformedVariant(f"a value of the unknown type {info}")
        width, read = _FIXED[info]
        return read(byte_slice(self.data, at, at + width))


def _int(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _decimal(data: bytes) -> Decimal:
    if data[0] > 38 or abs(_int(data[1:])) >= 10**38:
        raise MalformedVariant(f"a decimal of scale {data[0]}")
    return Decimal(_int(data[1:])).scaleb(-data[0], _EXACT)


def _time(data: bytes) -> Exotic:
    return Exotic((_EPOCH + timedelta(microseconds=_int(data) % 86_400_000_000)).time().isoformat())


def _nanoseconds(epoch: datetime) -> Callable[[bytes], Exotic]:
    def read(data: bytes) -> Exotic:
        seconds, rest = divmod(_int(data), 1_000_000_000)
        clock = (epoch + timedelta(seconds=seconds)).isoformat(" ")
        return Exotic(f"{clock[:19]}.{rest:09}{clock[19:]}")

    return read


_CONSTANTS = {0: None, 1: True, 2: False}
_FIXED: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    3: (1, _int),
    4: (2, _int),
    5: (4, _int),
    6: (8, _int),
    7: (8, lambda data: struct.unpack("<d", data)[0]),
    8: (5, _decimal),
    9: (9, _decimal),
    10: (17, _decimal),
    11: (4, lambda data: _EPOCH_DAY + timedelta(days=_int(data))),
    12: (8, lambda data: _EPOCH_UTC + timedelta(microseconds=_int(data))),
    13: (8, lambda data: _EPOCH + timedelta(microseconds=_int(data))),
    14: (4, lambda data: Float32(struct.unpack("<f", data)[0])),
    17: (8, _time),
    18: (8, _nanoseconds(_EPOCH_UTC)),
    19: (8, _nanoseconds(_EPOCH)),
    20: (16, lambda data: Exotic(UUID(bytes=data))),
}
"""Primitive types of one width by their numbers: bytes, and what these are."""
