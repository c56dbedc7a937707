"""Spark's arithmetic of decimals that it rounds: types of at most 38 digits, results rounded as Java's decimals are.

A product and a quotient are rounded twice, as in Spark: to 39 digits, and then to the scale of the result's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa

from fuse_index.expressions.errors import SparkWouldRaise
from fuse_index.expressions.types import spark_type_name

MAX_PRECISION = 38
_MIN_KEPT_SCALE = 6
"""Digits behind the point that Spark gives up last."""
_JAVA_DIGITS = MAX_PRECISION + 1
_EXACT_DIGITS = 400
"""More than any sum, product or quotient here has before it is rounded."""


def natural_size(operator: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Precision and scale before Spark bounds them.

    >>> natural_size("/", pa.decimal128(10, 2), pa.decimal128(1, 0))
    (14, 6)
    """
    if operator == "*":
        return left.precision + right.precision + 1, left.scale + right.scale
    whole, other_whole = left.precision - left.scale, right.precision - right.scale
    if operator == "/":
        scale = max(_MIN_KEPT_SCALE, left.scale + right.precision + 1)
        return whole + right.scale + scale, scale
    scale = max(left.scale, right.scale)
    if operator == "%":
        return min(whole, other_whole) + scale, scale
    return max(whole, other_whole) + scale + 1, scale


def bounded_type(precision: int, scale: int) -> pa.DataType:
    """The type that Spark gives a result of this size: digits behind the point go first, down to six.

    >>> bounded_type(60, 20)
    Decimal128Type(decimal128(38, 6))
    """
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, _MIN_KEPT_SCALE)))


def compute(operator: str, left: Decimal, right: Decimal, data_type: pa.DataType, ansi: bool) -> Decimal | None:
    """The value on one row. Raises SparkWouldRaise on overflow and on a division by zero, if the session is ANSI."""
    if operator in ("/", "%") and right == 0:
        if ansi:
            raise SparkWouldRaise("a division by zero")
        return None
    with localcontext(prec=_EXACT_DIGITS):
        return fitted(_OPERATIONS[operator](left, right), data_type, ansi)


def whole_quotient(left: Decimal, right: Decimal, ansi: bool) -> int | None:
    """``left DIV right`` as a BIGINT. Raises SparkWouldRaise."""
    if right == 0:
        if ansi:
            raise SparkWouldRaise("a division by zero")
        return None
    with localcontext(prec=_EXACT_DIGITS):
        found = int((left / right).to_integral_value(ROUND_DOWN))
    if -(1 << 63) <= found < 1 << 63:
        return found
    if ansi:
        raise SparkWouldRaise("bigint overflows")
    return (found + (1 << 63)) % (1 << 64) - (1 << 63)


def fitted(value: Decimal, data_type: pa.DataType, ansi: bool) -> Decimal | None:
    """The value in the digits of that type; what has more is NULL, or raises SparkWouldRaise."""
    with localcontext(prec=_EXACT_DIGITS):
        rounded = value.quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP)
        if abs(rounded) < Decimal(10) ** (data_type.precision - data_type.scale):
            return rounded
    if ansi:
        raise SparkWouldRaise(f"{spark_type_name(data_type)} overflows")
    return None


def _to_java_digits(value: Decimal) -> Decimal:
    with localcontext(prec=_JAVA_DIGITS, rounding=ROUND_HALF_UP):
        return +value


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    numerator, denominator = left.as_integer_ratio(), right.as_integer_ratio()
    above, below = abs(numerator[0] * denominator[1]), abs(numerator[1] * denominator[0])
    digits = (2 * above * 10**_JAVA_DIGITS // below + 1) // 2  # half up, exactly
    return Decimal(-digits if (left < 0) != (right < 0) else digits).scaleb(-MAX_PRECISION - 1)


_OPERATIONS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: _to_java_digits(left * right),
    "/": _quotient,
    "%": lambda left, right: left % right,
}
