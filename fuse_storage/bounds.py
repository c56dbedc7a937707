"""Bounds of values in Spark's order, and how long ones are shortened to what still bounds.

In: Arrow arrays, text and bytes. Out: the least and the greatest value, and bounds of at most 32 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

MAX_BOUND_BYTES = 32
"""Bytes of text that are kept of a bound."""

_TEXT_OR_BINARY = frozenset((pa.string().id, pa.binary().id))
_Bounds = tuple[pa.Scalar, pa.Scalar]
_Text = TypeVar("_Text", str, bytes)


def is_text_or_binary(data_type: pa.DataType) -> bool:
    """Tell whether bounds of this type may be long."""
    return data_type.id in _TEXT_OR_BINARY


def count_nan(values: pa.Array) -> int:
    """The number of values that are NaN; 0 for types that have none."""
    return int(pc.sum(pc.is_nan(values)).as_py() or 0) if is_.is_floating(values.type) else 0


def extremes(values: pa.Array) -> _Bounds:
    """The least and the greatest value; null if there is none. NaN is greatest, -0.0 is 0.0."""
    bounds = pc.min_max(values)  # passes over NaN
    if not is_.is_floating(values.type):
        return bounds["min"], bounds["max"]
    nan = pa.scalar(float("nan"), values.type)
    zero = pa.scalar(0.0, values.type)
    low, high = pc.add(bounds["min"], zero), pc.add(bounds["max"], zero)  # -0.0 + 0.0 is 0.0, whatever the sign bit was
    if not count_nan(values):
        return low, high
    return (low if low.is_valid else nan), nan  # of nothing but NaN and NULL, NaN is the least, too


def truncate_bounds(bounds: pa.Array, upper: bool) -> tuple[pa.Array, pa.BooleanArray]:
    """Cut bounds to about 32 bytes, and tell which of them were cut, so are no longer values.

    A cut bound stays a bound: a lower one becomes less, an upper one greater, or null where nothing short is.
    Text is cut between characters. What is not UTF-8, though of type string, is cut where it stops being so.
    """
    if not is_text_or_binary(bounds.type) or _are_short(bounds):
        return bounds, _whole_bound() if len(bounds) == 1 else pa.array(np.zeros(len(bounds), bool))
    flags = np.zeros(len(bounds), bool)
    text = is_.is_string(bounds.type)
    shorten: Callable[[bytes], bytes | None] = truncate_bytes_up if upper else truncate_bytes_down
    if text:
        shorten = truncate_text_up if upper else truncate_text_down
    values: list[bytes | None] = bounds.cast(pa.binary()).to_pylist()
    for index, value in enumerate(values):
        if value is not None and (len(value) > MAX_BOUND_BYTES or (text and not _is_utf8(value))):
            values[index], flags[index] = shorten(value), True
    return pa.array(values, pa.binary()).cast(bounds.type), pa.array(flags)


@cache
def _whole_bound() -> pa.BooleanArray:
    """The flag of a bound that was not cut: one for all, as wide tables have thousands."""
    return pa.array([False])


def _are_short(bounds: pa.Array) -> bool:
    """Whether none of these texts or bytes is to be cut, found without a copy of them."""
    try:
        values = bounds.to_pylist()
    except UnicodeDecodeError:
        return False
    return all(
        value is None or len(value if isinstance(value, bytes) else value.encode()) <= MAX_BOUND_BYTES
        for value in values
    )


def truncate_bytes_down(value: bytes) -> bytes:
    """A short value that is at most ``value``."""
    return value[:MAX_BOUND_BYTES]


def truncate_bytes_up(value: bytes) -> bytes | None:
    """The least short value above all that begin as ``value`` does."""
    return prefix_end(value[:MAX_BOUND_BYTES])


def truncate_text_down(value: bytes) -> bytes:
    """A short text, as UTF-8, that is at most ``value``."""
    return _whole_characters(value).encode()


def truncate_text_up(value: bytes) -> bytes | None:
    """The least short text, as UTF-8, above all that begin as ``value`` does; None if there is none."""
    end = prefix_end(_whole_characters(value))
    return None if end is None else end.encode()


def prefix_end(prefix: _Text) -> _Text | None:
    """The least value above all that start with ``prefix``; None if there is none, as nothing is above the last letter.

    >>> prefix_end("ab"), prefix_end(b"a\\xff"), prefix_end("")
    ('ac', b'b', None)

    Code points D800 to DFFF, the surrogates, are no characters and have no UTF-8; so after D7FF comes E000:

    >>> prefix_end("\\ud7ff") == "\\ue000"
    True
    """
    if isinstance(prefix, bytes):
        stem = prefix.rstrip(b"\xff")
        return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
    text = prefix.rstrip("\U0010ffff")
    if not text:
        return None
    following = ord(text[-1]) + 1
    return text[:-1] + chr(0xE000 if following == 0xD800 else following)


def _whole_characters(value: bytes) -> str:
    """The whole characters at the beginning of ``value``, as far as it is text, in 32 bytes at most."""
    try:
        return value[:MAX_BOUND_BYTES].decode()
    except UnicodeDecodeError as stop:
        return value[: stop.start].decode()


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
