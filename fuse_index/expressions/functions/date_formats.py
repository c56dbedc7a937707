"""``date_format``: days and instants as text, by patterns of letters that Java's editions write alike.

Letters: y or yyyy, yy, M to MMMM, d, dd, D, H, HH, h, hh, m, mm, s, ss, S to SSSSSS, a, E to EEEE; text in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from fuse_index.expressions.coercion import coerce_term
from fuse_index.expressions.errors import UnsupportedExpression
from fuse_index.expressions.functions.clocks import MICROSECONDS_PER_SECOND, clocks, wall_time
from fuse_index.expressions.functions.signature import (
    DATE,
    LONG,
    NTZ,
    TEXT,
    TIMESTAMP,
    Evaluation,
    SparkFunction,
    argument,
    check_count,
    constant_of,
)
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z'\[\]{}#]")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DEFAULT = "yyyy-MM-dd HH:mm:ss"

_Shown = Callable[[datetime], str]


def _padded(part: Callable[[datetime], int], width: int) -> _Shown:
    return lambda moment: f"{part(moment):0{width}}"


def _fraction(width: int) -> _Shown:
    return lambda moment: f"{moment.microsecond:06}"[:width]


_LETTERS: Mapping[str, _Shown] = {
    "y": _padded(lambda moment: moment.year, 1),
    "yyyy": _padded(lambda moment: moment.year, 4),
    "yy": _padded(lambda moment: moment.year % 100, 2),
    "M": _padded(lambda moment: moment.month, 1),
    "MM": _padded(lambda moment: moment.month, 2),
    "MMM": lambda moment: _MONTHS[moment.month - 1][:3],
    "MMMM": lambda moment: _MONTHS[moment.month - 1],
    "d": _padded(lambda moment: moment.day, 1),
    "dd": _padded(lambda moment: moment.day, 2),
    "D": _padded(lambda moment: moment.timetuple().tm_yday, 1),
    "H": _padded(lambda moment: moment.hour, 1),
    "HH": _padded(lambda moment: moment.hour, 2),
    "h": _padded(lambda moment: (moment.hour + 11) % 12 + 1, 1),
    "hh": _padded(lambda moment: (moment.hour + 11) % 12 + 1, 2),
    "m": _padded(lambda moment: moment.minute, 1),
    "mm": _padded(lambda moment: moment.minute, 2),
    "s": _padded(lambda moment: moment.second, 1),
    "ss": _padded(lambda moment: moment.second, 2),
    "a": lambda moment: "AM" if moment.hour < 12 else "PM",
    **{"S" * width: _fraction(width) for width in range(1, 7)},
    **dict.fromkeys(("E", "EE", "EEE"), lambda moment: _DAYS[moment.weekday()][:3]),
    "EEEE": lambda moment: _DAYS[moment.weekday()],
}


def parse_format(name: str, pattern: str) -> Sequence[_Shown]:
    """What a pattern writes, part by part. Raises UnsupportedExpression for letters that are not known here."""
    parts: list[_Shown] = []
    place = 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        text = found[0] if found else pattern[place]
        if found is None or (found[2] and text not in _LETTERS):
            raise UnsupportedExpression(f"{name}() with {text!r} in a pattern; known are {', '.join(_LETTERS)}")
        place = found.end()
        parts.append(_LETTERS[text] if found[2] else _constant(found))
    return parts


def _constant(found: re.Match[str]) -> _Shown:
    text = found[0] if found[1] is None else found[1].replace("''", "'") or "'"
    return lambda _: text


def _formatted(name: str, pattern: str | None, shown: pa.Array, evaluation: Evaluation) -> pa.Array:
    if pattern is None:
        return pa.nulls(len(shown), TEXT)
    parts = parse_format(name, pattern)
    return evaluation.by_row(lambda clock: "".join(part(wall_time(clock)) for part in parts), [shown], TEXT)


def _pattern(name: str, terms: Sequence[Term]) -> Literal:
    pattern = constant_of(name, "pattern", terms[1]) if len(terms) == 2 else _DEFAULT
    if pattern is not None and not isinstance(pattern, str):
        raise UnsupportedExpression(f"{name}() with the pattern {pattern!r}")
    parse_format(name, pattern or "")
    return Literal(pattern, TEXT)


def _build_date_format(terms: Sequence[Term], context: Context) -> Term:
    check_count("date_format", terms, 2, 2)
    moment = terms[0]
    if moment.type not in (DATE, TIMESTAMP, NTZ, TEXT, pa.null()):
        raise UnsupportedExpression(f"date_format() of {spark_type_name(moment.type)}")
    return Call("date_format", (coerce_term(moment, TIMESTAMP, context), _pattern("date_format", terms)), TEXT)


def _date_format(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    shown, is_null = clocks(columns[0], evaluation.context)
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)  # as it was built
    return _formatted("date_format", pattern.value, pa.array(shown, mask=is_null), evaluation)


def _build_from_unixtime(terms: Sequence[Term], context: Context) -> Term:
    check_count("from_unixtime", terms, 1, 2)
    seconds = argument("from_unixtime", 0, terms[0], LONG, context)
    return Call("from_unixtime", (seconds, _pattern("from_unixtime", terms)), TEXT)


def _from_unixtime(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def micros(seconds: int) -> int:
        wall_time(seconds * MICROSECONDS_PER_SECOND)  # of a year that Python has
        return seconds * MICROSECONDS_PER_SECOND

    instants = evaluation.by_row(micros, columns[:1], LONG).view(TIMESTAMP)
    return _date_format(call, [instants], evaluation)


DATE_FORMAT_FUNCTIONS: Sequence[SparkFunction] = (
    SparkFunction("date_format", _build_date_format, _date_format, frozenset({"time_zone"})),
    SparkFunction("from_unixtime", _build_from_unixtime, _from_unixtime, frozenset({"time_zone"})),
)
