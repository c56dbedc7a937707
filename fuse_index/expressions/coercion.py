"""Which casts Spark adds when it compares two types: its implicit coercion, of ANSI sessions and of others.

The tables here are compared with Spark's own answers in ``tests/index/expressions``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.casts import cast_value
from fuse_index.expressions.datetimes import TRIMMED_CHARACTERS
from fuse_index.expressions.errors import AnalysisError, NotReproducible
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import Cast, CastMode, Context, JsonPath, Literal, Operator, Term
from fuse_storage import is_variant

INTEGER_TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INTEGER_PRECISION = dict(zip(INTEGER_TYPES, (3, 5, 10, 20), strict=True))
"""The precision that Spark gives integers among decimals."""
_TIME_TYPES = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
"""From narrow to wide."""
_SPECIAL_DATE = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""A zone may follow."""


def coerce_comparison(operator: Operator, left: Term, right: Term, context: Context) -> tuple[Term, Term]:
    """Both sides of a comparison, as one type.

    Raises AnalysisError, or NotReproducible where Spark's type is not known here.
    """
    _refuse_variants(left, right)
    if (
        pa.bool_() in (left.type, right.type)
        and operator in ("<", "<=", ">", ">=")
        and (is_number(left.type) or is_number(right.type))
    ):
        raise AnalysisError(f"Spark does not order {spark_type_name(left.type)} and {spark_type_name(right.type)}")
    data_type = common_type(_comparison_type(left, right), _comparison_type(right, left), context)
    data_type = pa.bool_() if data_type == pa.null() else data_type  # two bare NULLs
    return coerce_term(left, data_type, context), coerce_term(right, data_type, context)


def _refuse_variants(*terms: Term) -> None:
    if any(is_variant(term.type) for term in terms):
        raise AnalysisError("Spark compares no VARIANT, only values in it: say the type, as in v:a::INT = 1")


def coerce_in_list(term: Term, values: Sequence[Literal], context: Context) -> tuple[Term, tuple[Literal, ...]]:
    """Both sides of an IN, as one type. Raises AnalysisError, NotReproducible."""
    _refuse_variants(term, *values)
    data_types = [term.type, *dict.fromkeys({id(value.type): value.type for value in values}.values())]
    data_type = (
        reduce(lambda a, b: common_type(a, b, context), data_types)
        if context.ansi
        else _in_list_type(data_types, context)
    )
    if set(data_types[1:]) <= set(INTEGER_TYPES) and data_type in INTEGER_TYPES:  # a wider one: the same numbers
        made: list[Term] = [Literal(value.value, data_type) for value in values]
    else:
        made = [coerce_term(value, data_type, context) for value in values]
    return coerce_term(term, data_type, context), tuple(value for value in made if isinstance(value, Literal))


def coerce_listed(term: Term, values: Sequence[Term], context: Context) -> tuple[Term, list[Term]]:
    """Both sides of an IN whose values are not all literals, as one type. Raises AnalysisError, NotReproducible."""
    data_types = [term.type, *(value.type for value in values)]
    if context.ansi:
        data_type = reduce(lambda a, b: common_type(a, b, context), data_types)
    else:
        data_type = _in_list_type(data_types, context)
    return coerce_term(term, data_type, context), [coerce_term(value, data_type, context) for value in values]


def _in_list_type(data_types: Sequence[pa.DataType], context: Context) -> pa.DataType:
    """Common type of an IN list without ANSI mode: string if any is; booleans and binaries among their own kind."""
    told = [data_type for data_type in data_types if data_type != pa.null()]
    if len({data_type if data_type in (pa.bool_(), pa.binary()) else None for data_type in told}) > 1:
        raise AnalysisError(f"Spark does not compare {' with '.join(map(spark_type_name, told))} in a list")
    return pa.string() if pa.string() in told else reduce(lambda a, b: common_type(a, b, context), data_types)


def coerce_term(term: Term, data_type: pa.DataType, context: Context, mode: CastMode | None = None) -> Term:
    """The term as that type: literals at once, all else by a cast. Raises AnalysisError, NotReproducible."""
    if term.type == data_type:
        return term
    mode = mode or ("ansi" if context.ansi else "legacy")
    if is_variant(term.type) and not is_compound(data_type):
        inner, path = (term.term, term.path) if isinstance(term, JsonPath) else (term, "$")
        return JsonPath(inner, path, data_type, "try_variant_get" if mode == "try" else "variant_get")
    if not isinstance(term, Literal):
        return Cast(term, data_type, mode)
    value = cast_literal(term, data_type, mode, context)
    if value is None and term.value is not None and mode == "ansi":
        raise AnalysisError(f"{term.value!r} is not a value of type {spark_type_name(data_type)}")
    return Literal(value, data_type)


def cast_literal(literal: Literal, data_type: pa.DataType, mode: CastMode, context: Context) -> Any:
    """The value of a cast of a literal; None for NULL, or where Spark raises.

    Raises NotReproducible, also for words such as 'today', which Spark takes for a date in constants alone.
    """
    if data_type in _TIME_TYPES and isinstance(literal.value, str) and is_special_date(literal.value):
        raise NotReproducible(f"{literal.value!r} as {spark_type_name(data_type)} depends on the time")
    return cast_value(literal.value, literal.type, data_type, mode, context)


def is_special_date(text: str) -> bool:
    """Whether Spark may take this constant for a date or an instant by a word for it, such as 'today'."""
    return _SPECIAL_DATE.match(text.strip(TRIMMED_CHARACTERS)) is not None


def common_type(left: pa.DataType, right: pa.DataType, context: Context) -> pa.DataType:
    """The type as which Spark compares the two.

    Raises AnalysisError where it does not, NotReproducible where it may lose digits.
    """
    if left == right or right == pa.null():
        return left
    if left == pa.null():
        return right
    if pa.string() in (left, right):
        return _beside_text(left if right == pa.string() else right, context)
    found = _among_numbers(left, right, context) or _among_times(left, right)
    if found is None and not context.ansi and pa.bool_() in (left, right):
        other = left if right == pa.bool_() else right
        found = other if is_number(other) else None
    if found is None:
        raise AnalysisError(f"Spark does not compare {spark_type_name(left)} with {spark_type_name(right)}")
    return found


def is_number(data_type: pa.DataType) -> bool:
    return bool(data_type in INTEGER_TYPES or is_.is_floating(data_type) or is_.is_decimal(data_type))


def as_decimal(data_type: pa.DataType) -> pa.DataType:
    """The decimal type that holds all values of a number type that is not a float."""
    return pa.decimal128(_INTEGER_PRECISION[data_type], 0) if data_type in _INTEGER_PRECISION else data_type


def _comparison_type(term: Term, other: Term) -> pa.DataType:
    """The type of a side; beside a decimal, an integer literal is only as wide as it is written."""
    if (
        isinstance(term, Literal)
        and term.type in INTEGER_TYPES
        and term.value is not None
        and is_.is_decimal(other.type)
    ):
        return pa.decimal128(len(str(abs(term.value))), 0)
    return term.type


def _beside_text(other: pa.DataType, context: Context) -> pa.DataType:
    if other in INTEGER_TYPES:
        return pa.int64() if context.ansi else other
    if is_.is_decimal(other):
        return pa.float64()
    if other == pa.float32():
        return pa.float64() if context.ansi else other
    if is_compound(other):
        raise AnalysisError(f"Spark does not compare {spark_type_name(other)} with string")
    return other


def _among_numbers(left: pa.DataType, right: pa.DataType, context: Context) -> pa.DataType | None:
    if not (is_number(left) and is_number(right)):
        return None
    if left in INTEGER_TYPES and right in INTEGER_TYPES:
        return max(left, right, key=INTEGER_TYPES.index)
    if is_.is_floating(left) or is_.is_floating(right):
        legacy_float = (
            not context.ansi and pa.float32() in (left, right) and (left in INTEGER_TYPES or right in INTEGER_TYPES)
        )
        return pa.float32() if legacy_float else pa.float64()
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    if precision > 38:
        if left in INTEGER_TYPES or right in INTEGER_TYPES:
            return _wide_beside_integer(left, right)
        raise NotReproducible(f"Spark rounds when it compares {spark_type_name(left)} with {spark_type_name(right)}")
    return pa.decimal128(precision, scale)


def _wide_beside_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Compare a wide decimal with an integer: returns the decimal's type.

    Spark types BIGINT as decimal(20,0), though it has 19 digits, so a decimal with 19 whole digits still compares
    exactly. Raises NotReproducible where Spark would round.
    """
    number = right if left in INTEGER_TYPES else left
    if number.precision - number.scale >= 19:
        return number
    raise NotReproducible(f"Spark rounds when it compares {spark_type_name(left)} with {spark_type_name(right)}")


def _among_times(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    return max(left, right, key=_TIME_TYPES.index) if left in _TIME_TYPES and right in _TIME_TYPES else None
