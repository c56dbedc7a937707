"""Casts that keep order, and what a comparison after such a cast says of the values before it.

A **scale** lays the values of a type out as whole numbers, in order; the cast never decreases along it. So the values
whose cast is below, at or above some value are found by halving, whatever the cast rounds: ``CAST(n AS DOUBLE) =
9007199254740992`` holds for two longs, ``CAST(f AS DOUBLE) = 0.1`` for no float.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context as DecimalContext
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import datetimes
from fuse_index.expressions.casts import INTEGER_BITS, cast_value, int_range
from fuse_index.expressions.coercion import as_decimal
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.value_set import sort_key
from fuse_index.predicate import Compare, Context, Literal, Operator, Term

_MAX_ZONE_SHIFT = timedelta(days=2)
"""No clock on Earth is further from UTC, even on a day that its zone left out."""

_INFINITY_BITS = 0x7F800000
"""The bits of a float's infinity; NaN is the place after it."""

_EXACT_DECIMALS = DecimalContext(prec=100)

_DATE, _NTZ, _TIMESTAMP = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
_TIME_TYPES = (_DATE, _NTZ, _TIMESTAMP)


@dataclass(frozen=True)
class OrderedType:
    """The values of ``data_type`` in order, at the places ``lowest`` to ``highest``, and their cast to ``target``.

    Doubles have 53 bits of precision, so that beyond 2^53 two longs are cast to one double. Which longs a comparison
    with that double is true of, halving finds:

    >>> longs = ordered_type_of(pa.int64(), pa.float64(), Context())
    >>> longs.bracket(9007199254740992.0)
    (9007199254740992, 9007199254740994)

    So ``CAST(n AS DOUBLE) = 9007199254740992`` is ``n >= 9007199254740992 AND n < 9007199254740994``. No float is cast
    to the double 0.1, so that both places are the same, and the comparison is true of nothing:

    >>> first, beyond = ordered_type_of(pa.float32(), pa.float64(), Context()).bracket(0.1)
    >>> first == beyond
    True
    """

    data_type: pa.DataType
    target: pa.DataType
    lossless: bool
    """The cast gives every value another one."""
    context: Context

    @cached_property
    def _places(self) -> tuple[int, int, Callable[[int], Any]]:
        if self.data_type in INTEGER_BITS:
            return (*int_range(self.data_type), int)
        if is_.is_decimal(self.data_type):
            most = 10**self.data_type.precision - 1
            return -most, most, lambda place: Decimal(place).scaleb(-self.data_type.scale, _EXACT_DECIMALS)
        if self.data_type == pa.float32():
            return -_INFINITY_BITS, _INFINITY_BITS + 1, _float_at
        if self.data_type == _DATE:
            return date.min.toordinal(), date.max.toordinal(), date.fromordinal
        epoch = datetimes.EPOCH if self.data_type == _NTZ else datetimes.EPOCH_UTC
        low, high = datetime.min.replace(tzinfo=epoch.tzinfo), datetime.max.replace(tzinfo=epoch.tzinfo)
        return (
            (low - epoch) // datetimes.MICROSECOND,
            (high - epoch) // datetimes.MICROSECOND,
            lambda place: epoch + place * datetimes.MICROSECOND,
        )

    @property
    def lowest(self) -> int:
        return self._places[0]

    @property
    def highest(self) -> int:
        return self._places[1]

    def literal_at(self, position: int) -> Literal:
        return Literal(self._places[2](position), self.data_type)

    def exact_inverse(self, value: Any) -> Literal | None:
        """The only value that the cast makes this one of; None if there is none, or may be more."""
        if not self.lossless:
            return None
        back = cast_value(value, self.target, self.data_type, "try", self.context)
        return (
            Literal(back, self.data_type)
            if back is not None and sort_key(self._cast(back)) == sort_key(value)
            else None
        )

    def bracket(self, value: Any) -> tuple[int, int]:
        """The first place whose cast is not below ``value``, and the first whose cast is above it."""
        wanted = sort_key(value)
        return self._first(lambda made: made >= wanted), self._first(lambda made: made > wanted)

    def _cast(self, value: Any) -> Any:
        return cast_value(value, self.data_type, self.target, "try", self.context)

    def _first(self, reached: Callable[[Any], bool]) -> int:
        low, high = self.lowest, self.highest + 1
        while low < high:
            middle = (low + high) // 2
            if reached(sort_key(self._cast(self._places[2](middle)))):
                high = middle
            else:
                low = middle + 1
        return low


def ordered_type_of(data_type: pa.DataType, target: pa.DataType, context: Context) -> OrderedType | None:
    """The order of a cast that gives every value one, and keeps order; None for other casts."""
    if is_lossless_cast(data_type, target, context):
        return OrderedType(data_type, target, True, context)
    rounds = is_.is_floating(target) and (
        data_type in INTEGER_BITS or (is_.is_decimal(data_type) and target == pa.float64())
    )
    days = target == _DATE and (data_type == _NTZ or (data_type == _TIMESTAMP and _steady(context)))
    return OrderedType(data_type, target, False, context) if rounds or days else None


def is_lossless_cast(data_type: pa.DataType, target: pa.DataType, context: Context) -> bool:
    """The cast gives every value one, gives different values different ones, and keeps order."""
    if data_type in INTEGER_BITS and target in INTEGER_BITS:
        return INTEGER_BITS[data_type] < INTEGER_BITS[target]
    if is_.is_decimal(target) and (data_type in INTEGER_BITS or is_.is_decimal(data_type)):
        return _fits(as_decimal(data_type), target) or (
            data_type == pa.int64() and target.precision - target.scale >= 19
        )
    if is_.is_floating(target):
        return bool(
            data_type == pa.float32() != target
            or (data_type in INTEGER_BITS and INTEGER_BITS[data_type] < (24 if target == pa.float32() else 53))
        )
    if data_type == _DATE and target == _NTZ:
        return True
    return bool(data_type in _TIME_TYPES and target in (_NTZ, _TIMESTAMP) and data_type != target and _steady(context))


def _steady(context: Context) -> bool:
    """The session's clocks are never changed.

    Where they are, an hour is shown twice or not at all, on days that differ between the zone tables of one machine and
    another: then no cast between instants and clocks is taken off.
    """
    try:
        return datetimes.has_fixed_offset(datetimes.parse_time_zone(context.time_zone))
    except NotReproducible:
        return False


def implied_bounds(operator: Operator, inner: Term, value: Any, target: pa.DataType) -> list[Compare]:
    """The bounds of ``inner`` that a comparison of ``CAST(inner AS target)`` implies in every time zone."""
    if inner.type not in _TIME_TYPES or target not in _TIME_TYPES or inner.type == target:
        return []
    bounds = []
    try:
        if operator in ("=", "<=>", ">", ">="):
            bounds.append(Compare(">=", inner, _moved(value, -_MAX_ZONE_SHIFT, inner.type)))
        if operator in ("=", "<=>", "<", "<="):
            bounds.append(Compare("<=", inner, _moved(value, _MAX_ZONE_SHIFT + timedelta(days=1), inner.type)))
    except OverflowError:
        return []
    return bounds


def _moved(value: Any, by: timedelta, data_type: pa.DataType) -> Literal:
    wall = datetimes.wall_clock(value, UTC) if isinstance(value, datetime) and value.tzinfo else value
    moved = (wall if isinstance(wall, datetime) else datetimes.midnight(wall)) + by
    return Literal(
        moved.date() if data_type == _DATE else moved if data_type == _NTZ else moved.replace(tzinfo=UTC), data_type
    )


def _fits(narrow: pa.DataType, wide: pa.DataType) -> bool:
    return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)


def _float_at(place: int) -> float:
    if place > _INFINITY_BITS:
        return math.nan
    # IEEE 754 has the exponent above the fraction, so the bits of floats that are not negative, taken as an integer,
    # count them in order, from 0.0 at place 0. The sign bit only says that what the other bits count is below zero:
    # place -n is minus the float at place n. Places -0 and 0 are one, as -0.0 and 0.0 are one value to Spark.
    bits = struct.pack("<i", abs(place))
    value: float = struct.unpack("<f", bits)[0]
    return -value if place < 0 else value
