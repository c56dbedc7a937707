"""The values of calls that are known here: operators, the functions that indexes have long been on, and the library.

A call of an **approximate** function is worth only a comparison with a constant, where no last digit decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.expressions import datetimes
from fuse_index.expressions.arithmetic import ARITHMETIC_OPERATORS, depends_on_ansi, evaluate_arithmetic
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.functions.library import LIBRARY
from fuse_index.expressions.functions.mathematics import nearby
from fuse_index.expressions.functions.signature import Evaluation
from fuse_index.expressions.scalar_functions import DATE_TRUNC, SCALAR_FUNCTIONS, date_trunc
from fuse_index.predicate import Call, Compare, Context, Literal, Term

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

_Values = Any
"""A pa.Array, or a pa.Scalar that stands for the same value on every row."""


NULL_ON_NULL: frozenset[str] = frozenset(
    {
        *ARITHMETIC_OPERATORS,
        *SCALAR_FUNCTIONS,
        DATE_TRUNC,
        *("rlike", "substring", "concat", "instr", "replace", "reverse", "btrim", "ltrim", "rtrim", "regexp_extract"),
        *("array_contains", "arrays_overlap", "map_contains_key", "element_at", "[]", "map_value", "levenshtein"),
        *("abs", "sign", "sqrt", "pmod", "hour", "minute", "second", "quarter", "dayofweek", "dayofyear", "weekofyear"),
        *("date_add", "date_sub", "datediff", "add_months", "last_day"),
    }
)
"""Functions of Spark that are NULL wherever an argument is, and perhaps elsewhere."""
NULL_OTHERWISE = frozenset({"array_contains", "arrays_overlap", "element_at", "[]", "map_value"})
"""Functions that are NULL wherever an argument is, and may be NULL on values, too."""


def is_known_call(name: str, functions: Mapping[str, Function]) -> bool:
    """Whether calls of this name are evaluated here; a plugin's function of that name goes before ours."""
    if name in ARITHMETIC_OPERATORS:
        return True
    return name not in functions and (name in SCALAR_FUNCTIONS or name == DATE_TRUNC or name in LIBRARY)


def is_approximate(term: Term) -> bool:
    """Whether Java's value may be another double nearby."""
    return isinstance(term, Call) and term.name in LIBRARY and LIBRARY[term.name].approximate


_COUNTED_FROM_ONE = ("element_at", "try_element_at", "split_part")
"""Functions that raise in all sessions where they are asked for part 0."""


def compared_approximation(leaf: object) -> Call | None:
    """The approximate call that a leaf compares with a constant."""
    match leaf:
        case Compare(_, Call() as call, Literal()) if is_approximate(call):
            return call
        case _:
            return None


def session_fields(term: Call) -> frozenset[str]:
    """The fields of ``Context`` that the call depends on by itself, its arguments aside."""
    if term.name == DATE_TRUNC:
        return frozenset({"time_zone", "ansi"})
    if term.name in LIBRARY:
        return LIBRARY[term.name].session
    return frozenset({"ansi"} if depends_on_ansi(term) else ())


def may_raise_on_values(term: Call, context: Context) -> bool:
    """Whether Spark may raise on values of which such a call makes NULL here, where it is ``lenient``."""
    if term.name in _COUNTED_FROM_ONE:
        return True
    if not context.ansi or not (
        depends_on_ansi(term) or (term.name in LIBRARY and "ansi" in LIBRARY[term.name].session)
    ):
        return False
    divisor = term.arguments[-1]
    by_constant = term.name in ("/", "%", "pmod") and isinstance(divisor, Literal) and bool(divisor.value)
    return pa.types.is_decimal(term.type) or not by_constant


def evaluate_known_call(
    term: Call, operands: Sequence[_Values], row_count: int, context: Context, lenient: bool, approximate: bool = False
) -> _Values:
    """The values of a call that ``is_known_call``.

    ``lenient``: NULL where Spark raises. ``approximate``: even if the last digits are not sure. Raises SparkWouldRaise,
    and NotReproducible for what only Spark knows.
    """
    name = term.name
    if is_approximate(term) and not approximate:
        raise NotReproducible(f"the last digits of {name}() are not sure: compare it with a constant")
    if name in ARITHMETIC_OPERATORS:
        return evaluate_arithmetic(term, operands, context.ansi, lenient)
    columns = [pa.repeat(each, row_count) if isinstance(each, pa.Scalar) else each for each in operands]
    if name in SCALAR_FUNCTIONS:
        return SCALAR_FUNCTIONS[name].evaluate(columns[0])
    if name == DATE_TRUNC:
        unit = term.arguments[0]
        assert isinstance(unit, Literal)  # as it was built
        return date_trunc(unit.value, columns[1], datetimes.parse_time_zone(context.time_zone))
    return LIBRARY[name].evaluate(term, columns, Evaluation(context, lenient))


def compare_nearby(
    call: Call, values: pa.Array, constant: _Values, kernel: Callable[[_Values, _Values], _Values]
) -> pa.Array:
    """The comparison of an approximate call's values. Raises NotReproducible where the last digits decide."""
    answers = [kernel(side, constant) for side in (values, *nearby(call.name, values))]
    if any(not answers[0].equals(answer) for answer in answers[1:]):
        raise NotReproducible(f"the last digits of {call.name}() decide, which libraries compute in different ways")
    return answers[0]
