"""What a function of Spark is here: how a call is made of terms, and how its values are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fuse_index.expressions.coercion import coerce_term, is_number
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

TEXT, INT, LONG, DOUBLE, BOOLEAN = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
DATE, TIMESTAMP, NTZ = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the values of a call depend on besides its arguments.

    ``lenient``: a row on which Spark raises is NULL; otherwise it raises SparkWouldRaise.
    """

    context: Context
    lenient: bool

    def by_row(self, function: Callable[..., Any], columns: Sequence[pa.Array], data_type: pa.DataType) -> pa.Array:
        """The function's value on each row, computed once for equal arguments; NULL where an argument is."""
        return self.by_row_with_nulls(lambda *values: None if None in values else function(*values), columns, data_type)

    def by_row_with_nulls(
        self, function: Callable[..., Any], columns: Sequence[pa.Array], data_type: pa.DataType
    ) -> pa.Array:
        """The function's value on each row; it is given None for NULL."""
        known: dict[Any, Any] = {}
        made = []
        for values in zip(*map(_values, columns), strict=True):
            key = repr(values)  # -0.0 is not 0.0, and 1 is not 1.0
            if key not in known:
                known[key] = self._one(function, values)
            made.append(known[key])
        try:
            return pa.array(made, data_type)
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as beyond:
            raise NotReproducible(f"a value that only Spark can hold: {beyond}") from None

    def _one(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        try:
            return function(*values)
        except SparkWouldRaise:
            if not self.lenient:
                raise
            return None
        except OverflowError as beyond:
            raise NotReproducible(f"beyond what Python can hold: {beyond}") from None


Build = Callable[[Sequence[Term], Context], Term]
Evaluate = Callable[[Call, Sequence[pa.Array], Evaluation], pa.Array]


@dataclass(frozen=True, slots=True)
class SparkFunction:
    """``build``: the call, or another term that means it, from arguments as they are written.

    ``evaluate``: one value a row, from the arguments as arrays of as many rows. ``session``: the fields of ``Context``
    that values depend on. ``approximate``: Java and we may differ in the last digits, so that only comparisons that
    these do not decide are answered.
    """

    name: str
    build: Build
    evaluate: Evaluate
    session: frozenset[str] = frozenset()
    approximate: bool = False


def _values(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as beyond:  # a day or an instant of a year that Python does not have
        raise NotReproducible(f"a value beyond what Python can hold: {beyond}") from None
    return values


def argument(name: str, number: int, term: Term, data_type: pa.DataType, context: Context) -> Term:
    """The term as an argument of that type, cast where Spark casts. Raises UnsupportedExpression, AnalysisError."""
    if term.type == data_type:
        return term
    if not _is_implicit(term, data_type):
        raise UnsupportedExpression(
            f"{name}() with {spark_type_name(term.type)} as argument {number + 1}, in the place of "
            f"{spark_type_name(data_type)}"
        )
    return coerce_term(term, data_type, context)


def _is_implicit(term: Term, wanted: pa.DataType) -> bool:
    """Whether Spark casts by itself, in ANSI sessions and others."""
    given = term.type
    if given == pa.null():
        return True
    if wanted == TEXT:
        return not pa.types.is_nested(given) and given != pa.binary() and not pa.types.is_floating(given)
    if wanted in (DATE, TIMESTAMP, NTZ):
        return given in (DATE, TIMESTAMP, NTZ, TEXT)
    if wanted == DOUBLE:
        return is_number(given) or given == TEXT
    widths = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    return given in widths and wanted in widths and widths.index(given) < widths.index(wanted)


def fixed(
    name: str,
    types: Sequence[pa.DataType],
    result: pa.DataType,
    evaluate: Evaluate,
    defaults: Sequence[Term] = (),
) -> SparkFunction:
    """A function of arguments of fixed types; ``defaults`` stand for the last ones, where these are missing."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, len(types) - len(defaults), len(types))
        made = [argument(name, number, term, types[number], context) for number, term in enumerate(terms)]
        missing = len(types) - len(made)
        return Call(name, (*made, *defaults[len(defaults) - missing :]), result)

    return SparkFunction(name, build, evaluate)


def by_row(
    name: str,
    types: Sequence[pa.DataType],
    result: pa.DataType,
    function: Callable[..., Any],
    defaults: Sequence[Term] = (),
) -> SparkFunction:
    """A function of fixed types that is NULL where an argument is, by its value on one row."""

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        return evaluation.by_row(function, columns, call.type)

    return fixed(name, types, result, evaluate, defaults)


def check_count(name: str, terms: Sequence[Term], least: int, most: int | None) -> None:
    """Raises UnsupportedExpression, which says how many arguments the function takes."""
    if len(terms) < least or (most is not None and len(terms) > most):
        takes = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        raise UnsupportedExpression(f"{name}() takes {takes} argument{'s' * (takes != '1')}, not {len(terms)}")


def constant_of(name: str, what: str, term: Term) -> Any:
    """The value of an argument that must be a constant. Raises UnsupportedExpression."""
    if not isinstance(term, Literal):
        raise UnsupportedExpression(f"{name}() whose {what} is no constant")
    return term.value


def rewritten(name: str, build: Build) -> SparkFunction:
    """A function of which another term is made, so that it is never evaluated by its own name."""

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        raise AssertionError(f"{call.name} is built as another term")

    return SparkFunction(name, build, evaluate)
