"""A variant as JSON text, as Spark's ``to_json`` writes it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from fuse_index.expressions.datetimes import parse_time_zone, wall_clock
from fuse_index.expressions.json.writer import double_text, quoted
from fuse_index.expressions.variant.decode import Float32


def variant_json(tree: Any, time_zone: str = "UTC") -> str:
    """The JSON text of a decoded variant; instants as clocks of the time zone show them, and its offset."""
    parts: list[str] = []
    _write(tree, parts.append, time_zone)
    return "".join(parts)


def _write(tree: Any, out: Callable[[str], None], time_zone: str) -> None:
    match tree:
        case dict():
            _join("{", ((quoted(name) + ":", value) for name, value in tree.items()), "}", out, time_zone)
        case list():
            _join("[", (("", value) for value in tree), "]", out, time_zone)
        case _:
            out(scalar_json(tree, time_zone))


def _join(start: str, members: Any, end: str, out: Callable[[str], None], time_zone: str) -> None:
    separator = start
    for name, value in members:
        out(separator + name)
        _write(value, out, time_zone)
        separator = ","
    out(end if separator == "," else start + end)


def scalar_json(value: Any, time_zone: str) -> str:
    """The JSON text of a value that is no object and no array."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int():
            return str(value)
        case Float32():
            return double_text(float(str(np.float32(value))), sure=False)
        case float():
            return double_text(value, sure=False)
        case Decimal():
            return decimal_text(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case datetime():
            return f'"{_moment_text(value, time_zone)}"'
        case date():
            return f'"{value.isoformat()}"'
    raise TypeError(f"{value!r} is no variant")


def decimal_text(number: Decimal) -> str:
    """A decimal without zeros at its end, and without an exponent."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _moment_text(moment: datetime, time_zone: str) -> str:
    if moment.tzinfo is None:
        return _clock_text(moment)
    shown = wall_clock(moment, parse_time_zone(time_zone))
    return _clock_text(shown) + _offset_text(moment, shown)


def _clock_text(clock: datetime) -> str:
    fraction = f".{clock.microsecond:06}".rstrip("0") if clock.microsecond else ""
    return clock.replace(tzinfo=None).isoformat(" ", "seconds") + fraction


def _offset_text(moment: datetime, shown: datetime) -> str:
    seconds = round((shown.replace(tzinfo=None) - moment.replace(tzinfo=None)).total_seconds())
    sign, seconds = "-" if seconds < 0 else "+", abs(seconds)
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}"
