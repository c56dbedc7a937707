"""Bounds and null counts of a foreign file's columns, where what its footer says cannot be wrong; else unknown.

What a writer says of floats leaves NaN out; of INT96 and unsigned numbers, writers disagreed for years about the order;
of the deprecated ``min`` and ``max``, about all of it. A bound of text may be cut. None of that is believed, nor what a
writer is known to get wrong (``writers``). What is: signed integers, booleans, dates, times, decimals, text and bytes,
in Parquet's type-defined order; of decimals kept as bytes, where the writer is known to order them by their sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.bounds import is_text_or_binary, truncate_bounds
from fuse_storage.parquet.foreign.thrift_footer import ForeignChunk, ForeignFooter
from fuse_storage.parquet.foreign.writers import believed_statistics, orders_decimals
from fuse_storage.statistics import ColumnStatistics

_BOOLEAN, _INT32, _INT64, _BYTE_ARRAY, _FIXED_BYTES = 0, 1, 2, 6, 7
"""Parquet's physical types whose statistics may be believed."""
_EXACT = Context(prec=80)
"""More digits than any decimal has: Python rounds to 28, and a bound that is rounded is none."""
_VALUE_BYTES = {_BOOLEAN: 1, _INT32: 4, _INT64: 8}


def foreign_statistics(
    footer: ForeignFooter, number: int, file_type: pa.DataType, data_type: pa.DataType
) -> ColumnStatistics:
    """Statistics of one column, one unit for each row group.

    ``number``: which chunk of each row group is the column's. ``file_type``: what Arrow reads in the file, before it
    is fitted to ``data_type``, the column's.
    """
    row_counts = [group.row_count for group in footer.groups]
    told = [group.chunks[number] for group in footer.groups]
    chunks = [
        replace(chunk, statistics=believed_statistics(footer, chunk, is_.is_decimal(file_type))) for chunk in told
    ]
    unknown = ColumnStatistics.unknown(data_type, len(chunks))
    null_counts = [_null_count(chunk, rows) for chunk, rows in zip(chunks, row_counts, strict=True)]
    sizes = pa.array([chunk.byte_count for chunk in chunks], pa.int64())
    counted = replace(unknown, null_count=pa.array(null_counts, pa.int64()), size=sizes)
    if not _is_trusted(chunks[0].physical_type, file_type, orders_decimals(footer)):
        return counted
    try:
        low, high = _bounds(chunks, file_type)
        fitted = replace(counted, min=low.cast(data_type), max=high.cast(data_type))
    except (pa.ArrowException, ValueError, OverflowError, ArithmeticError):
        return counted
    # A bound of text may be cut by whoever wrote it, who need not say so.
    return replace(fitted, min_cut=_flags(low), max_cut=_flags(high)) if is_text_or_binary(data_type) else fitted


def _null_count(chunk: ForeignChunk, row_count: int) -> int | None:
    count = chunk.statistics.null_count
    return count if count is not None and 0 <= count <= row_count else None


def _is_trusted(physical_type: int, file_type: pa.DataType, decimals: bool) -> bool:
    """Whether bounds of such values are believed. ``decimals``: if they are decimals kept as bytes, too."""
    match physical_type:
        case 0:
            return bool(is_.is_boolean(file_type))
        case 1:
            return bool(is_.is_signed_integer(file_type) or is_.is_date32(file_type) or is_.is_decimal(file_type))
        case 2:
            return bool(is_.is_signed_integer(file_type) or is_.is_timestamp(file_type) or is_.is_decimal(file_type))
        case 6:
            return bool(is_.is_string(file_type) or is_.is_binary(file_type))
        case 7:
            return decimals and bool(is_.is_decimal(file_type))
        case _:
            return False


def _bounds(chunks: Sequence[ForeignChunk], file_type: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest value of each chunk; null where one of them is unknown, or they are contradictory."""
    pairs = [
        tuple(_decode(bound, chunk.physical_type, file_type) for bound in (chunk.statistics.min, chunk.statistics.max))
        for chunk in chunks
    ]
    sound = [(None, None) if low is None or high is None or low > high else (low, high) for low, high in pairs]
    low, high = (_array([pair[side] for pair in sound], file_type) for side in (0, 1))
    return truncate_bounds(low, upper=False)[0], truncate_bounds(high, upper=True)[0]


def _decode(bound: bytes | None, physical_type: int, file_type: pa.DataType) -> Any:
    """A bound as a number, text or bytes, which compare as the values do; None if it is none."""
    if bound is None:
        return None
    if physical_type == _BYTE_ARRAY:
        try:
            return bound.decode() if is_.is_string(file_type) else bytes(bound)
        except UnicodeDecodeError:
            return None
    if physical_type == _FIXED_BYTES:
        return int.from_bytes(bound, "big", signed=True) if len(bound) == _decimal_bytes(file_type) else None
    if len(bound) != _VALUE_BYTES[physical_type]:
        return None
    return int.from_bytes(bound, "little", signed=physical_type != _BOOLEAN)


def _decimal_bytes(kind: pa.DataType) -> int:
    """The bytes that a decimal takes where it is kept as bytes of fixed length: as few as its digits need."""
    return next(size for size in range(1, 17) if 10**kind.precision <= 1 << (8 * size - 1))


def _array(values: Sequence[Any], file_type: pa.DataType) -> pa.Array:
    """Decoded bounds as values of the file's type."""
    if is_.is_decimal(file_type):
        digits = [None if value is None else Decimal(value).scaleb(-file_type.scale, _EXACT) for value in values]
        return pa.array(digits, file_type)
    if is_.is_boolean(file_type):
        return pa.array([None if value is None else bool(value) for value in values], file_type)
    if is_.is_date32(file_type):
        return pa.array(values, pa.int32()).cast(file_type)
    return pa.array(values, pa.int64()).cast(file_type) if is_.is_timestamp(file_type) else pa.array(values, file_type)


def _flags(bounds: pa.Array) -> pa.BooleanArray:
    return pa.array(np.ones(len(bounds), bool))
