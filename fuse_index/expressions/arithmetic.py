"""Arithmetic and ``||`` as Spark has them: what ``update`` may set a column to, and what aggregates may be of.

Conditions have none of it: there Spark may pass over an operand on which it would raise, and who evaluates whole
columns cannot.

A term is a ``Call`` of the operator, of operands as Spark's coercion leaves them: of one type, or decimals of any two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.expressions.coercion import INTEGER_TYPES, as_decimal, coerce_term, common_type, is_number
from fuse_index.expressions.errors import AnalysisError, SparkWouldRaise
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

_Values = Any

_CHECKED_KERNELS: Mapping[str, Callable[..., _Values]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "negative": pc.negate_checked,
}
_WRAPPING_KERNELS: Mapping[str, Callable[..., _Values]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "negative": pc.negate,
}
ARITHMETIC_OPERATORS = frozenset(["+", "-", "*", "/", "||"])
_MAX_PRECISION = 38
_MAX_WIDE_PRECISION = 76
"""Digits of Arrow's larger decimals, in which results are computed that may have more than Spark keeps."""
_MIN_KEPT_SCALE = 6
"""Digits behind the point that Spark gives up last."""


def arithmetic_call(operator: str, left: Term, right: Term, context: Context) -> Call:
    """The term, with the casts that Spark adds.

    Raises AnalysisError, or NotReproducible where Spark's type is not known here.
    """
    told = f"{spark_type_name(left.type)} {operator} {spark_type_name(right.type)}"
    if left.type == right.type == pa.null() or (
        operator == "||" and any(_is_no_text(side.type) for side in (left, right))
    ):
        raise AnalysisError(f"{told} is not known here; in Python, give a function of the rows")
    if operator == "||":
        return Call(
            operator, (coerce_term(left, pa.string(), context), coerce_term(right, pa.string(), context)), pa.string()
        )
    left, right = _coerced(operator, left, right, context)
    result = None if pa.string() in (left.type, right.type) else arithmetic_type(operator, left.type, right.type)
    if result is None or any(map(_is_negative_zero, (left, right))):
        raise AnalysisError(
            f"{told} is not known here, which reckons with integers and floats, and with decimals where Spark does "
            f"not round; in Python, give a function of the rows"
        )
    return Call(operator, (left, right), result)


def negation(term: Term) -> Call:
    """``- term``. Raises AnalysisError for what is no number."""
    if not is_number(term.type):
        raise AnalysisError(f"there is no negative of {spark_type_name(term.type)}")
    return Call("-", (term,), term.type)


def arithmetic_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Spark's type of the result of operands that are already as its coercion leaves them.

    None where they are not, and where Spark rounds: it keeps 38 digits, and six behind the point.

    >>> price, discount = pa.decimal128(15, 2), pa.decimal128(16, 2)
    >>> [str(arithmetic_type(operator, price, discount)) for operator in "+*/"]
    ['decimal128(17, 2)', 'decimal128(32, 4)', 'None']
    """
    if is_.is_decimal(left) and is_.is_decimal(right):
        return _decimal_type(operator, left, right)
    if left != right or operator not in ARITHMETIC_OPERATORS:
        return None
    if operator == "||":
        return left if left == pa.string() else None
    if is_.is_floating(left):
        return left if operator != "/" or left == pa.float64() else None
    return left if left in INTEGER_TYPES and operator != "/" else None


def depends_on_ansi(term: Call) -> bool:
    """Whether sessions that are ANSI and others differ in it: on overflow, and on a division by zero."""
    if term.name == "||" or term.name not in ARITHMETIC_OPERATORS:
        return False
    if is_.is_floating(term.type):
        return term.name == "/"
    if is_.is_decimal(term.type):
        return len(term.arguments) == 2 and _natural_size(term.name, *(side.type for side in term.arguments))[0] > 38
    return True


def evaluate_arithmetic(term: Call, operands: Sequence[_Values], ansi: bool) -> _Values:
    """The result, of ``term.type``. Raises SparkWouldRaise on overflow and division by zero."""
    if term.name == "||":
        return pc.binary_join_element_wise(*operands, "")
    if term.name == "/":
        return _quotients(operands[0], operands[1], ansi)
    if is_.is_decimal(term.type) and len(operands) == 2:
        return _evaluate_decimals(term, operands[0], operands[1], ansi)
    kernels = _CHECKED_KERNELS if ansi and term.type in INTEGER_TYPES else _WRAPPING_KERNELS
    try:
        return kernels[term.name if len(operands) == 2 else "negative"](*operands)
    except pa.ArrowInvalid as overflow:
        raise SparkWouldRaise(f"{spark_type_name(term.type)} overflows") from overflow


def _quotients(left: _Values, right: _Values, ansi: bool) -> _Values:
    zero = pc.and_(pc.equal(right, 0.0), pc.is_valid(left))
    if ansi and pc.any(_array(zero), min_count=0).as_py():
        raise SparkWouldRaise("a division by zero")
    return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right))


def _coerced(operator: str, left: Term, right: Term, context: Context) -> tuple[Term, Term]:
    sides = (left, right)
    if any(is_.is_decimal(side.type) for side in sides) and all(
        is_.is_decimal(side.type) or side.type in INTEGER_TYPES for side in sides
    ):
        return tuple(coerce_term(side, _decimal_beside_decimal(side), context) for side in sides)  # type: ignore[return-value]
    data_type = common_type(left.type, right.type, context)
    data_type = pa.float64() if operator == "/" and not is_.is_decimal(data_type) else data_type
    return coerce_term(left, data_type, context), coerce_term(right, data_type, context)


def _decimal_beside_decimal(term: Term) -> pa.DataType:
    """An integer that is written out is only as wide as it is written."""
    if isinstance(term, Literal) and term.type in INTEGER_TYPES and term.value is not None:
        return pa.decimal128(len(str(abs(term.value))), 0)
    return as_decimal(term.type)


def _natural_size(operator: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Precision and scale that hold every result."""
    if operator == "*":
        return left.precision + right.precision + 1, left.scale + right.scale
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _decimal_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if operator not in ("+", "-", "*"):
        return None
    precision, scale = _natural_size(operator, left, right)
    if precision <= _MAX_PRECISION:
        return pa.decimal128(precision, scale)
    kept_scale = max(_MAX_PRECISION - (precision - scale), min(scale, _MIN_KEPT_SCALE))
    return pa.decimal128(_MAX_PRECISION, scale) if kept_scale == scale and precision <= _MAX_WIDE_PRECISION else None


def _evaluate_decimals(term: Call, left: _Values, right: _Values, ansi: bool) -> _Values:
    """Exactly; what has more digits than Spark keeps is NULL, or raises."""
    precision, scale = _natural_size(term.name, left.type, right.type)
    kernel = _WRAPPING_KERNELS[term.name]
    if precision <= _MAX_PRECISION:
        return kernel(left, right)
    left, right = (pc.cast(side, pa.decimal256(side.type.precision, side.type.scale)) for side in (left, right))
    exact = kernel(left, right)
    beyond = pa.scalar(Decimal(10) ** (_MAX_PRECISION - scale), exact.type)
    too_large = pc.greater_equal(pc.abs(exact), beyond)
    if pc.any(_array(too_large), min_count=0).as_py():
        if ansi:
            raise SparkWouldRaise(f"{spark_type_name(term.type)} overflows")
        exact = pc.if_else(too_large, pa.scalar(None, exact.type), exact)
    return pc.cast(exact, term.type)


def _is_negative_zero(term: Term) -> bool:
    """Terms that are equal have equal values, and to Python -0.0 is 0.0."""
    return (
        isinstance(term, Literal)
        and term.value == 0
        and isinstance(term.value, float)
        and (math.copysign(1.0, term.value) < 0)
    )


def _is_no_text(data_type: pa.DataType) -> bool:
    return bool(is_.is_nested(data_type) or data_type == pa.binary())


def _array(values: _Values) -> pa.Array:
    return pa.array([values.as_py()], pa.bool_()) if isinstance(values, pa.Scalar) else values
