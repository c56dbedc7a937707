"""Functions of numbers: signs, rounding, remainders, the largest of some; and those of Java's mathematical library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import decimal_arithmetic
from fuse_index.expressions.arithmetic import arithmetic_call, evaluate_arithmetic, negation
from fuse_index.expressions.casts import int_range
from fuse_index.expressions.coercion import INTEGER_TYPES, coerce_term, common_type, is_number
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.functions.signature import (
    DOUBLE,
    INT,
    LONG,
    TEXT,
    Evaluation,
    SparkFunction,
    argument,
    by_row,
    check_count,
    constant_of,
    rewritten,
)
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.expressions.value_set import sort_key
from fuse_index.predicate import Call, Context, Literal, Term

_ANSI = frozenset({"ansi"})


def _number(name: str, term: Term, context: Context) -> Term:
    if term.type in (pa.null(), TEXT):
        return coerce_term(term, DOUBLE, context)
    if not is_number(term.type):
        raise UnsupportedExpression(f"{name}() of {spark_type_name(term.type)}")
    return term


def _in_range(value: int, data_type: pa.DataType, ansi: bool) -> int:
    low, high = int_range(data_type)
    if low <= value <= high:
        return value
    if ansi:
        raise SparkWouldRaise(f"{spark_type_name(data_type)} overflows")
    return (value - low) % (high - low + 1) + low


# --- signs ------------------------------------------------------------------------------------------------------------


def _build_abs(terms: Sequence[Term], context: Context) -> Term:
    check_count("abs", terms, 1, 1)
    term = _number("abs", terms[0], context)
    return Call("abs", (term,), term.type)


def _abs(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(number: Any) -> Any:
        if isinstance(number, int):
            return _in_range(abs(number), call.type, evaluation.context.ansi)
        return number.copy_abs() if isinstance(number, Decimal) else abs(number)

    return evaluation.by_row(value, columns, call.type)


def _sign(value: float) -> float:
    return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)


# --- rounding ---------------------------------------------------------------------------------------------------------


def _round_type(data_type: pa.DataType, places: int) -> pa.DataType:
    """Spark's type: a decimal may get one more digit before the point."""
    if not is_.is_decimal(data_type):
        return data_type
    whole = data_type.precision - data_type.scale + 1
    if places < 0:
        return pa.decimal128(min(max(whole, 1 - places), 38), 0)
    scale = min(data_type.scale, places)
    return pa.decimal128(min(whole + scale, 38), scale)


def _rounding(name: str, mode: str) -> SparkFunction:
    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 2)
        term = _number(name, terms[0], context)
        places = constant_of(name, "number of digits", terms[1]) if len(terms) == 2 else 0
        if not isinstance(places, int) or not -38 <= places <= 38:
            raise UnsupportedExpression(f"{name}() to {places!r} digits")
        return Call(name, (term, Literal(places, INT)), _round_type(term.type, places))

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        number = partial(_rounded, mode=mode, data_type=call.type, ansi=evaluation.context.ansi)
        return evaluation.by_row(number, columns, call.type)

    return SparkFunction(name, build, evaluate, _ANSI)


def _rounded(number: Any, places: int, mode: str, data_type: pa.DataType, ansi: bool) -> Any:
    unit = Decimal(1).scaleb(-places)
    with localcontext(prec=400):
        if isinstance(number, float):
            if not math.isfinite(number):
                return number
            if places < 0 and abs(number) > 1e15:
                raise NotReproducible(f"only Java knows the digits of {number!r}")
            return float(Decimal(repr(number)).quantize(unit, mode)) + 0.0  # a decimal has one zero
        if isinstance(number, int):
            made = int(Decimal(number).quantize(unit, mode)) if places < 0 else number
            return _in_range(made, data_type, ansi)
        rounded = number if places > -number.as_tuple().exponent else number.quantize(unit, mode)
        return decimal_arithmetic.fitted(rounded, data_type, ansi)


def _whole(name: str, mode: str, of_double: Callable[[float], int]) -> SparkFunction:
    """``floor`` and ``ceil``: a BIGINT, or of decimals one without digits behind the point."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        term = _number(name, terms[0], context)
        if is_.is_decimal(term.type):
            whole = term.type.precision - term.type.scale + 1
            return Call(name, (term,), pa.decimal128(min(whole, 38), 0))
        return Call(name, (coerce_term(term, LONG if term.type in INTEGER_TYPES else DOUBLE, context),), LONG)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        def value(number: Any) -> Any:
            if isinstance(number, float):
                low, high = int_range(LONG)
                if math.isnan(number):
                    return 0
                if evaluation.context.ansi and not low <= number < high:
                    raise NotReproducible(f"{name}() of {number!r}, on which only newer Sparks raise")
                return high if number >= high else low if number <= low else of_double(number)
            return number if isinstance(number, int) else number.quantize(Decimal(1), mode)

        return evaluation.by_row(value, columns, call.type)

    return SparkFunction(name, build, evaluate, _ANSI)


# --- remainders and other arithmetic ----------------------------------------------------------------------------------


def _operator(name: str, operator: str) -> SparkFunction:
    """A function that is another spelling of an operator."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 2, 2)
        return arithmetic_call(operator, terms[0], terms[1], context)

    return rewritten(name, build)


def _build_negative(terms: Sequence[Term], context: Context) -> Term:
    check_count("negative", terms, 1, 1)
    return negation(_number("negative", terms[0], context))


def _build_positive(terms: Sequence[Term], context: Context) -> Term:
    check_count("positive", terms, 1, 1)
    return _number("positive", terms[0], context)


def _build_pmod(terms: Sequence[Term], context: Context) -> Term:
    check_count("pmod", terms, 2, 2)
    made = arithmetic_call("%", terms[0], terms[1], context)
    if is_.is_decimal(made.type):
        raise UnsupportedExpression("pmod() of decimals")
    return Call("pmod", made.arguments, made.type)


def _pmod(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(left: Any, right: Any) -> Any:
        if right == 0:
            if evaluation.context.ansi:
                raise SparkWouldRaise("a division by zero")
            return None
        if isinstance(left, int):
            rest = int(math.copysign(1, left)) * (abs(left) % abs(right))
            return rest if rest >= 0 else int(math.copysign(1, rest + right)) * (abs(rest + right) % abs(right))
        if math.isinf(left) or math.isnan(left) or math.isnan(right):
            return math.nan
        rest = math.fmod(left, right)
        return math.fmod(rest + right, right) if rest < 0 else rest

    return evaluation.by_row(value, columns, call.type)


def _trying(name: str, operator: str) -> SparkFunction:
    """``try_add`` and its like: NULL where the operator raises in an ANSI session."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 2, 2)
        made = arithmetic_call(operator, terms[0], terms[1], context)
        return Call(name, made.arguments, made.type)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        operation = Call(operator, call.arguments, call.type)
        return evaluate_arithmetic(operation, columns, ansi=True, lenient=True)

    return SparkFunction(name, build, evaluate)


# --- the largest and the least ----------------------------------------------------------------------------------------


def _extreme(name: str, is_better: Callable[[Any, Any], bool]) -> SparkFunction:
    """The largest or the least of some: NULL is passed over, NaN is the largest."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 2, None)
        types = {term.type for term in terms} - {pa.null()}
        if not types or (len(types) > 1 and TEXT in types) or any(map(is_compound, types)):
            raise UnsupportedExpression(f"{name}() of {', '.join(spark_type_name(term.type) for term in terms)}")
        data_type = reduce(lambda a, b: common_type(a, b, context), (term.type for term in terms))
        return Call(name, tuple(coerce_term(term, data_type, context) for term in terms), data_type)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        def value(*values: Any) -> Any:
            best = None
            for each in values:
                if each is not None and (best is None or is_better(_order(each), _order(best))):
                    best = each
            return best

        return evaluation.by_row_with_nulls(value, columns, call.type)

    return SparkFunction(name, build, evaluate)


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else sort_key(value)


# --- digits and bits --------------------------------------------------------------------------------------------------


def _factorial(number: int) -> int | None:
    return math.factorial(number) if 0 <= number <= 20 else None


def _build_nanvl(terms: Sequence[Term], context: Context) -> Term:
    check_count("nanvl", terms, 2, 2)
    made = tuple(argument("nanvl", number, term, DOUBLE, context) for number, term in enumerate(terms))
    return Call("nanvl", made, DOUBLE)


def _nanvl(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    return evaluation.by_row_with_nulls(
        lambda value, other: other if value is not None and math.isnan(value) else value, columns, DOUBLE
    )


def _rint(value: float) -> float:
    """To the nearest whole number, ties to even; a zero keeps the sign."""
    if not math.isfinite(value) or abs(value) >= 2**52:
        return value
    return math.copysign(float(round(value)), value)


NUMBER_FUNCTIONS: Sequence[SparkFunction] = (
    SparkFunction("abs", _build_abs, _abs, _ANSI),
    by_row("sign", [DOUBLE], DOUBLE, _sign),
    _rounding("round", ROUND_HALF_UP),
    _rounding("bround", ROUND_HALF_EVEN),
    _whole("floor", ROUND_FLOOR, math.floor),
    _whole("ceil", ROUND_CEILING, math.ceil),
    by_row("rint", [DOUBLE], DOUBLE, _rint),
    _operator("mod", "%"),
    _operator("div", "div"),
    rewritten("negative", _build_negative),
    rewritten("positive", _build_positive),
    SparkFunction("pmod", _build_pmod, _pmod, _ANSI),
    _trying("try_add", "+"),
    _trying("try_subtract", "-"),
    _trying("try_multiply", "*"),
    _trying("try_divide", "/"),
    _extreme("greatest", lambda a, b: bool(a > b)),
    _extreme("least", lambda a, b: bool(a < b)),
    by_row("factorial", [INT], LONG, _factorial),
    by_row("bit_count", [LONG], INT, lambda number: (number % (1 << 64)).bit_count()),
    SparkFunction("nanvl", _build_nanvl, _nanvl),
)
