"""Ranges of values, ready to be compared with the bounds of many units at once.

>>> from fuse_index.plugin import ValueSet
>>> ranges = ValueRanges.from_value_set(ValueSet.between(10, 20, True, True), pa.int64(), exact=True)
>>> meets, within = ranges.compare(pa.array([1, 5, 12, None]), pa.array([9, 15, 14, 30]))
>>> meets.tolist(), within.tolist()
([False, True, True, True], [False, False, True, False])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.plugin import ValueSet
from fuse_plugins.min_max.byte_keys import (
    ABOVE_VALUE,
    AT_VALUE,
    BELOW_VALUE,
    NULL_HIGHEST,
    NULL_LOWEST,
    byte_keys,
    compare_byte_keys,
    key_width,
)
from fuse_plugins.min_max.integer_keys import closed_key_ranges, compare_keys, has_integer_keys, unit_keys

_Keys = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_MAX_BOUND_BYTES = 256
"""Bytes of the longest bounds that statistics and summaries have, with room to spare."""
MAX_RANGES_ONE_BY_ONE = 8
"""Ranges of values without integer keys that are compared one by one; beyond, sorting pays."""


@dataclass(frozen=True, eq=False)
class RangeEnds:
    """One end of each of m ranges: ``values``, null for unbounded, and whether they are ``closed``, bool (m,)."""

    values: pa.Array
    closed: _Mask


@dataclass(frozen=True, eq=False)
class ValueRanges:
    """Ranges of values, m of them, sorted and apart; picklable.

    ``lows`` and ``highs`` are closed integer keys, shape (m,), where the type has those. Else they are None, and
    ``bounds`` holds the low and the high ends as values. ``exact``: a value within is one on which the leaf is TRUE.
    """

    exact: bool
    lows: _Keys | None = None
    highs: _Keys | None = None
    bounds: tuple[RangeEnds, ...] = field(default=())

    @classmethod
    def from_value_set(cls, value_set: ValueSet, data_type: pa.DataType, exact: bool) -> ValueRanges:
        """Make ranges of values of this type."""
        lows = [interval.low for interval in value_set.intervals]
        highs = [interval.high for interval in value_set.intervals]
        low_closed = np.array([interval.low_closed for interval in value_set.intervals], np.bool_)
        high_closed = np.array([interval.high_closed for interval in value_set.intervals], np.bool_)
        low, high = pa.array(lows, data_type), pa.array(highs, data_type)
        if not has_integer_keys(data_type):
            return cls(exact, bounds=(RangeEnds(low, low_closed), RangeEnds(high, high_closed)))
        return cls(exact, *closed_key_ranges(low, high, low_closed, high_closed))

    @classmethod
    def from_points(cls, values: Sequence[Any], data_type: pa.DataType) -> ValueRanges:
        """Make ranges of one value each, of whole numbers or texts, which Arrow sorts as Spark does; none is None."""
        points = pa.array(values, data_type).unique()
        points = points.take(pc.sort_indices(points))
        closed = np.ones(len(points), np.bool_)
        if not has_integer_keys(data_type):
            return cls(True, bounds=(RangeEnds(points, closed), RangeEnds(points, closed)))
        return cls(True, *closed_key_ranges(points, points, closed, closed))

    def compare(self, least: pa.Array, greatest: pa.Array) -> tuple[_Mask, _Mask]:
        """Compare with the bounds of n units, as values of the type (null: not known).

        Returns which units may hold a value in the ranges, and which hold no other: bool of shape (n,). The second
        promises that the leaf is TRUE, so without ``exact`` it is False everywhere.
        """
        if self.lows is None or self.highs is None:
            meets, within = _compare_values(self.bounds[0], self.bounds[1], least, greatest)
        else:
            meets, within = compare_keys(self.lows, self.highs, *unit_keys(least, greatest))
        return meets, within if self.exact else np.zeros_like(within)


def _compare_values(low: RangeEnds, high: RangeEnds, least: pa.Array, greatest: pa.Array) -> tuple[_Mask, _Mask]:
    """Compare values without integer keys: a few ranges one by one, many as byte keys."""
    if len(low.values) > MAX_RANGES_ONE_BY_ONE:
        return _compare_as_bytes(low, high, *map(_without_long_bounds, (least, greatest)))
    meets, within = np.zeros(len(least), np.bool_), np.zeros(len(least), np.bool_)
    for number in range(len(low.values)):
        start, end = low.values[number], high.values[number]
        above = pc.less_equal if low.closed[number] else pc.less
        below = pc.less_equal if high.closed[number] else pc.less
        meets |= _compare_or_unknown(above, start, greatest, unknown=True) & _compare_or_unknown(
            below, least, end, unknown=True
        )
        within |= _compare_or_unknown(above, start, least, unknown=not start.is_valid) & _compare_or_unknown(
            below, greatest, end, unknown=not end.is_valid
        )
    return meets, within


def _without_long_bounds(bounds: pa.Array) -> pa.Array:
    """Make null, which is unbounded, what is longer than any bound that is written: a key has room for the longest."""
    if is_.is_decimal(bounds.type):
        return bounds
    return pc.if_else(pc.greater(pc.binary_length(bounds), _MAX_BOUND_BYTES), pa.scalar(None, bounds.type), bounds)


def _compare_as_bytes(low: RangeEnds, high: RangeEnds, least: pa.Array, greatest: pa.Array) -> tuple[_Mask, _Mask]:
    width = max(key_width(least), key_width(greatest))
    low_tags = np.where(low.closed, BELOW_VALUE, ABOVE_VALUE)
    high_tags = np.where(high.closed, ABOVE_VALUE, BELOW_VALUE)
    return compare_byte_keys(
        byte_keys(low.values, width, low_tags, NULL_LOWEST),
        byte_keys(high.values, width, high_tags, NULL_HIGHEST),
        byte_keys(least, width, AT_VALUE, NULL_LOWEST),
        byte_keys(greatest, width, AT_VALUE, NULL_HIGHEST),
    )


def _compare_or_unknown(compare: Any, left: Any, right: Any, unknown: bool) -> _Mask:
    """Compare an array with a scalar elementwise; ``unknown`` where either is null, as a null scalar is no bound."""
    compared = compare(left, right)
    units = left if isinstance(left, pa.Array) else right
    if (isinstance(left, pa.Scalar) and not left.is_valid) or (isinstance(right, pa.Scalar) and not right.is_valid):
        return np.full(len(units), unknown)  # unbounded
    return np.asarray(compared.fill_null(unknown).to_numpy(zero_copy_only=False), np.bool_)
