"""Integer keys: values of a type as int64 in the same order, so that a neighbour is one away and ranges can be closed.

Whole numbers, booleans, dates, timestamps and floats have keys; texts and decimals have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

_Keys = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

MIN_KEY, MAX_KEY = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def has_integer_keys(data_type: pa.DataType) -> bool:
    """Return whether ``integer_keys`` takes values of this type."""
    is_integral = (
        is_.is_signed_integer(data_type)
        or is_.is_boolean(data_type)
        or is_.is_date32(data_type)
        or is_.is_timestamp(data_type)
    )
    return bool(is_integral or is_.is_float32(data_type) or is_.is_float64(data_type))


def integer_keys(values: pa.Array) -> _Keys:
    """Map n values to int64 keys of shape (n,), in the same order, without a gap between neighbours; of nulls, any.

    >>> keys = integer_keys(pa.array([-1.0, -0.0, 0.0, 5e-324, float("inf"), float("nan")]))
    >>> (np.diff(keys) >= 0).tolist(), int(keys[3] - keys[2])
    ([True, True, True, True, True], 1)
    """
    if is_.is_boolean(values.type):
        return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), np.int64)
    if is_.is_floating(values.type):
        return _float_keys(_as_stored(values.cast(pa.float64()), np.float64))
    return np.asarray(_as_stored(values, f"i{values.type.bit_width // 8}"), np.int64)


def _as_stored(values: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """The values as they lie in memory, nulls too."""
    return np.frombuffer(values.buffers()[1], dtype)[values.offset : values.offset + len(values)]


def _float_keys(values: npt.NDArray[np.float64]) -> _Keys:
    """Map doubles to their keys: -0.0 is 0.0, and every NaN is greater than infinity, as Spark has it."""
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    # An IEEE double is sign and magnitude: below zero, larger bits are smaller values, so all but the sign is flipped.
    ordered = bits ^ ((bits >> 63) & MAX_KEY)
    return np.where(np.isnan(values), MAX_KEY, ordered)


def closed_key_ranges(low: pa.Array, high: pa.Array, low_closed: _Mask, high_closed: _Mask) -> tuple[_Keys, _Keys]:
    """Turn n ranges of values, sorted and apart, into closed ranges of keys, sorted and apart.

    ``low`` and ``high``: the ends, null for unbounded; ``low_closed`` and ``high_closed``: bool of shape (n,), whether
    the end itself belongs to the range. Returns lows and highs, int64 of shape (m,), m <= n: ranges that touch are
    joined, empty ones left out.
    """
    open_low, open_high = low.is_null().to_numpy(zero_copy_only=False), high.is_null().to_numpy(zero_copy_only=False)
    low_keys, high_keys = integer_keys(low), integer_keys(high)
    excluded_low, excluded_high = ~low_closed & ~open_low, ~high_closed & ~open_high
    possible = ~(excluded_low & (low_keys == MAX_KEY)) & ~(excluded_high & (high_keys == MIN_KEY))
    lows = np.where(open_low, MIN_KEY, low_keys + (excluded_low & possible))
    highs = np.where(open_high, MAX_KEY, high_keys - (excluded_high & possible))
    possible &= lows <= highs
    lows, highs = lows[possible], highs[possible]
    apart = highs[:-1] + 1 < lows[1:]  # no high but the last is the greatest key: ranges are apart
    return lows[np.append(True, apart)[: len(lows)]], highs[np.append(apart, True)[: len(highs)]]


def unit_keys(least: pa.Array, greatest: pa.Array) -> tuple[_Keys, _Keys]:
    """Map the bounds of n units to keys, two int64 arrays of shape (n,); an unknown bound to the outermost key."""
    low, high = integer_keys(least), integer_keys(greatest)
    if least.null_count:
        low = np.where(least.is_null().to_numpy(zero_copy_only=False), MIN_KEY, low)
    if greatest.null_count:
        high = np.where(greatest.is_null().to_numpy(zero_copy_only=False), MAX_KEY, high)
    return low, high


def compare_keys(lows: _Keys, highs: _Keys, least: _Keys, greatest: _Keys) -> tuple[_Mask, _Mask]:
    """Compare m closed ranges of keys, int64 of shape (m,), with the bounds of n units, int64 of shape (n,).

    Returns which units meet a range, and which lie within one: bool of shape (n,).
    """
    if len(lows) == 0:
        nowhere = np.zeros(len(least), np.bool_)
        return nowhere, nowhere
    if len(lows) == 1:
        return (lows[0] <= greatest) & (least <= highs[0]), (lows[0] <= least) & (greatest <= highs[0])
    first_range = np.searchsorted(highs, least)  # the first range that does not end below the unit
    low = np.append(lows, MAX_KEY)[first_range]
    high = np.append(highs, MIN_KEY)[first_range]
    exists = first_range < len(lows)
    return exists & (low <= greatest), exists & (low <= least) & (greatest <= high)
