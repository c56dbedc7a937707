"""Hashes of values, bit by bit as Spark has them: of text and bytes, and of rows (``hash``, ``xxhash64``)."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Context as DecimalContext
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fuse_index.expressions import datetimes
from fuse_index.expressions.errors import UnsupportedExpression
from fuse_index.expressions.functions.signature import (
    INT,
    LONG,
    TEXT,
    Evaluation,
    SparkFunction,
    argument,
    check_count,
)
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import Call, Context, Term

_MASK, _WIDE_MASK = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_SEED = 42
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_SHA2: Mapping[int, Callable[[bytes], Any]] = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _of_bytes(name: str, result: pa.DataType, function: Callable[..., Any], *more: pa.DataType) -> SparkFunction:
    """A function of the bytes of text or of binary, and of further arguments."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1 + len(more), 1 + len(more))
        first = terms[0] if terms[0].type == pa.binary() else argument(name, 0, terms[0], TEXT, context)
        rest = (
            argument(name, n, term, kind, context)
            for n, (term, kind) in enumerate(zip(terms[1:], more, strict=True), 1)
        )
        return Call(name, (first, *rest), result)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        return evaluation.by_row(function, [columns[0].cast(pa.binary()), *columns[1:]], result)

    return SparkFunction(name, build, evaluate)


def _sha2(data: bytes, bits: int) -> str | None:
    return _SHA2[bits](data).hexdigest() if bits in _SHA2 else None


def _of_row(name: str, result: pa.DataType, of_value: Callable[[Any, pa.DataType, int], int]) -> SparkFunction:
    """A hash of some values, each seeded by what is before it; NULL changes nothing."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, None)
        for term in terms:
            if is_compound(term.type):
                raise UnsupportedExpression(f"{name}() of {spark_type_name(term.type)}")
        return Call(name, tuple(terms), result)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        types = [column.type for column in columns]
        half = 1 << result.bit_width - 1

        def value(*values: Any) -> int:
            found = _SEED
            for each, kind in zip(values, types, strict=True):
                found = found if each is None else of_value(each, kind, found)
            return found - 2 * half if found >= half else found

        return evaluation.by_row_with_nulls(value, columns, result)

    return SparkFunction(name, build, evaluate)


def _bits(value: Any, data_type: pa.DataType) -> tuple[int, int] | bytes:
    """A value as Spark hashes it: a number and its bytes, or bytes."""
    match value:
        case bool():
            return int(value), 4
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            code = "d" if data_type == pa.float64() else "f"
            packed = struct.pack(f"<{code}", value + 0.0 if value == value else float("nan"))  # NaN
            return int.from_bytes(packed, "little"), len(packed)
        case Decimal():
            unscaled = int(value.scaleb(data_type.scale, context=_EXACT))
            if data_type.precision <= 18:
                return unscaled & _WIDE_MASK, 8
            return unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True)
        case datetime():
            epoch = datetimes.EPOCH_UTC if value.tzinfo else datetimes.EPOCH
            return ((value - epoch) // datetimes.MICROSECOND) & _WIDE_MASK, 8
        case date():
            return (value.toordinal() - datetimes.EPOCH.toordinal()) & _MASK, 4
        case _:
            return (value & _WIDE_MASK, 8) if data_type == pa.int64() else (value & _MASK, 4)


_EXACT = DecimalContext(prec=100)


# --- Murmur3 of 32 bits -----------------------------------------------------------------------------------------------


def _murmur3(value: Any, data_type: pa.DataType, seed: int) -> int:
    found = _bits(value, data_type)
    if isinstance(found, bytes):
        whole = len(found) // 4 * 4
        for (word,) in struct.iter_unpack("<I", found[:whole]):
            seed = _murmur3_mix(seed, word)
        for byte in found[whole:]:  # each byte by itself, with its sign
            seed = _murmur3_mix(seed, (byte - 256 if byte > 127 else byte) & _MASK)
        return _murmur3_end(seed, len(found))
    number, width = found
    seed = _murmur3_mix(seed, number & _MASK)
    if width == 8:
        seed = _murmur3_mix(seed, number >> 32)
    return _murmur3_end(seed, width)


def _murmur3_mix(seed: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _MASK, 15, 32) * 0x1B873593 & _MASK
    return (_rotated(seed ^ word, 13, 32) * 5 + 0xE6546B64) & _MASK


def _murmur3_end(seed: int, length: int) -> int:
    seed ^= length
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _MASK
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _MASK
    return seed ^ seed >> 16


def _rotated(number: int, by: int, bits: int) -> int:
    return (number << by | number >> bits - by) & (1 << bits) - 1


# --- XXH64 ------------------------------------------------------------------------------------------------------------


def _xxh64(value: Any, data_type: pa.DataType, seed: int) -> int:
    found = _bits(value, data_type)
    if isinstance(found, bytes):
        return _xxh64_of_bytes(found, seed)
    number, width = found
    return _xxh64_of_bytes(number.to_bytes(width, "little"), seed)


def _xxh64_of_bytes(data: bytes, seed: int) -> int:
    one, two, _, four, five = _PRIMES
    place, length = 0, len(data)
    if length >= 32:
        lanes = [seed + one + two, seed + two, seed, seed - one]
        while place <= length - 32:
            words = struct.unpack_from("<4Q", data, place)
            lanes = [_xxh64_round(lane & _WIDE_MASK, word) for lane, word in zip(lanes, words, strict=True)]
            place += 32
        found = sum(_rotated(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _WIDE_MASK
        for lane in lanes:
            found = ((found ^ _xxh64_round(0, lane)) * one + four) & _WIDE_MASK
    else:
        found = seed + five & _WIDE_MASK
    found = found + length & _WIDE_MASK
    return _xxh64_end(found, data[place:])


def _xxh64_round(lane: int, word: int) -> int:
    one, two = _PRIMES[:2]
    return _rotated((lane + word * two) & _WIDE_MASK, 31, 64) * one & _WIDE_MASK


def _xxh64_end(found: int, rest: bytes) -> int:
    one, two, three, four, five = _PRIMES
    while len(rest) >= 8:
        found = _rotated(found ^ _xxh64_round(0, int.from_bytes(rest[:8], "little")), 27, 64) * one + four & _WIDE_MASK
        rest = rest[8:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little")
        found = _rotated(found ^ word * one & _WIDE_MASK, 23, 64) * two + three & _WIDE_MASK
        rest = rest[4:]
    for byte in rest:
        found = _rotated(found ^ byte * five & _WIDE_MASK, 11, 64) * one & _WIDE_MASK
    found = (found ^ found >> 33) * two & _WIDE_MASK
    found = (found ^ found >> 29) * three & _WIDE_MASK
    return found ^ found >> 32


HASH_FUNCTIONS: Sequence[SparkFunction] = (
    _of_bytes("md5", TEXT, lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    _of_bytes("sha1", TEXT, lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()),
    _of_bytes("sha2", TEXT, _sha2, INT),
    _of_bytes("crc32", LONG, zlib.crc32),
    _of_bytes("base64", TEXT, lambda data: base64.b64encode(data).decode()),
    _of_row("hash", INT, _murmur3),
    _of_row("xxhash64", LONG, _xxh64),
)
