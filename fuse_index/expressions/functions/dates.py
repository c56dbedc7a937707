"""Functions of days and instants: their parts, their distances, the days and months after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions.coercion import coerce_term
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.functions.clocks import (
    MICROSECONDS_PER_SECOND,
    add_months,
    clocks,
    from_numbers,
    numbers,
)
from fuse_index.expressions.functions.signature import (
    DATE,
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
    rewritten,
)
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

_Numbers = npt.NDArray[np.int64]
_ZONE = ["time_zone"]
_ARROW_DAYS = 11_000_000
_DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS: Mapping[str, int] = {
    name: number
    for number, day in enumerate(("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"))
    for name in (day, day[:3], day[:2])
}
TRUNCATIONS: Mapping[str, str] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
"""What ``trunc`` cuts days to."""


# --- parts ------------------------------------------------------------------------------------------------------------


def _part_of_day(name: str, part: Callable[[_Numbers], _Numbers]) -> SparkFunction:
    """A part of a date, by its days since 1970."""

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        days, is_null = numbers(columns[0])
        return from_numbers(part(days), is_null, INT)

    return fixed(name, [DATE], INT, evaluate)


def _day_of_year(days: _Numbers) -> _Numbers:
    dates = days.astype("datetime64[D]")
    found: _Numbers = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1
    return found


def _by_arrow(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[_Numbers], _Numbers]:
    def part(days: _Numbers) -> _Numbers:
        if len(days) and np.abs(days).max() > _ARROW_DAYS:
            raise NotReproducible("a day beyond the year 32,000")
        return np.asarray(kernel(pa.array(days.astype(np.int32)).view(DATE))).astype(np.int64)

    return part


def _month_of(days: _Numbers) -> _Numbers:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12


def _named(name: str, names: Sequence[str], part: Callable[[_Numbers], _Numbers]) -> SparkFunction:
    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        days, is_null = numbers(columns[0])
        return pa.array(np.array(names)[part(days)], TEXT, mask=is_null)

    return fixed(name, [DATE], TEXT, evaluate)


def _part_of_clock(name: str, unit: int, modulus: int) -> SparkFunction:
    """A part of what a clock of the session shows, or of a clock without a zone."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        term = terms[0] if terms[0].type == NTZ else argument(name, 0, terms[0], TIMESTAMP, context)
        return Call(name, (term,), INT)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        shown, is_null = clocks(columns[0], evaluation.context)
        return from_numbers(shown // unit % modulus, is_null, INT)

    return SparkFunction(name, build, evaluate, frozenset(_ZONE))


def _build_seconds_with_fraction(terms: Sequence[Term], context: Context) -> Term:
    check_count("seconds_with_fraction", terms, 1, 1)
    term = terms[0] if terms[0].type == NTZ else argument("second", 0, terms[0], TIMESTAMP, context)
    return Call("seconds_with_fraction", (term,), pa.decimal128(8, 6))


def _seconds_with_fraction(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    shown, is_null = clocks(columns[0], evaluation.context)
    micros = pa.array(shown % (60 * MICROSECONDS_PER_SECOND), mask=is_null)
    return evaluation.by_row(lambda each: Decimal(each).scaleb(-6), [micros], call.type)


# --- days after -------------------------------------------------------------------------------------------------------


def days_after(name: str, sign: int) -> SparkFunction:
    """``date_add`` and ``date_sub``: the day so many days after, or before."""

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        (days, is_null), (by, also_null) = numbers(columns[0]), numbers(columns[1])
        return from_numbers(days + sign * by, is_null | also_null, DATE)

    return fixed(name, [DATE, INT], DATE, evaluate)


def _add_months(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    (days, is_null), (months, also_null) = numbers(columns[0]), numbers(columns[1])
    return from_numbers(add_months(days, months), is_null | also_null, DATE)


def _date_diff(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    (end, is_null), (start, also_null) = numbers(columns[0]), numbers(columns[1])
    return from_numbers(end - start, is_null | also_null, INT)


def _last_day(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    days, is_null = numbers(columns[0])
    following = days.astype("datetime64[D]").astype("datetime64[M]") + 1
    return from_numbers(following.astype("datetime64[D]").astype(np.int64) - 1, is_null, DATE)


def _build_next_day(terms: Sequence[Term], context: Context) -> Term:
    check_count("next_day", terms, 2, 2)
    name = constant_of("next_day", "weekday", terms[1])
    if not isinstance(name, str) or name.upper() not in _WEEKDAYS:
        raise UnsupportedExpression(f"next_day() of a weekday {name!r}: say MO, TU, WE, TH, FR, SA or SU")
    return Call("next_day", (argument("next_day", 0, terms[0], DATE, context), Literal(name, TEXT)), DATE)


def _next_day(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    name = call.arguments[1]
    assert isinstance(name, Literal)  # as it was built
    days, is_null = numbers(columns[0])
    ahead = (_WEEKDAYS[name.value.upper()] - (days + 3) - 1) % 7 + 1
    return from_numbers(days + ahead, is_null, DATE)


def _build_trunc(terms: Sequence[Term], context: Context) -> Term:
    check_count("trunc", terms, 2, 2)
    unit = constant_of("trunc", "unit", terms[1])
    day = argument("trunc", 0, terms[0], DATE, context)
    if unit is None or str(unit).upper() not in TRUNCATIONS:
        return Literal(None, DATE)  # which is Spark's way to say so
    return Call("trunc", (day, Literal(TRUNCATIONS[str(unit).upper()], TEXT)), DATE)


def truncated_days(days: _Numbers, unit: str) -> _Numbers:
    """The first day of the year, quarter, month or week that each day is in: int64 days since 1970, shape (n,)."""
    if unit == "week":
        return days - (days + 3) % 7
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    length = {"year": 12, "quarter": 3, "month": 1}[unit]
    found: _Numbers = (months // length * length).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return found


def _trunc(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    unit = call.arguments[1]
    assert isinstance(unit, Literal)  # as it was built
    days, is_null = numbers(columns[0])
    return from_numbers(truncated_days(days, unit.value), is_null, DATE)


def _make_date(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(year: int, month: int, day: int) -> date | None:
        if not 1 <= year <= 9999:
            raise NotReproducible(f"a day of the year {year}")
        try:
            return date(year, month, day)
        except ValueError as wrong:
            if evaluation.context.ansi:
                raise SparkWouldRaise(f"there is no day {year}-{month}-{day}") from wrong
            return None

    return evaluation.by_row(value, columns, DATE)


# --- numbers and instants ---------------------------------------------------------------------------------------------


def _seconds_since_1970(name: str, rounds_down: bool) -> SparkFunction:
    """``unix_timestamp`` cuts the fraction off, also before 1970; ``unix_seconds`` rounds down."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        if terms[0].type not in (DATE, TIMESTAMP, NTZ):
            raise UnsupportedExpression(f"{name}() of {spark_type_name(terms[0].type)}: cast it to TIMESTAMP")
        return Call(name, (coerce_term(terms[0], TIMESTAMP, context),), LONG)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        micros, is_null = numbers(columns[0])
        seconds = micros // MICROSECONDS_PER_SECOND
        if not rounds_down:
            seconds += (micros < 0) & (micros % MICROSECONDS_PER_SECOND != 0)
        return from_numbers(seconds, is_null, LONG)

    return SparkFunction(name, build, evaluate, frozenset(_ZONE))


def _instant_of(name: str, unit: int) -> SparkFunction:
    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        given, is_null = numbers(columns[0])
        limit = (2**63 - 1) // unit
        if len(given) and not -limit <= given.min() <= given.max() <= limit:
            raise NotReproducible(f"{name}() of a number on which Spark overflows")
        return from_numbers(given * unit, is_null, TIMESTAMP)

    return fixed(name, [LONG], TIMESTAMP, evaluate)


def _cast_to(name: str, data_type: pa.DataType, mode: str | None = None) -> SparkFunction:
    """``to_date`` and ``to_timestamp`` without a pattern, which are casts."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        if len(terms) == 2:
            raise UnsupportedExpression(f"{name}() with a pattern: cast text in the form of ISO 8601")
        check_count(name, terms, 1, 1)
        if terms[0].type not in (DATE, TIMESTAMP, NTZ, TEXT):
            raise UnsupportedExpression(f"{name}() of {spark_type_name(terms[0].type)}")
        return coerce_term(terms[0], data_type, context, mode)  # type: ignore[arg-type]

    return rewritten(name, build)


DATE_FUNCTIONS: Sequence[SparkFunction] = (
    _part_of_day("quarter", lambda days: _month_of(days) // 3 + 1),
    _part_of_day("dayofweek", lambda days: (days + 4) % 7 + 1),
    _part_of_day("weekday", lambda days: (days + 3) % 7),
    _part_of_day("dayofyear", _day_of_year),
    _part_of_day("weekofyear", _by_arrow(pc.iso_week)),
    _part_of_day("yearofweek", _by_arrow(pc.iso_year)),
    _part_of_day("unix_date", lambda days: days),
    _named("dayname", _DAY_NAMES, lambda days: (days + 3) % 7),
    _named("monthname", _MONTH_NAMES, _month_of),
    _part_of_clock("hour", 3600 * MICROSECONDS_PER_SECOND, 24),
    _part_of_clock("minute", 60 * MICROSECONDS_PER_SECOND, 60),
    _part_of_clock("second", MICROSECONDS_PER_SECOND, 60),
    SparkFunction("seconds_with_fraction", _build_seconds_with_fraction, _seconds_with_fraction, frozenset(_ZONE)),
    days_after("date_add", 1),
    days_after("date_sub", -1),
    fixed("add_months", [DATE, INT], DATE, _add_months),
    fixed("datediff", [DATE, DATE], INT, _date_diff),
    fixed("last_day", [DATE], DATE, _last_day),
    SparkFunction("next_day", _build_next_day, _next_day),
    SparkFunction("trunc", _build_trunc, _trunc),
    replace(fixed("make_date", [INT, INT, INT], DATE, _make_date), session=frozenset({"ansi"})),
    _seconds_since_1970("unix_timestamp", rounds_down=False),
    _seconds_since_1970("unix_seconds", rounds_down=True),
    fixed("date_from_unix_date", [INT], DATE, lambda call, columns, evaluation: columns[0].view(DATE)),
    _instant_of("timestamp_seconds", MICROSECONDS_PER_SECOND),
    _instant_of("timestamp_millis", 1000),
    _instant_of("timestamp_micros", 1),
    _cast_to("to_date", DATE),
    _cast_to("to_timestamp", TIMESTAMP),
    _cast_to("try_to_date", DATE, "try"),
    _cast_to("try_to_timestamp", TIMESTAMP, "try"),
)
