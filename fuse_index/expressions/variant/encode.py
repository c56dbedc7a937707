"""The variant binary encoding, written: JSON text, or a value of Python, as Spark's ``parse_json`` encodes it.

Whole numbers take the fewest bytes; a number with a point and no exponent is a decimal where 38 digits hold it, as
any other it is a double. A name twice in one object is refused, as it is by Spark.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

from fuse_index.expressions.variant.decode import Float32
from fuse_storage import array_bytes, binary_bytes, metadata_of_names, name_order, object_bytes, text_bytes

_MAX_BYTES = 16 << 20
"""Bytes of one value, and of its names, that Spark takes."""
_MAX_DIGITS = 38
_MAX_DEPTH = 500
_EPOCH_DAY, _EPOCH, _EPOCH_UTC = date(1970, 1, 1), datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTS = ((3, 1), (4, 2), (5, 4), (6, 8))
"""Types of whole numbers by their numbers, and the bytes that they have."""


class NoVariant(ValueError):
    """A text that is no JSON, or a value that no variant can be."""


def encode_json(text: str) -> tuple[bytes, bytes]:
    """The value and the metadata of a JSON document. Raises NoVariant."""
    try:
        tree = _DECODER.decode(text)
    except (ValueError, RecursionError) as problem:
        raise NoVariant(f"no JSON: {problem}") from None
    return encode(tree)


def encode(tree: Any) -> tuple[bytes, bytes]:
    """The value and the metadata of a value of Python, as ``decode`` gives one. Raises NoVariant."""
    builder = _Builder()
    value = builder.value(tree, _MAX_DEPTH)
    metadata = builder.metadata()
    if max(len(value), len(metadata)) > _MAX_BYTES:
        raise NoVariant(f"a variant of {len(value):,} bytes, and {_MAX_BYTES:,} are the most")
    return value, metadata


def _number(text: str) -> Decimal | float:
    """A number with a point or an exponent."""
    if "e" not in text.lower():
        exact = Decimal(text)
        parts = exact.as_tuple()
        if len(parts.digits) <= _MAX_DIGITS and -int(parts.exponent) <= _MAX_DIGITS:
            return exact
    return float(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} comes twice in an object")
    return members


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is none")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_float=_number, parse_constant=_refuse)


@dataclass(slots=True)
class _Builder:
    ids: dict[str, int] = field(default_factory=dict)

    def metadata(self) -> bytes:
        for name in self.ids:
            _text(name)  # is refused where it has half a letter
        return metadata_of_names(list(self.ids))

    def value(self, tree: Any, depth: int) -> bytes:
        match tree:
            case None:
                return b"\0"
            case bool():
                return _header(1 if tree else 2)
            case str():
                return text_bytes(_text(tree))
            case int():
                return _whole(tree)
            case Decimal():
                return _decimal(tree)
            case Float32():
                return _header(14) + struct.pack("<f", tree)
            case float():
                return _header(7) + struct.pack("<d", tree)
            case bytes():
                return binary_bytes(tree)
            case datetime() if tree.tzinfo is None:
                return _header(13) + ((tree - _EPOCH) // _MICROSECOND).to_bytes(8, "little", signed=True)
            case datetime():
                return _header(12) + ((tree - _EPOCH_UTC) // _MICROSECOND).to_bytes(8, "little", signed=True)
            case date():
                return _header(11) + (tree - _EPOCH_DAY).days.to_bytes(4, "little", signed=True)
            case dict() | list() | tuple() if not depth:
                raise NoVariant(f"more than {_MAX_DEPTH} levels")
            case dict():
                return self._object(tree, depth)
            case list() | tuple():
                return array_bytes([self.value(each, depth - 1) for each in tree])
        raise NoVariant(f"{tree!r} is {type(tree).__name__}, which no variant can be")

    def _object(self, tree: dict[Any, Any], depth: int) -> bytes:
        members = []
        for name, value in tree.items():
            if not isinstance(name, str):
                raise NoVariant(f"the name {name!r} in an object is no text")
            number = self.ids.setdefault(name, len(self.ids))
            members.append((name, number, self.value(value, depth - 1)))
        edges = list(accumulate((len(data) for _, _, data in members), initial=0))  # values lie as they came
        order = sorted(range(len(members)), key=lambda each: name_order(members[each][0]))
        ids, offsets = [members[each][1] for each in order], [edges[each] for each in order]
        return object_bytes(ids, offsets, [data for _, _, data in members])


def _header(type_number: int) -> bytes:
    return bytes([type_number << 2])


def _text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise NoVariant(f"{text!r} has half a letter, which no UTF-8 has") from None


def _whole(number: int) -> bytes:
    for type_number, width in _INTS:
        if -(1 << 8 * width - 1) <= number < 1 << 8 * width - 1:
            return _header(type_number) + number.to_bytes(width, "little", signed=True)
    return _decimal(Decimal(number)) if abs(number) < 10**_MAX_DIGITS else _header(7) + _double(number)


def _double(number: int) -> bytes:
    try:
        return struct.pack("<d", float(number))
    except OverflowError:
        return struct.pack("<d", math.copysign(math.inf, number))


def _decimal(number: Decimal) -> bytes:
    if not number.is_finite():
        return _header(7) + struct.pack("<d", float(number))
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    unscaled, scale = int("".join(map(str, digits))), -exponent
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale, 0
    if scale > _MAX_DIGITS or unscaled >= 10**_MAX_DIGITS:
        raise NoVariant(f"{number} has more than {_MAX_DIGITS} digits")
    size = max(len(str(unscaled)), scale)
    type_number, width = (8, 4) if size <= 9 else (9, 8) if size <= 18 else (10, 16)
    signed = -unscaled if sign else unscaled
    return _header(type_number) + bytes([scale]) + signed.to_bytes(width, "little", signed=True)
