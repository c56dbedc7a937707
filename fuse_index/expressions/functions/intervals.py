"""Distances in time: an instant so much later or earlier, and how many units lie between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from fuse_index.expressions.coercion import coerce_term
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.functions.clocks import (
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    add_months,
    check_safe,
    clocks,
    from_numbers,
    moved_instants,
    numbers,
    wall_time,
)
from fuse_index.expressions.functions.signature import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    NTZ,
    TEXT,
    TIMESTAMP,
    Evaluation,
    SparkFunction,
    argument,
    check_count,
    constant_of,
    fixed,
)
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

_HOUR = 3600 * MICROSECONDS_PER_SECOND
_MONTHS: Mapping[str, int] = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROSECONDS: Mapping[str, int] = {
    "WEEK": 7 * MICROSECONDS_PER_DAY,
    "DAY": MICROSECONDS_PER_DAY,
    "HOUR": _HOUR,
    "MINUTE": _HOUR // 60,
    "SECOND": MICROSECONDS_PER_SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_MAX_MONTHS = 120_000
_MAX_MICROSECONDS = 10_000 * 366 * MICROSECONDS_PER_DAY
_ZONE = frozenset({"time_zone"})
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """So many months, or so many microseconds, of which whole days are days of the calendar."""

    months: int
    microseconds: int

    @classmethod
    def of(cls, count: int, unit: str) -> TimeInterval:
        """So many units. Raises UnsupportedExpression for a unit that is none.

        >>> TimeInterval.of(7, "days")
        TimeInterval(months=0, microseconds=604800000000)
        """
        name = unit.upper().removesuffix("S")
        if name in _MONTHS:
            return cls(count * _MONTHS[name], 0)
        if name in _MICROSECONDS:
            return cls(0, count * _MICROSECONDS[name])
        raise UnsupportedExpression(f"an interval of {unit}: its units are {', '.join((*_MONTHS, *_MICROSECONDS))}")

    def __neg__(self) -> TimeInterval:
        return TimeInterval(-self.months, -self.microseconds)

    def __add__(self, other: TimeInterval) -> TimeInterval:
        return TimeInterval(self.months + other.months, self.microseconds + other.microseconds)

    def after(self, term: Term, context: Context) -> Term:
        """The term that is this much later. Raises AnalysisError, UnsupportedExpression."""
        if abs(self.months) > _MAX_MONTHS or abs(self.microseconds) > _MAX_MICROSECONDS:
            raise UnsupportedExpression("an interval of more than 10,000 years")
        if self.months and self.microseconds:
            raise UnsupportedExpression("an interval of months and of days or times: add one after the other")
        if term.type == TEXT:
            raise UnsupportedExpression("an interval added to text: cast it to TIMESTAMP")
        if term.type not in (DATE, TIMESTAMP, NTZ):
            raise AnalysisError(f"no interval can be added to {spark_type_name(term.type)}")
        if term.type == DATE and self.months:
            return Call("add_months", (term, Literal(self.months, INT)), DATE)
        if term.type == DATE and self.microseconds % MICROSECONDS_PER_DAY == 0:
            return Call("date_add", (term, Literal(self.microseconds // MICROSECONDS_PER_DAY, INT)), DATE)
        moved = coerce_term(term, TIMESTAMP, context) if term.type == DATE else term
        parts = (Literal(self.months, INT), Literal(self.microseconds, LONG))
        return Call("plus_interval", (moved, *parts), moved.type)


def _build_plus_interval(terms: Sequence[Term], context: Context) -> Term:
    check_count("plus_interval", terms, 3, 3)
    return Call("plus_interval", tuple(terms), terms[0].type)


def _plus_interval(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    months, microseconds = (part.value for part in call.arguments[1:] if isinstance(part, Literal))

    def move(shown: np.ndarray) -> np.ndarray:
        if months:
            days, time = np.divmod(shown, MICROSECONDS_PER_DAY)
            return add_months(days, months) * MICROSECONDS_PER_DAY + time
        return shown + whole_days

    whole_days = int(microseconds / MICROSECONDS_PER_DAY) * MICROSECONDS_PER_DAY
    if not months and not whole_days:  # no calendar takes part
        values, is_null = numbers(columns[0])
        check_safe(values)
    else:
        values, is_null = moved_instants(columns[0], evaluation.context, move)
    return from_numbers(values + (0 if months else microseconds - whole_days), is_null, call.type)


def _months_between(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(later: int, earlier: int) -> float:
        a, b = wall_time(later), wall_time(earlier)
        months = (a.year - b.year) * 12 + a.month - b.month
        if a.day == b.day or (_is_last_day(a) and _is_last_day(b)):
            return float(months)
        seconds = (a.day - b.day) * _SECONDS_PER_DAY + (_seconds_of_day(later) - _seconds_of_day(earlier))
        between = months + seconds / (31.0 * _SECONDS_PER_DAY)
        return float(np.floor(between * 1e8 + 0.5)) / 1e8  # as Java's round has it

    shown = [pa.array(values, mask=is_null) for values, is_null in (clocks(c, evaluation.context) for c in columns)]
    return evaluation.by_row(value, shown, DOUBLE)


def _seconds_of_day(clock: int) -> int:
    return clock % MICROSECONDS_PER_DAY // MICROSECONDS_PER_SECOND


def _is_last_day(moment: date) -> bool:
    return date.fromordinal(moment.toordinal() + 1).day == 1


def _build_timestampdiff(terms: Sequence[Term], context: Context) -> Term:
    check_count("timestampdiff", terms, 3, 3)
    unit = str(constant_of("timestampdiff", "unit", terms[0])).upper()
    if unit not in _MONTHS and unit not in _MICROSECONDS:
        raise UnsupportedExpression(f"timestampdiff() in {unit}: say one of {', '.join((*_MONTHS, *_MICROSECONDS))}")
    ends = [argument("timestampdiff", number, term, TIMESTAMP, context) for number, term in enumerate(terms[1:], 1)]
    return Call("timestampdiff", (Literal(unit, TEXT), *ends), LONG)


def _timestampdiff(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    unit = call.arguments[0]
    assert isinstance(unit, Literal)  # as it was built
    (start, is_null), (end, also_null) = (clocks(column, evaluation.context) for column in columns[1:])
    is_null = is_null | also_null
    if unit.value in _MICROSECONDS:
        distance = end - start
        whole = np.abs(distance) // _MICROSECONDS[unit.value] * np.sign(distance)
        return from_numbers(whole, is_null, LONG)
    both = [pa.array(values, mask=is_null) for values in (start, end)]
    length = _MONTHS[unit.value]
    return evaluation.by_row(lambda a, b: int(_whole_months(a, b) / length), both, LONG)


def _whole_months(start: int, end: int) -> int:
    first, last = wall_time(start), wall_time(end)
    day = last.date()
    if day > first.date() and last.time() < first.time():
        day -= timedelta(days=1)
    elif day < first.date() and last.time() > first.time():
        day += timedelta(days=1)
    return int((_packed(day) - _packed(first.date())) / 32)


def _packed(day: date) -> int:
    return (day.year * 12 + day.month) * 32 + day.day


INTERVAL_FUNCTIONS: Sequence[SparkFunction] = (
    SparkFunction("plus_interval", _build_plus_interval, _plus_interval, _ZONE),
    replace(fixed("months_between", [TIMESTAMP, TIMESTAMP], DOUBLE, _months_between), session=_ZONE),
    SparkFunction("timestampdiff", _build_timestampdiff, _timestampdiff, _ZONE),
)
