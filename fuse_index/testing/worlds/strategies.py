"""Wide worlds: values of every type, drawn by hypothesis with a liking for trouble, and their neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_
from hypothesis import strategies as st

from fuse_index.testing.worlds.small_worlds import EXACT_DECIMALS, samples_of_type

_Strategy = st.SearchStrategy[Any]


def values_of_type(data_type: pa.DataType) -> _Strategy:
    """Values of a type, never NULL."""
    return st.one_of(st.sampled_from(samples_of_type(data_type).literals), _arbitrary_values(data_type))


def _arbitrary_values(data_type: pa.DataType) -> _Strategy:
    if is_.is_boolean(data_type):
        return st.booleans()
    if is_.is_signed_integer(data_type):
        end = 1 << data_type.bit_width - 1
        return st.integers(-end, end - 1)
    if is_.is_floating(data_type):
        return st.floats(width=32 if is_.is_float32(data_type) else 64)
    if is_.is_decimal(data_type):
        end = 10**data_type.precision - 1
        return st.integers(-end, end).map(lambda unscaled: Decimal(unscaled).scaleb(-data_type.scale, EXACT_DECIMALS))
    if is_.is_timestamp(data_type):
        return st.datetimes(timezones=st.just(UTC) if data_type.tz else st.none())
    if is_.is_date32(data_type):
        return st.dates()
    if is_.is_binary(data_type):
        return st.one_of(st.binary(max_size=5), st.binary(min_size=30, max_size=40))
    return st.one_of(
        st.text(max_size=5),
        st.builds(lambda prefix, rest: prefix * 16 + rest, st.text(max_size=3), st.text(max_size=3)),
    )


def block_lists(rows: _Strategy) -> _Strategy:
    """A few blocks of a few zones of a few rows."""
    zone = st.lists(rows, min_size=1, max_size=4)
    return st.lists(st.lists(zone, min_size=1, max_size=3), min_size=1, max_size=4)


def values_near(values: Sequence[Any], data_type: pa.DataType) -> list[Any]:
    """Values that are in the data, or one step beside it."""
    found = [
        other for value in values if value is not None for other in (value, *neighbouring_values(value, data_type))
    ]
    return [value for value in found if _fits(value, data_type)] or list(samples_of_type(data_type).literals)


def neighbouring_values(value: Any, data_type: pa.DataType) -> Iterator[Any]:
    """What lies just beside a value."""
    match value:
        case bool():
            yield not value
        case int():
            yield from (value - 1, value + 1)
        case float():
            kind = np.float32 if is_.is_float32(data_type) else np.float64
            with np.errstate(over="ignore"):  # beside the greatest number lies infinity
                yield from (float(np.nextafter(kind(value), kind(end))) for end in (-math.inf, math.inf))
            yield -value
        case Decimal():
            step = Decimal(1).scaleb(-data_type.scale)
            yield from (EXACT_DECIMALS.subtract(value, step), EXACT_DECIMALS.add(value, step), value.copy_negate())
        case str():
            yield from (value[:-1], value + "\x00", value + "a", value.swapcase(), value[1:], value[-3:])
        case bytes():
            yield from (value[:-1], value + b"\x00", value + b"\xff")
        case datetime():
            yield from _one_step_away(value, timedelta(microseconds=1))
        case date():
            yield from _one_step_away(value, timedelta(days=1))


def _one_step_away(value: Any, step: timedelta) -> Iterator[Any]:
    for change in (-step, step):
        try:
            yield value + change
        except OverflowError:
            continue  # the calendar ends here


def _fits(value: Any, data_type: pa.DataType) -> bool:
    try:
        pa.scalar(value, data_type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True
