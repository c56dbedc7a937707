"""Functions of Spark as terms, the few that are known here: an index may be on ``lower(email)`` or ``year(day)``.

Each is NULL where its argument is; ``date_trunc`` also takes a unit. A value on which Spark may say something else
raises NotReproducible: then only Spark evaluates the term, and a block that holds such a value is not indexed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions import datetimes
from fuse_index.expressions.errors import NotReproducible

_Days = npt.NDArray[np.datetime64]
_Numbers = npt.NDArray[np.int64]
_ARROW_DAYS = 11_000_000
"""Days before and after 1970 within which Arrow's kernels know the year: 32767 ends on day 11,248,737."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    argument_type: pa.DataType
    result_type: pa.DataType
    evaluate: Callable[[pa.Array], pa.Array]
    catalyst_class: str
    """Spark's class of it."""


def _cased(ascii_kernel: Callable[[pa.Array], pa.Array], each: Callable[[str], str]) -> Callable[[pa.Array], pa.Array]:
    def evaluate(values: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(values), min_count=0).as_py():
            return ascii_kernel(values)
        distinct = values.dictionary_encode()
        return pa.array(
            [_check_case_is_stable(value) and each(value) for value in distinct.dictionary.to_pylist()], pa.string()
        ).take(distinct.indices)

    return evaluate


_AMBIGUOUS_CASE_LETTERS = "\u0130\u03a3\u019b\u0264"
"""Letters whose case depends on the language or on what stands around them, or that libraries map differently."""


def _check_case_is_stable(text: str) -> str:
    """The text; not one whose other case depends on a language, on its surroundings, or on the edition of Unicode.

    Compared on all code points with Spark 4.0.1 and 4.3.0, with and without ICU: letters of Unicode 3.2 agree.
    """
    for letter in text if not text.isascii() else "":
        if letter in _AMBIGUOUS_CASE_LETTERS or _is_newer_letter(letter):
            raise NotReproducible(f"the other case of {letter!r} is not sure")
    return text


@cache
def _is_newer_letter(letter: str) -> bool:
    """A letter that Unicode 3.2 did not have, or that even this Python does not know yet."""
    category = unicodedata.category(letter)
    return category == "Cn" or (category[0] in "LN" and unicodedata.ucd_3_2_0.category(letter) == "Cn")


def _integers(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    return lambda values: pc.cast(kernel(values), pa.int32())


def _of_days(
    kernel: Callable[[pa.Array], pa.Array], part: Callable[[_Days], _Numbers]
) -> Callable[[pa.Array], pa.Array]:
    """A part of dates. Arrow's kernels hold years in 16 bits, and DuckDB's ``infinity`` is in the year 5,881,580."""

    def evaluate(values: pa.Array) -> pa.Array:
        days = pc.cast(values, pa.int32())
        bounds = pc.min_max(days)
        if not pc.any(pc.greater(pc.abs_checked(pc.cast(pa.array(bounds.values()), pa.int64())), _ARROW_DAYS)).as_py():
            return pc.cast(kernel(values), pa.int32())
        numbers = part(np.asarray(pc.fill_null(days, 0)).astype(np.int64).astype("datetime64[D]"))
        return pa.array(numbers.astype(np.int32), mask=np.asarray(pc.is_null(days)))

    return evaluate


def _years(days: _Days) -> _Numbers:
    return days.astype("datetime64[Y]").astype(np.int64) + 1970


def _months(days: _Days) -> _Numbers:
    return days.astype("datetime64[M]").astype(np.int64) % 12 + 1


def _days_of_month(days: _Days) -> _Numbers:
    numbers: _Numbers = (days - days.astype("datetime64[M]")).astype(np.int64) + 1
    return numbers


SCALAR_FUNCTIONS: Mapping[str, ScalarFunction] = {
    "lower": ScalarFunction(pa.string(), pa.string(), _cased(pc.ascii_lower, str.lower), "Lower"),
    "upper": ScalarFunction(pa.string(), pa.string(), _cased(pc.ascii_upper, str.upper), "Upper"),
    "length": ScalarFunction(pa.string(), pa.int32(), _integers(pc.utf8_length), "Length"),
    "year": ScalarFunction(pa.date32(), pa.int32(), _of_days(pc.year, _years), "Year"),
    "month": ScalarFunction(pa.date32(), pa.int32(), _of_days(pc.month, _months), "Month"),
    "day": ScalarFunction(pa.date32(), pa.int32(), _of_days(pc.day, _days_of_month), "DayOfMonth"),
}
FUNCTION_BY_CATALYST_CLASS: Mapping[str, str] = {
    scalar.catalyst_class: name for name, scalar in SCALAR_FUNCTIONS.items()
}
DATE_TRUNC = "date_trunc"
"""A function of two arguments, and of the session's time zone."""
DATE_TRUNC_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
"""What ``date_trunc`` cuts to: in Spark's words, in upper case, and as they are kept."""
FUNCTION_SYNONYMS: Mapping[str, str] = {
    "lcase": "lower",
    "ucase": "upper",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "dayofmonth": "day",
}


_SUPPORTED_MICROSECONDS = tuple((datetime(year, 1, 1) - datetimes.EPOCH) // datetimes.MICROSECOND for year in (2, 9999))
"""Microseconds between which every zone's clocks show years that Python has."""


def date_trunc(unit: str, values: pa.Array, time_zone: tzinfo) -> pa.Array:
    """Instants, cut to a unit of clocks in that zone.

    Raises NotReproducible where clocks are changed, or beyond Python's years.

    Where an hour is shown twice, Spark cuts both to their own midnight, as its edition of the zone tables has it.
    """
    if not datetimes.has_fixed_offset(time_zone):
        raise NotReproducible(
            f"date_trunc in {time_zone}, where clocks are changed: use CAST(… AS DATE), or a zone such as UTC or +01:00"
        )
    micros = values.cast(pa.int64())
    bounds = pc.min_max(micros)
    if (
        bounds["min"].is_valid
        and not _SUPPORTED_MICROSECONDS[0]
        <= bounds["min"].as_py()
        <= bounds["max"].as_py()
        <= _SUPPORTED_MICROSECONDS[1]
    ):
        raise NotReproducible("date_trunc of an instant beyond the years 2 to 9998")
    ahead = pa.scalar((time_zone.utcoffset(None) or timedelta()) // datetimes.MICROSECOND, pa.int64())
    clocks = pc.add(micros, ahead).cast(pa.timestamp("us"))
    return pc.subtract(pc.floor_temporal(clocks, unit=unit).cast(pa.int64()), ahead).cast(values.type)
