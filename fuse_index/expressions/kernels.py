"""Arrow's kernels put right where Spark differs: NaN, -0.0, NULL in a list, LIKE; and the casts in which it does not.

Each takes Arrow arrays or scalars (a scalar stands for the same value on every row) of one type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.errors import OpaqueError
from fuse_index.expressions import datetimes
from fuse_index.expressions.coercion import INTEGER_TYPES, as_decimal
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.membership import MAX_INTEGER_SET, IntegerSet, has_integer_values
from fuse_index.predicate import Literal, LongTuple

_Values = Any
"""A pa.Array, or a pa.Scalar that stands for the same value on every row."""

_LOSSLESS_CASTS = {
    *((narrow, wide) for i, narrow in enumerate(INTEGER_TYPES) for wide in INTEGER_TYPES[i + 1 :]),
    *((narrow, pa.float64()) for narrow in INTEGER_TYPES[:3]),
    *((narrow, pa.float32()) for narrow in INTEGER_TYPES[:2]),
    (pa.float32(), pa.float64()),
    (pa.date32(), pa.timestamp("us")),
    (pa.string(), pa.binary()),
}
"""Casts that lose nothing, so that Arrow's are Spark's; besides those to decimals that are wide enough."""


def casts_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether this cast loses nothing, so that Arrow's is Spark's."""
    if not is_.is_decimal(target):
        return (source, target) in _LOSSLESS_CASTS
    if source in INTEGER_TYPES:
        return bool(target.precision - target.scale >= min(as_decimal(source).precision, 19))  # as many digits as longs
    wide_enough = is_.is_decimal(source) and source.precision - source.scale <= target.precision - target.scale
    return bool(wide_enough and source.scale <= target.scale)


def failed_values(values: Sequence[Any], made: Sequence[Any], target: pa.DataType) -> list[Any]:
    """The values whose cast, of which None was made, raises in an ANSI session; NaN as a decimal is NULL."""
    pairs = zip(values, made, strict=True)
    failed = [value for value, each in pairs if each is None and value is not None]
    to_decimal = is_.is_decimal(target)
    return [each for each in failed if not (to_decimal and isinstance(each, float) and not math.isfinite(each))]


def array_wall_clocks(values: pa.Array, time_zone: tzinfo) -> pa.Array:
    """What clocks of the zone show at each instant (timestamp[us, UTC]), as timestamp[us] without a zone."""
    micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    shown = pa.array(datetimes.wall_clocks(micros, time_zone)).view(pa.timestamp("us"))
    return pc.if_else(pc.is_valid(values), shown, pa.scalar(None, shown.type))


def _needs_order_of_nan(left: _Values, right: _Values) -> bool:
    """Whether both sides may be NaN on a row; against a number, Arrow's kernels can say what Spark does."""
    return is_.is_floating(left.type) and not _is_number(left) and not _is_number(right)


def _is_number(value: _Values) -> bool:
    return isinstance(value, pa.Scalar) and value.is_valid and not math.isnan(value.as_py())


def _equal(left: _Values, right: _Values) -> _Values:
    same = pc.equal(left, right)
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _needs_order_of_nan(left, right) else same


def _not_equal(left: _Values, right: _Values) -> _Values:
    return pc.invert(_equal(left, right)) if is_.is_floating(left.type) else pc.not_equal(left, right)


def _less(left: _Values, right: _Values) -> _Values:
    if is_.is_floating(left.type) and _is_number(left):
        return pc.invert(pc.less_equal(right, left))  # TRUE where the right side is NaN
    less = pc.less(left, right)
    if not _needs_order_of_nan(left, right):
        return less
    return pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def _less_equal(left: _Values, right: _Values) -> _Values:
    if is_.is_floating(left.type) and not _is_number(right):
        return pc.invert(_less(right, left))
    return pc.less_equal(left, right)  # FALSE where the left side is NaN


def _null_safe_equal(left: _Values, right: _Values) -> _Values:
    equal = pc.fill_null(_equal(left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


COMPARISON_KERNELS: Mapping[str, Callable[[_Values, _Values], _Values]] = {
    "=": _equal,
    "<=>": _null_safe_equal,
    "<>": _not_equal,
    "<": _less,
    "<=": _less_equal,
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: _less_equal(right, left),
}
"""Arrow's order but for NaN, which it compares with nothing: BETWEEN of a column takes a third of the time where the
bounds cannot be NaN and it is left alone."""


def in_list(values: pa.Array, literals: tuple[Literal, ...]) -> _Values:
    """``values IN (literals)`` as a bool array: NULL, not FALSE, for what is not found beside a NULL."""
    known = _known_values(literals, values.type)
    if isinstance(known, IntegerSet):
        is_listed, known_count = known.contains(values), known.literal_count
    else:
        if is_.is_floating(values.type):
            values = _canonical_floats(values)
        is_listed, known_count = pc.is_in(values, value_set=known), len(known)
    if known_count == len(literals) and not values.null_count:
        return is_listed
    decided = pc.is_valid(values)
    if known_count < len(literals):
        decided = pc.and_(decided, is_listed)
    return pc.if_else(decided, is_listed, pa.scalar(None, pa.bool_()))


def _known_values(literals: tuple[Literal, ...], data_type: pa.DataType) -> pa.Array | IntegerSet:
    """The values but for NULL: of long lists made once, and not for each block."""
    memo = literals.memo if isinstance(literals, LongTuple) else {}
    if data_type not in memo:
        known = pa.array([literal.value for literal in literals if literal.value is not None], data_type)
        if is_.is_floating(data_type):
            known = _canonical_floats(known)
        is_short = 0 < len(known) <= MAX_INTEGER_SET
        memo[data_type] = IntegerSet.of(known) if is_short and has_integer_values(data_type) else known
    return memo[data_type]


def _canonical_floats(values: pa.Array) -> pa.Array:
    """One zero and one NaN: ``is_in`` tells apart what differs in any bit."""
    unsigned = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(unsigned), pa.scalar(math.nan, values.type), unsigned)


def like(values: _Values, text: str | None, escape: str) -> _Values:
    """``values LIKE text ESCAPE escape``, as bool. Raises OpaqueError for a pattern that Spark refuses."""
    if text is None:
        return pa.scalar(None, pa.bool_())
    try:
        pattern = LikePattern.parse(text, escape)
    except ValueError as refusal:
        raise OpaqueError(str(refusal)) from None
    match pattern.shape:
        case (_,):
            return pc.equal(values, pa.scalar(pattern.texts[0]))
        case (_, False):
            return pc.starts_with(values, pattern=pattern.texts[0])
        case (False, _):
            return pc.ends_with(values, pattern=pattern.texts[1])
        case (False, _, False):
            return pc.match_substring(values, pattern=pattern.texts[1])
        case _:
            return _matches(values, pattern)


def _matches(values: _Values, pattern: LikePattern) -> _Values:
    try:
        return pc.match_substring_regex(values, pattern=pattern.regex())
    except ValueError as refusal:
        raise OpaqueError(str(refusal)) from None
