"""Thrift's compact protocol, as much as Parquet's metadata needs: structs read into plain values, and written.

The protocol in a paragraph. A number is a **varint**: 7 bits a byte, the lowest first, and the top bit says that
another byte follows; signed numbers are **zigzag** first (0, -1, 1, -2 become 0, 1, 2, 3), so that small ones stay
short. Bytes are their length as a varint, then themselves. A struct is a row of fields and a byte 0; a field is one
head byte, whose upper four bits say by how much its id exceeds the last one's and whose lower four its type, then the
value. A list is one head byte, upper four bits its size, lower four the type of all its elements, then the elements.

Nothing says where a struct ends but its last byte, so what is unknown has to be parsed, too; names are nowhere.
Source: the Thrift specification's "compact protocol" and Parquet's ``parquet.thrift``. Knows no Parquet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

BOOL_TRUE, BOOL_FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MAX_VARINT_BITS = 70

_BytesLike = bytes | memoryview

ThriftStruct = Mapping[int, Any]
"""Values by field id. Lists are lists; a list of structs is a list of mappings."""


# Readers take the bytes and a position, and give the value and the position after it.


def _read_varint(data: _BytesLike, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift  # the lowest 7 bits come first
        if byte < 0x80:  # the top bit is clear: no byte follows
            return value, at
        shift += 7
        if shift > _MAX_VARINT_BITS:
            raise ValueError("a number is longer than any that Parquet has")


def _read_integer(data: _BytesLike, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at  # zigzag: the lowest bit is the sign, and -1 flips all others


def _read_binary(data: _BytesLike, at: int) -> tuple[bytes, int]:
    length, at = _read_varint(data, at)
    return bytes(data[at : at + length]), at + length


def read_list_size(data: _BytesLike, at: int) -> tuple[int, int]:
    """The number of elements of the list that begins at byte ``at``, and where the first is. Raises IndexError."""
    size = data[at] >> 4
    at += 1
    if size == 15:  # all four bits set: the size did not fit, and follows
        size, at = _read_varint(data, at)
    if size > len(data) - at:  # an element has a byte at least
        raise IndexError(f"a list of {size} elements lies in {len(data) - at} bytes")
    return size, at


def _read_list(data: _BytesLike, at: int) -> tuple[list[Any], int]:
    kind = data[at] & 0x0F
    size, at = read_list_size(data, at)
    values = []
    for _ in range(size):
        value, at = _READERS[kind](data, at)
        values.append(value)
    return values, at


def read_struct(data: _BytesLike, at: int, until: int | None = None) -> tuple[ThriftStruct, int]:
    """The struct that begins at byte ``at``, and where it ends; with ``until``, only the fields up to this id.

    With ``until``, the position is that of the first value left out, right after its head byte.
    Raises IndexError, KeyError or ValueError for bytes that are no such struct.

    >>> packed = encode_struct((1, I32, encode_integer(300)), (4, BINARY, encode_binary(b"xy")))
    >>> packed.hex(" ")
    '15 d8 04 38 02 78 79 00'
    >>> read_struct(memoryview(packed), 0)
    ({1: 300, 4: b'xy'}, 8)
    """
    values: dict[int, Any] = {}
    field_id = 0
    while data[at]:
        delta, kind = data[at] >> 4, data[at] & 0x0F
        if delta:
            field_id, at = field_id + delta, at + 1
        else:  # an id that is not 1 to 15 above the last one's is written out
            field_id, at = _read_integer(data, at + 1)
        if until is not None and field_id > until:
            return values, at
        if kind in (BOOL_TRUE, BOOL_FALSE):  # a truth is its own type, and has no bytes
            values[field_id] = kind == BOOL_TRUE
        else:
            values[field_id], at = _READERS[kind](data, at)
    return values, at + 1


_READERS: Mapping[int, Callable[[_BytesLike, int], tuple[Any, int]]] = {
    BOOL_TRUE: lambda data, at: (data[at] == BOOL_TRUE, at + 1),  # within a list, a byte each
    BOOL_FALSE: lambda data, at: (data[at] == BOOL_TRUE, at + 1),
    BYTE: lambda data, at: (data[at], at + 1),
    I16: _read_integer,
    I32: _read_integer,
    I64: _read_integer,
    DOUBLE: lambda data, at: (bytes(data[at : at + 8]), at + 8),
    BINARY: _read_binary,
    LIST: _read_list,
    SET: _read_list,
    STRUCT: read_struct,
}


_INTEGERS = frozenset({I16, I32, I64})

Selection = Mapping[int, Any]
"""Fields by id: None for a whole value, another selection for the struct there, or for each struct of the list, or
StructMembers for some of these."""


@dataclass(frozen=True, slots=True)
class StructMembers:
    """Read the structs of a list at these places, from 0, and of them these fields; the others come as ``{}``."""

    places: Collection[int]
    selection: Selection


def read_selected(data: _BytesLike, at: int, selection: Selection) -> tuple[ThriftStruct, int]:
    """Read these fields of the struct that begins at byte ``at``, and where it ends.

    What is not selected is passed over, four times as fast as it is read. Raises as ``read_struct``.

    >>> packed = encode_struct((1, I32, encode_integer(300)), (4, BINARY, encode_binary(b"xy")))
    >>> read_selected(packed, 0, {4: None})
    ({4: b'xy'}, 8)
    """
    values: dict[int, Any] = {}
    field_id = 0
    while head := data[at]:
        at, kind = at + 1, head & 0x0F
        if head > 0x0F:
            field_id += head >> 4
        else:
            field_id, at = _read_integer(data, at)
        if field_id not in selection:
            at = skip_value(data, at, kind)
        elif selection[field_id] is not None:
            values[field_id], at = _read_selected_within(data, at, kind, selection[field_id])
        elif kind in _INTEGERS:
            value = byte = data[at]
            at, shift = at + 1, 0
            while byte > 0x7F:  # as ``_read_varint``, which is called for each of thousands of columns
                byte, shift = data[at], shift + 7
                value, at = value & (1 << shift) - 1 | byte << shift, at + 1
            values[field_id] = (value >> 1) ^ -(value & 1)
        else:
            values[field_id], at = _READERS[kind](data, at)
    return values, at + 1


def _read_selected_within(
    data: _BytesLike, at: int, kind: int, selection: Selection | StructMembers
) -> tuple[Any, int]:
    """The selected fields of a struct, or of each struct in a list."""
    places, fields = (
        (selection.places, selection.selection) if isinstance(selection, StructMembers) else (None, selection)
    )
    if kind == STRUCT:
        return read_selected(data, at, fields)
    if kind != LIST or (data[at] & 0x0F != STRUCT and data[at] > 0x0F):  # of no elements, the kind says nothing
        raise ValueError(f"a value of type {kind} stands where structs do")
    size, at = read_list_size(data, at)
    found: list[ThriftStruct] = [{} for _ in range(size)]
    passed = 0
    for place in range(size) if places is None else sorted(place for place in places if place < size):
        at = _skip_structs(data, at, place - passed)
        found[place], at = read_selected(data, at, fields)
        passed = place + 1
    return found, _skip_structs(data, at, size - passed)


def skip_value(data: _BytesLike, at: int, kind: int) -> int:
    """Where the value ends that begins at byte ``at``."""
    if kind in _INTEGERS:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == BINARY:
        length, at = _read_varint(data, at)
        return at + length
    if kind in (LIST, SET):
        kind = data[at] & 0x0F
        size, at = read_list_size(data, at)
        if kind == STRUCT:
            return _skip_structs(data, at, size)
        for _ in range(size):
            at = at + 1 if kind < I16 else skip_value(data, at, kind)
        return at
    if kind == STRUCT:
        return _skip_structs(data, at, 1)
    return at + {BOOL_TRUE: 0, BOOL_FALSE: 0, BYTE: 1, DOUBLE: 8}[kind]


def _skip_structs(data: _BytesLike, at: int, count: int) -> int:
    """Where so many structs end, one after the other, of which the first begins at byte ``at``."""
    match = _common_struct().match
    for _ in range(count):
        if common := match(data, at):
            at = common.end()
            continue
        while head := data[at]:
            at += 1
            if head < 0x10:
                _, at = _read_integer(data, at)
            if head & 0x0F > BOOL_FALSE:
                at = skip_value(data, at, head & 0x0F)
        at += 1
    return at


@cache
def _common_struct() -> re.Pattern[bytes]:
    """Match a struct as those are that describe columns and their chunks: ten times as fast as value by value.

    These have numbers, truths, short texts, short lists of numbers, of texts and of structs, and structs of all that.
    Whatever is otherwise does not match. Nothing is tried twice, so that no bytes take long.
    """
    number = rb"[\x80-\xff]*+[\x00-\x7f]"
    text = _one_of(rb"\x%02x.{%d}" % (length, length) for length in range(48))
    plain = [_heads(*_INTEGERS) + number, _heads(BOOL_TRUE, BOOL_FALSE), _heads(BYTE) + b"."]
    number_lists = [_heads(LIST) + _list_of(kind, number, *range(5)) for kind in (I32, I64)]
    flat = _one_of([*plain, *number_lists]) + rb"*+\x00"
    lists = [_heads(LIST) + each for each in (_list_of(BINARY, text, 1, 3), _list_of(STRUCT, flat, 1, 2, 3))]
    middle = _one_of([*plain, *number_lists, *lists, _heads(STRUCT) + flat]) + rb"*+\x00"
    return re.compile(_one_of([*plain, _heads(BINARY) + text, _heads(STRUCT) + middle]) + rb"*+\x00", re.DOTALL)


def _heads(*kinds: int) -> bytes:
    """A byte that begins a field of one of these types, whose id is 1 to 15 above the last one's."""
    return b"[%s]" % b"".join(rb"\x%02x" % (delta << 4 | kind) for delta in range(1, 16) for kind in kinds)


def _list_of(kind: int, element: bytes, *sizes: int) -> bytes:
    return _one_of(rb"\x%02x(?:%s){%d}" % (size << 4 | kind, element, size) for size in sizes)


def _one_of(patterns: Iterable[bytes]) -> bytes:
    """The first of these that matches, for good."""
    return b"(?>%s)" % b"|".join(patterns)


def encode_varint(value: int) -> bytes:
    """A number of 0 or more, 7 bits a byte, as the protocol has lengths and sizes."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_integer(value: int) -> bytes:
    """A number of 0 or more, as I16, I32 or I64."""
    return encode_varint(value << 1)  # zigzag of what is not negative


def encode_binary(value: bytes) -> bytes:
    """Bytes, or the UTF-8 of a text, with their length."""
    return encode_varint(len(value)) + value


def encode_list(kind: int, values: Iterable[bytes]) -> bytes:
    """A list of values of one type, each encoded already."""
    parts = list(values)
    head = bytes([len(parts) << 4 | kind]) if len(parts) < 15 else bytes([0xF0 | kind]) + encode_varint(len(parts))
    return head + b"".join(parts)


def encode_struct(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct of fields (id, type, encoded value); ids ascend from 0 by less than 16, so that each head is a byte."""
    encoded, last_id = bytearray(), 0
    for field_id, kind, value in fields:
        encoded.append(field_id - last_id << 4 | kind)
        encoded += value
        last_id = field_id
    return bytes(encoded) + b"\0"
