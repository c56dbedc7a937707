"""What a comparison of a monotone function says of its argument: ``year(day) = 2026`` is true of days of 2026 alone.

A function that never decreases, or never increases, along the order of its argument's type is turned round by halving.
Bounds are only implied: where the comparison is TRUE they are, which is all that a vote needs. Sums and products of
integers are turned round in ANSI sessions alone, since in others they wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.errors import OpaqueError
from fuse_index.expressions import datetimes
from fuse_index.expressions.calls import evaluate_known_call
from fuse_index.expressions.cast_inversion import OrderedType
from fuse_index.expressions.coercion import INTEGER_TYPES
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.value_set import sort_key
from fuse_index.predicate import And, Call, Compare, Context, In, Leaf, Literal, Opaque, StartsWith, Term

_LOWER, _UPPER = frozenset({"=", "<=>", ">", ">="}), frozenset({"=", "<=>", "<", "<="})
"""Comparisons that say how small, and how large, a value is at least or at most."""
_SAFE_YEARS = (3, 9997)
"""Years in which everything here is defined; what lies beyond is only known to lie beyond."""
_OF_DAYS = frozenset({"year", "last_day", "unix_date", "date_add", "date_sub", "add_months", "trunc"})
_OF_INSTANTS = frozenset({"unix_timestamp", "unix_seconds"})
_OF_CLOCKS = frozenset({"date_trunc", "plus_interval"})
_OF_DECIMALS = frozenset({"floor", "ceil", "round"})


@dataclass(frozen=True)
class Monotone:
    """A call of one term, whose value rises along the term's order, or falls."""

    inner: Term
    value: Callable[[Any], Any]
    rises: bool = True


def implied_leaves(leaf: Leaf, context: Context) -> tuple[Leaf, ...]:
    """Leaves on what is within the calls of a leaf, each TRUE on every row on which the leaf is.

    >>> from fuse_index.predicate import Column
    >>> day = Column(("day",), pa.date32())
    >>> in_2026 = Compare("=", Call("year", (day,), pa.int32()), Literal(2026, pa.int32()))
    >>> [(leaf.operator, str(leaf.right.value)) for leaf in implied_leaves(in_2026, Context())]
    [('>=', '2026-01-01'), ('<=', '2026-12-31')]
    """
    found = list(dict.fromkeys(_implied(leaf, context)))
    return tuple(each for each in found if each != leaf)


def _implied(leaf: Leaf, context: Context) -> Iterator[Leaf]:
    for bound in _bounds(leaf, context):
        for each in _conjuncts(bound, context):
            yield each
            yield from _implied(each, context)


def _conjuncts(bound: Leaf, context: Context) -> Sequence[Leaf]:
    """The bound as indexes like it; () for what is more than an AND."""
    try:
        found = normalize(bound, context)
    except NotReproducible:
        return ()
    parts = found.terms if isinstance(found, And) else (found,)
    return [part for part in parts if isinstance(part, Leaf) and not isinstance(part, Opaque)]


def _bounds(leaf: Leaf, context: Context) -> list[Leaf]:
    match leaf:
        case Compare(operator, Call() as call, Literal(value)) if value is not None:
            values = [value]
        case In(Call() as call) if known := [value for value in leaf.plain_values if value is not None]:
            operator, values = "=", sorted(known, key=sort_key)
        case _:
            return []
    if (text := _bound_of_text(operator, call, values)) is not None:
        return text
    try:
        found = _monotone(call, context)
        return [] if found is None else _inverted(operator, found, values, context)
    except (NotReproducible, SparkWouldRaise, OpaqueError, OverflowError):
        return []


def _bound_of_text(operator: str, call: Call, values: Sequence[Any]) -> list[Leaf] | None:
    """The first letters of a text never come after the text, nor before that of an earlier text; None for others."""
    match call:
        case Call("substring", (text, Literal(1), Literal(int()))) | Call("left", (text, Literal(int()))) if (
            text.type == pa.string()
        ):
            found: list[Leaf] = [Compare(">=", text, Literal(values[0], pa.string()))] if operator in _LOWER else []
            if operator in ("=", "<=>") and len(values) == 1:
                found.append(StartsWith(text, Literal(values[0], pa.string())))
            return found
        case _:
            return None


def _inverted(operator: str, found: Monotone, values: Sequence[Any], context: Context) -> list[Leaf]:
    """The bounds of the inner term; ``values`` ascend."""
    scale = OrderedType(found.inner.type, found.inner.type, True, context)
    low, high = _places(scale)
    least, most = sort_key(values[0]), sort_key(values[-1])

    def large_enough(made: Any) -> bool:
        return bool(made > least if operator == ">" else made >= least)

    def small_enough(made: Any) -> bool:
        return bool(made < most if operator == "<" else made <= most)

    begins, lasts = (large_enough, small_enough) if found.rises else (small_enough, large_enough)
    has_begin, has_end = (operator in _LOWER, operator in _UPPER)[:: 1 if found.rises else -1]

    def first(reached: Callable[[Any], bool]) -> int:
        start, end = low, high + 1
        while start < end:
            middle = (start + end) // 2
            if reached(sort_key(found.value(scale.literal_at(middle).value))):
                end = middle
            else:
                start = middle + 1
        return start

    start = first(begins) if has_begin else low
    end = first(lambda made: not lasts(made)) if has_end else high + 1
    if has_begin and has_end and low < start == end - 1 < high:
        return [Compare("=", found.inner, scale.literal_at(start))]
    bounds: list[Leaf] = []
    if has_begin and start > low:
        bounds.append(Compare(">=" if start <= high else ">", found.inner, scale.literal_at(min(start, high))))
    if has_end and end <= high:
        bounds.append(Compare("<=" if end > low else "<", found.inner, scale.literal_at(max(end - 1, low))))
    return bounds


def _places(scale: OrderedType) -> tuple[int, int]:
    if scale.data_type == pa.date32():
        return date(_SAFE_YEARS[0], 1, 1).toordinal(), date(_SAFE_YEARS[1], 1, 1).toordinal()
    if is_.is_timestamp(scale.data_type):
        low, high = ((datetime(year, 1, 1) - datetimes.EPOCH) // timedelta(microseconds=1) for year in _SAFE_YEARS)
        return low, high
    return scale.lowest, scale.highest


def _monotone(call: Call, context: Context) -> Monotone | None:
    """The call as a function of one term; None for any other call."""
    terms = [term for term in call.arguments if not isinstance(term, Literal)]
    if len(terms) != 1 or any(part.value is None for part in call.arguments if isinstance(part, Literal)):
        return None
    (inner,) = terms
    if call.name in ("+", "-", "*"):
        return _of_arithmetic(call, inner, context)
    is_known = (
        (call.name in _OF_DAYS and inner.type == pa.date32())
        or (call.name in _OF_INSTANTS and is_.is_timestamp(inner.type))
        or (call.name in _OF_CLOCKS and is_.is_timestamp(inner.type) and _is_steady(inner.type, context))
        or (call.name in _OF_DECIMALS and is_.is_decimal(inner.type))
    )
    return Monotone(inner, lambda value: _evaluated(call, inner, value, context)) if is_known else None


def _is_steady(data_type: pa.DataType, context: Context) -> bool:
    """Whether clocks that are read are never changed."""
    return data_type.tz is None or datetimes.has_fixed_offset(datetimes.parse_time_zone(context.time_zone))


def _evaluated(call: Call, inner: Term, value: Any, context: Context) -> Any:
    operands = [
        pa.scalar(term.value, term.type) if isinstance(term, Literal) else pa.array([value], inner.type)
        for term in call.arguments
    ]
    return evaluate_known_call(call, operands, 1, context, lenient=False)[0].as_py()


def _of_arithmetic(call: Call, inner: Term, context: Context) -> Monotone | None:
    """Sums and products that are exact; what overflows raises, or is NULL, and so is never TRUE."""
    if inner.type in INTEGER_TYPES:
        if not context.ansi:
            return None
    elif not is_.is_decimal(inner.type) or _rounds(call):
        return None
    match call:
        case Call("-", (_,)):
            return Monotone(inner, lambda value: -value, rises=False)
        case Call("+", (Literal(number), _) | (_, Literal(number))):
            return Monotone(inner, lambda value: value + number)
        case Call("-", (_, Literal(number))):
            return Monotone(inner, lambda value: value - number)
        case Call("-", (Literal(number), _)):
            return Monotone(inner, lambda value: number - value, rises=False)
        case Call("*", (Literal(number), _) | (_, Literal(number))) if number != 0:
            return Monotone(inner, lambda value: value * number, rises=number > 0)
    return None


def _rounds(call: Call) -> bool:
    """Whether decimals may have more digits than are computed with here."""
    return call.type.precision > 28 or any(term.type.precision > 28 for term in call.arguments)
