"""Arithmetic and ``||`` as Spark has them, in conditions, in what a column is set to, in groups and in aggregates.

A term is a ``Call`` of the operator, of operands as Spark's coercion leaves them: of one type, or decimals of any two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.expressions import decimal_arithmetic
from fuse_index.expressions.coercion import INTEGER_TYPES, as_decimal, coerce_term, common_type, is_number
from fuse_index.expressions.decimal_arithmetic import MAX_PRECISION, bounded_type, natural_size
from fuse_index.expressions.errors import AnalysisError, SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.types import is_compound, spark_type_name
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
_EXACT_OPERATIONS: Mapping[str, Callable[..., int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "negative": lambda value: -value,
}
_BIT_KERNELS: Mapping[str, Callable[..., _Values]] = {
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "^": pc.bit_wise_xor,
}
_SHIFTS = ("<<", ">>")
ARITHMETIC_OPERATORS = frozenset(["+", "-", "*", "/", "||", "%", "div", *_BIT_KERNELS, *_SHIFTS, "~"])
_MAX_WIDE_PRECISION = 76
"""Digits of Arrow's larger decimals, in which results are computed that may have more than Spark keeps."""


def arithmetic_call(operator: str, left: Term, right: Term, context: Context) -> Call:
    """The term, with the casts that Spark adds.

    Raises AnalysisError for what Spark refuses, UnsupportedExpression or NotReproducible for what is not known here.
    """
    told = f"{spark_type_name(left.type)} {operator} {spark_type_name(right.type)}"
    if left.type == right.type == pa.null() or (
        operator == "||" and any(_is_no_text(side.type) for side in (left, right))
    ):
        raise UnsupportedExpression(f"{told} is not known here; in Python, give a function of the rows")
    if operator == "||":
        return Call(
            operator, (coerce_term(left, pa.string(), context), coerce_term(right, pa.string(), context)), pa.string()
        )
    left, right = _coerced(operator, left, right, context)
    result = None if pa.string() in (left.type, right.type) else arithmetic_type(operator, left.type, right.type)
    if result is None or any(map(_is_negative_zero, (left, right))):
        raise UnsupportedExpression(
            f"{told} is not known here, which reckons with numbers of Spark's types; cast both sides, or in Python, "
            f"give a function of the rows"
        )
    return Call(operator, (left, right), result)


def negation(term: Term) -> Call:
    """``- term``. Raises AnalysisError for what is no number."""
    if not is_number(term.type):
        raise AnalysisError(f"there is no negative of {spark_type_name(term.type)}")
    return Call("-", (term,), term.type)


def bit_inversion(term: Term) -> Call:
    """``~ term``. Raises AnalysisError for what is no integer."""
    if term.type not in INTEGER_TYPES:
        raise AnalysisError(f"there are no bits of {spark_type_name(term.type)} to turn over")
    return Call("~", (term,), term.type)


def arithmetic_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Spark's type of the result of operands that are already as its coercion leaves them; None where they are not.

    >>> price, discount = pa.decimal128(15, 2), pa.decimal128(16, 2)
    >>> [str(arithmetic_type(operator, price, discount)) for operator in "+*/"]
    ['decimal128(17, 2)', 'decimal128(32, 4)', 'decimal128(34, 19)']
    """
    if operator == "div":
        alike = left == right == pa.int64() or (is_.is_decimal(left) and is_.is_decimal(right))
        return pa.int64() if alike else None
    if operator in _SHIFTS:
        return left if left in (pa.int32(), pa.int64()) and right == pa.int32() else None
    if is_.is_decimal(left) and is_.is_decimal(right):
        return bounded_type(*natural_size(operator, left, right)) if operator in "+-*/%" else None
    if left != right or operator not in ARITHMETIC_OPERATORS:
        return None
    if operator == "||":
        return left if left == pa.string() else None
    if is_.is_floating(left):
        return left if operator in "+-*%" or (operator == "/" and left == pa.float64()) else None
    return left if left in INTEGER_TYPES and operator != "/" else None


def depends_on_ansi(term: Call) -> bool:
    """Whether sessions that are ANSI and others differ in it: on overflow, and on a division by zero."""
    if term.name not in ARITHMETIC_OPERATORS or term.name in ("||", "~", *_BIT_KERNELS, *_SHIFTS):
        return False
    if term.name in ("/", "%", "div"):
        return True
    if is_.is_decimal(term.type):
        return len(term.arguments) == 2 and natural_size(term.name, *(side.type for side in term.arguments))[0] > 38
    return not is_.is_floating(term.type)


def evaluate_arithmetic(term: Call, operands: Sequence[_Values], ansi: bool, lenient: bool = False) -> _Values:
    """The result, of ``term.type``. Raises SparkWouldRaise on overflow and division by zero.

    ``lenient``: where it would raise, the result is NULL.
    """
    if term.name == "||":
        return pc.binary_join_element_wise(*operands, "")
    if term.name == "~":
        return pc.bit_wise_not(operands[0])
    if term.name in _BIT_KERNELS:
        return _BIT_KERNELS[term.name](*operands)
    if term.name in _SHIFTS:
        return _shifted(term.name, *operands)
    if any(is_.is_decimal(operand.type) for operand in operands) and len(operands) == 2:
        return _evaluate_decimals(term, operands[0], operands[1], ansi, lenient)
    if term.name in ("/", "%", "div"):
        divisor = _checked_divisor(operands[0], operands[1], ansi and not lenient)
        return (
            pc.divide(operands[0], divisor)
            if term.name == "/"
            else _whole_division(term, _array(operands[0], operands[1]), _array(divisor, operands[0]), ansi, lenient)
        )
    name = term.name if len(operands) == 2 else "negative"
    kernels = _CHECKED_KERNELS if ansi and term.type in INTEGER_TYPES else _WRAPPING_KERNELS
    try:
        return kernels[name](*operands)
    except pa.ArrowInvalid as overflow:
        if not lenient:
            raise SparkWouldRaise(f"{spark_type_name(term.type)} overflows") from overflow
    return _without_overflow(term, name, [_array(each, *operands) for each in operands])


def _without_overflow(term: Call, name: str, operands: Sequence[pa.Array]) -> pa.Array:
    """Integers row by row, NULL where they overflow."""
    limit, operation = 1 << term.type.bit_width - 1, _EXACT_OPERATIONS[name]
    exact = (
        None if None in values else operation(*values)
        for values in zip(*(each.to_pylist() for each in operands), strict=True)
    )
    return pa.array([None if each is None or not -limit <= each < limit else each for each in exact], term.type)


def _checked_divisor(left: _Values, right: _Values, raises: bool) -> _Values:
    """The divisor, NULL for zero."""
    is_zero = pc.equal(right, pa.scalar(0, right.type))
    if raises and pc.any(_array(pc.and_(is_zero, pc.is_valid(left)), left, right), min_count=0).as_py():
        raise SparkWouldRaise("a division by zero")
    return pc.if_else(is_zero, pa.scalar(None, right.type), right)


def _whole_division(term: Call, left: pa.Array, right: pa.Array, ansi: bool, lenient: bool) -> pa.Array:
    """``%`` and ``DIV``, towards zero as Java has them, of divisors other than zero."""
    known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    a = np.asarray(pc.fill_null(left, 0))
    b = np.asarray(pc.fill_null(pc.if_else(known, right, pa.scalar(1, right.type)), 1))
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        if term.name == "%":
            return pa.array(rest.astype(a.dtype), term.type, mask=~np.asarray(known))
        quotients = (a - rest) // b
    overflows = (a == np.iinfo(np.int64).min) & (b == -1)
    if ansi and overflows.any() and not lenient:
        raise SparkWouldRaise("bigint overflows")
    quotients[overflows] = np.iinfo(np.int64).min
    return pa.array(quotients, term.type, mask=~np.asarray(known) | (overflows if ansi else False))


def _shifted(operator: str, values: _Values, by: _Values) -> _Values:
    """Shift as Java does: by the lowest bits of the number alone."""
    bits = pc.bit_wise_and(by, pa.scalar(values.type.bit_width - 1, pa.int32())).cast(values.type)
    return pc.shift_left(values, bits) if operator == "<<" else pc.shift_right(values, bits)


def _coerced(operator: str, left: Term, right: Term, context: Context) -> tuple[Term, Term]:
    sides = (left, right)
    if operator in _SHIFTS:
        return tuple(
            coerce_term(side, pa.int32(), context) if side.type in (*INTEGER_TYPES[:2], pa.null()) else side
            for side in sides
        )  # type: ignore[return-value]
    if any(is_.is_decimal(side.type) for side in sides) and all(
        is_.is_decimal(side.type) or side.type in INTEGER_TYPES for side in sides
    ):
        return tuple(coerce_term(side, _decimal_beside_decimal(side), context) for side in sides)  # type: ignore[return-value]
    if pa.string() in (left.type, right.type):
        data_type = _type_beside_text(left.type, right.type, context)
    else:
        data_type = common_type(left.type, right.type, context)
    if is_.is_decimal(data_type) and not (is_.is_decimal(left.type) and is_.is_decimal(right.type)):
        return coerce_term(left, data_type, context), coerce_term(right, data_type, context)
    if operator == "/" and not is_.is_decimal(data_type):
        data_type = pa.float64()
    if operator == "div" and data_type in INTEGER_TYPES:
        data_type = pa.int64()
    return coerce_term(left, data_type, context), coerce_term(right, data_type, context)


def _type_beside_text(left: pa.DataType, right: pa.DataType, context: Context) -> pa.DataType:
    """Text is reckoned with as DOUBLE; in ANSI sessions, beside integers, as BIGINT."""
    other = left if right == pa.string() else right
    if other != pa.string() and not is_number(other):
        return other
    return pa.int64() if context.ansi and other in INTEGER_TYPES else pa.float64()


def _decimal_beside_decimal(term: Term) -> pa.DataType:
    """An integer that is written out is only as wide as it is written."""
    if isinstance(term, Literal) and term.type in INTEGER_TYPES and term.value is not None:
        return pa.decimal128(len(str(abs(term.value))), 0)
    return as_decimal(term.type)


def _evaluate_decimals(term: Call, left: _Values, right: _Values, ansi: bool, lenient: bool) -> _Values:
    """By Arrow, exactly, where Spark does not round; what has more digits than Spark keeps is NULL, or raises."""
    precision, scale = (0, 0) if term.name == "div" else natural_size(term.name, left.type, right.type)
    if term.name not in _WRAPPING_KERNELS or scale != term.type.scale or precision > _MAX_WIDE_PRECISION:
        return _decimals_by_row(term, _array(left, right), _array(right, left), ansi, lenient)
    kernel = _WRAPPING_KERNELS[term.name]
    if precision <= MAX_PRECISION:
        return kernel(left, right)
    left, right = (pc.cast(side, pa.decimal256(side.type.precision, side.type.scale)) for side in (left, right))
    exact = kernel(left, right)
    beyond = pa.scalar(Decimal(10) ** (MAX_PRECISION - scale), exact.type)
    too_large = pc.greater_equal(pc.abs(exact), beyond)
    if pc.any(_array(too_large), min_count=0).as_py():
        if ansi and not lenient:
            raise SparkWouldRaise(f"{spark_type_name(term.type)} overflows")
        exact = pc.if_else(too_large, pa.scalar(None, exact.type), exact)
    return pc.cast(exact, term.type)


def _decimals_by_row(term: Call, left: pa.Array, right: pa.Array, ansi: bool, lenient: bool) -> pa.Array:
    def value(a: Decimal | None, b: Decimal | None) -> Any:
        if a is None or b is None:
            return None
        try:
            if term.name == "div":
                return decimal_arithmetic.whole_quotient(a, b, ansi)
            return decimal_arithmetic.compute(term.name, a, b, term.type, ansi)
        except SparkWouldRaise:
            if not lenient:
                raise
            return None

    return pa.array([value(*pair) for pair in zip(left.to_pylist(), right.to_pylist(), strict=True)], term.type)


def _is_negative_zero(term: Term) -> bool:
    """Terms that are equal have equal values, and to Python -0.0 is 0.0."""
    return (
        isinstance(term, Literal)
        and term.value == 0
        and isinstance(term.value, float)
        and (math.copysign(1.0, term.value) < 0)
    )


def _is_no_text(data_type: pa.DataType) -> bool:
    return bool(is_compound(data_type) or data_type == pa.binary())


def _array(values: _Values, *beside: _Values) -> pa.Array:
    """The values as an array; a scalar as long as the arrays beside it."""
    if not isinstance(values, pa.Scalar):
        return values
    return pa.repeat(values, next((len(each) for each in beside if not isinstance(each, pa.Scalar)), 1))
