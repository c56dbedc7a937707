"""Bounds of a run of values in Spark's order, and how long ones are cut.

A cut lower bound is a prefix; a cut upper bound is a prefix raised by one, or null where no text is higher. Bounds are
always valid text, even of bytes that are not: those are bounded by text outside of them, and flagged as cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

LONGEST = 32
"""Bytes of text that are kept of a bound."""

Bounds = tuple[pa.Scalar, pa.Scalar]
LAST_CHARACTER = 0x10FFFF


def is_text(type: pa.DataType) -> bool:
    """Whether bounds of this type may be long."""
    return bool(is_.is_string(type) or is_.is_binary(type))


def count_nan(values: pa.Array) -> int:
    return int(pc.sum(pc.is_nan(values)).as_py() or 0) if is_.is_floating(values.type) else 0


def extremes(values: pa.Array) -> Bounds:
    """The least and the greatest value; null if there is none. NaN is greatest, -0.0 is 0.0."""
    found = pc.min_max(values)  # passes over NaN
    if not is_.is_floating(values.type):
        return found["min"], found["max"]
    nan = pa.scalar(float("nan"), values.type)
    zero = pa.scalar(0.0, values.type)
    low, high = pc.add(found["min"], zero), pc.add(found["max"], zero)  # -0.0 + 0.0 is 0.0
    if not count_nan(values):
        return low, high
    return (low if low.is_valid else nan), nan


def cut(bounds: pa.Array, upper: bool) -> tuple[pa.Array, pa.BooleanArray]:
    """The same bounds, none longer than about 32 bytes, and which of them are no longer values."""
    flags = np.zeros(len(bounds), bool)
    if not is_text(bounds.type):
        return bounds, pa.array(flags)
    text = is_.is_string(bounds.type)
    shorten: Callable[[bytes], bytes | None] = raised if upper else prefix
    if text:
        shorten = raised_text if upper else prefix_text
    values: list[bytes | None] = bounds.cast(pa.binary()).to_pylist()
    for place, value in enumerate(values):
        if value is not None and (len(value) > LONGEST or (text and not _is_text(value))):
            values[place], flags[place] = shorten(value), True
    return pa.array(values, pa.binary()).cast(bounds.type), pa.array(flags)


def prefix(value: bytes) -> bytes:
    return value[:LONGEST]


def raised(value: bytes) -> bytes | None:
    """The least short value above all that begin as ``value`` does."""
    kept = value[:LONGEST].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def prefix_text(value: bytes) -> bytes:
    return _characters(value).encode()


def raised_text(value: bytes) -> bytes | None:
    kept = _characters(value).rstrip(chr(LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return (kept[:-1] + chr(0xE000 if following == 0xD800 else following)).encode()  # no character is a surrogate


def _characters(value: bytes) -> str:
    """The whole characters at the beginning of ``value``, as far as it is text, in 32 bytes at most."""
    try:
        return value[:LONGEST].decode()
    except UnicodeDecodeError as stop:
        return value[: stop.start].decode()


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True

