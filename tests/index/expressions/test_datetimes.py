"""Clocks, days and casts of single values, where Spark's own answers were not written down."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from fuse_index.expressions import datetimes
from fuse_index.expressions.casts import cast_value, to_float32
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.predicate import Cast, Column, Context

TIMESTAMP, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
CHANGES = {
    "America/New_York": ["1883-11-18T17:00", "2024-03-10T07:00", "2024-11-03T06:00"],
    "Pacific/Apia": ["2011-12-30T10:00"],
    "Australia/Lord_Howe": ["2024-04-06T15:00"],
    "America/St_Johns": ["1988-04-03T03:31", "2006-10-29T02:31"],
}


@pytest.mark.parametrize("place", CHANGES)
def test_many_clocks_are_read_like_one(place):
    seconds = [
        datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() + step
        for moment in CHANGES[place]
        for step in range(-7200, 7200, 7)
    ]
    micros = np.array([int(second) * 1_000_000 + 1 for second in seconds], np.int64)
    moments = pa.table({"at": pa.array(micros).view(TIMESTAMP)})

    for kind in (NTZ, pa.date32()):
        made = evaluate_term(Cast(Column(("at",), TIMESTAMP), kind), moments, Context(place)).to_pylist()

        assert made == [
            cast_value(moment, TIMESTAMP, kind, "ansi", Context(place)) for moment in moments["at"].to_pylist()
        ]


@pytest.mark.parametrize(
    ("name", "offset"),
    [("UTC", 0), ("Z", 0), ("+1", 60), ("-08:30", -510), ("UTC+01:00", 60), ("GMT-2", -120), ("+0530", 330)],
)
def test_fixed_zones_are_read_as_java_does(name, offset):
    place = datetimes.parse_time_zone(name)

    assert place.utcoffset(None) == timedelta(minutes=offset)
    assert datetimes.has_fixed_offset(place)


@pytest.mark.parametrize("name", ["Mars/Olympus", "+19:00", "+01:60", "", "../etc/passwd"])
def test_zones_that_are_not_known_are_not_guessed(name):
    with pytest.raises(NotReproducible):
        datetimes.parse_time_zone(name)


def test_a_clock_that_was_never_shown_is_moved_on_and_one_shown_twice_is_the_first():
    place = datetimes.parse_time_zone("America/New_York")

    assert datetimes.instant(datetime(2024, 3, 10, 2, 30), place) == datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    assert datetimes.instant(datetime(2024, 11, 3, 1, 30), place) == datetime(2024, 11, 3, 5, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["-2024-03-10", "0000-01-01", "12345-01-01"])
def test_years_beyond_python_are_not_guessed(text):
    with pytest.raises(NotReproducible):
        datetimes.parse_date(text)


@pytest.mark.parametrize("text", ["T12:30", "12:30", "7:05:00"])
def test_a_time_of_today_is_not_guessed(text):
    with pytest.raises(NotReproducible):
        datetimes.parse_timestamp(text, UTC)


def test_dates_end_where_spark_ends_them():
    assert datetimes.parse_date(" 2024-3-1\n") == date(2024, 3, 1)
    assert datetimes.parse_date("2024-03-01 and whatever follows") == date(2024, 3, 1)
    assert datetimes.parse_date("2024-03 10:00") is None
    assert datetimes.parse_date("2024-03-010") is None


def test_a_float_is_rounded_once():
    just_above_half = Decimal(1) + Decimal(2) ** -24 + Decimal(2) ** -60  # as a double it is the half itself

    assert to_float32(just_above_half) == 1 + 2**-23
    assert to_float32(Decimal(1) + Decimal(2) ** -24) == 1.0
    assert to_float32(Decimal("1e400")) == float("inf")


@pytest.mark.parametrize(("value", "rounded"), [("0.5", 1), ("2.5", 3), ("-2.5", -3), ("2.49", 2)])
def test_decimals_round_half_away_from_zero(value, rounded):
    assert cast_value(Decimal(value), pa.decimal128(5, 2), pa.decimal128(5, 0), "ansi", Context()) == rounded


def test_whole_numbers_wrap_only_outside_of_ansi():
    wrapped = [cast_value(300, pa.int32(), pa.int8(), mode, Context()) for mode in ("legacy", "ansi", "try")]

    assert wrapped == [44, None, None]


def test_a_cast_that_is_not_known_is_not_guessed():
    with pytest.raises(NotReproducible, match="from double to string"):
        cast_value(0.1, pa.float64(), pa.string(), "ansi", Context())
    with pytest.raises(NotReproducible, match="outside of what Python can hold"):
        cast_value(datetime(9999, 12, 31, 23, tzinfo=UTC), TIMESTAMP, NTZ, "ansi", Context("+02:00"))
