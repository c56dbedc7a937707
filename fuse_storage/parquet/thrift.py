"""As much of Thrift's compact protocol as Parquet's own metadata needs: structs read into plain values, and written.

Source: the Thrift specification's "compact protocol" and Parquet's ``parquet.thrift``. Knows no Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

BOOL_TRUE, BOOL_FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

ThriftStruct = Mapping[int, Any]
"""Values by field id. Lists are lists; a list of structs is a list of mappings."""


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _read_integer(data: memoryview, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _read_binary(data: memoryview, at: int) -> tuple[bytes, int]:
    length, at = _read_varint(data, at)
    return bytes(data[at : at + length]), at + length


def _read_list(data: memoryview, at: int) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 0x0F
    at += 1
    if size == 15:
        size, at = _read_varint(data, at)
    found = []
    for _ in range(size):
        value, at = _READERS[kind](data, at)
        found.append(value)
    return found, at


def read_struct(data: memoryview, at: int, until: int | None = None) -> tuple[ThriftStruct, int]:
    """The struct that begins at byte ``at``, and where it ends; with ``until``, only the fields up to this id.

    Raises IndexError or KeyError for bytes that are no such struct.
    """
    found: dict[int, Any] = {}
    id = 0
    while data[at]:
        delta, kind = data[at] >> 4, data[at] & 0x0F
        if delta:
            id, at = id + delta, at + 1
        else:
            id, at = _read_integer(data, at + 1)
        if until is not None and id > until:
            return found, at
        if kind in (BOOL_TRUE, BOOL_FALSE):
            found[id] = kind == BOOL_TRUE
        else:
            found[id], at = _READERS[kind](data, at)
    return found, at + 1


_READERS: Mapping[int, Callable[[memoryview, int], tuple[Any, int]]] = {
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


def encode_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def encode_integer(value: int) -> bytes:
    """A number of 0 or more, as I16, I32 or I64."""
    return encode_varint(value << 1)


def encode_binary(value: bytes) -> bytes:
    return encode_varint(len(value)) + value


def encode_list(kind: int, values: Iterable[bytes]) -> bytes:
    """A list of values that are written already."""
    found = list(values)
    head = bytes([len(found) << 4 | kind]) if len(found) < 15 else bytes([0xF0 | kind]) + encode_varint(len(found))
    return head + b"".join(found)


def encode_struct(*parts: tuple[int, int, bytes]) -> bytes:
    """A struct of (id, kind, written value), ids ascending by less than 16."""
    found, last = bytearray(), 0
    for id, kind, value in parts:
        found.append(id - last << 4 | kind)
        found += value
        last = id
    return bytes(found) + b"\0"
