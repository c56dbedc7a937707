"""Byte keys: texts, binaries and decimals as bytes of one width in the same order, to be searched at once.

numpy compares bytes of fixed width, but takes trailing zeros for padding; so a key says how long its value is, and ends
with a tag that is never zero::

    text or binary    value, filled up with zeros   width bytes    decimal    16 bytes, greatest first, sign inverted
                      length                        2 bytes                   filled up with zeros
                      tag                           1 byte                    tag
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

_Bytes = npt.NDArray[np.bytes_]
_Mask = npt.NDArray[np.bool_]

BELOW_VALUE, AT_VALUE, ABOVE_VALUE = 1, 2, 3
"""Tags: of a range's end just below its value (a closed low, an open high), of a value, of an end just above."""
NULL_LOWEST, NULL_HIGHEST = 0, 255
"""What fills the keys of nulls, which are unbounded: below or above all others."""


def key_width(values: pa.Array) -> int:
    """Return the bytes of the longest value."""
    return 16 if is_.is_decimal(values.type) else int(pc.max(pc.binary_length(values)).as_py() or 0)


def byte_keys(values: pa.Array, width: int, tag: int | npt.NDArray[np.int64], null: int) -> _Bytes:
    """Map n values to bytes in their order, of dtype ``S{width + 3}`` and shape (n,).

    ``tag``: one for all, or int64 of shape (n,). A value longer than ``width`` lies between all that fit, and it does
    not matter where among its like.
    """
    count = len(values)
    table = np.zeros((count, width + 3), np.uint8)
    if is_.is_decimal(values.type):
        decimals = np.frombuffer(values.buffers()[1], np.uint8)[16 * values.offset : 16 * (values.offset + count)]
        table[:, :16] = decimals.reshape(count, 16)[:, ::-1]
        table[:, 0] ^= 0x80  # two's complement: the sign bit the other way round
    else:
        lengths = _copy_values(table, values, width)
        table[:, width], table[:, width + 1] = lengths >> 8, lengths & 0xFF
    table[:, width + 2] = tag
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        table[nulls] = null
        table[nulls, width + 2] = 1 if null == NULL_LOWEST else 255
    return table.reshape(-1).view(f"S{width + 3}")


def _copy_values(table: npt.NDArray[np.uint8], values: pa.Array, width: int) -> npt.NDArray[np.int64]:
    """Copy each value's first bytes into its row, uint8 of shape (n, at least ``width``).

    Returns the lengths, int64 of shape (n,), ``width + 1`` for longer ones.
    """
    buffers = values.buffers()
    offsets = np.frombuffer(buffers[1], np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.frombuffer(buffers[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    for column in range(int(min(width, lengths.max(initial=0)))):
        rows = np.flatnonzero(lengths > column)
        table[rows, column] = data[offsets[rows] + column]
    return np.minimum(lengths, width + 1)


def compare_byte_keys(lows: _Bytes, highs: _Bytes, least: _Bytes, greatest: _Bytes) -> tuple[_Mask, _Mask]:
    """Compare m ranges of byte keys, of shape (m,), m > 0, with the bounds of n units, of shape (n,).

    Returns which units meet a range, and which lie within one: bool of shape (n,).
    """
    first_range = np.searchsorted(highs, least)
    exists = first_range < len(lows)
    first_range = np.minimum(first_range, len(lows) - 1)
    low, high = lows[first_range], highs[first_range]
    return exists & (low <= greatest), exists & (low <= least) & (greatest <= high)
