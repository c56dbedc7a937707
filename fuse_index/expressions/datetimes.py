"""Days, instants and wall clocks as Spark reads them: time zones, and text to dates and timestamps.

Proleptic Gregorian, microseconds. A wall clock that a zone skips is moved on by as much as the zone skips, one that it
shows twice means the first. Whatever Spark might read and we might not raises ``NotReproducible``: a guess would change
answers.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from fuse_index.expressions.errors import NotReproducible

EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_QUARTER_HOUR_MICROSECONDS = 900_000_000
TRIMMED_CHARACTERS = "".join(map(chr, range(33))) + "\x7f"
"""What Spark trims from text before it casts it: ASCII blanks and control characters."""

_DAY = r"(?P<sign>[+-])?(?P<year>\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
_DATE_TEXT = re.compile(rf"{_DAY}(?(day)(?:[ T].*)?)", re.DOTALL | re.ASCII)
_CLOCK = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?(?P<zone>[^\d.].*)?)?)?"
)
_TIMESTAMP_TEXT = re.compile(rf"{_DAY}(?(day)(?:[ T]{_CLOCK})?)", re.DOTALL)
_TIME_ALONE = re.compile(r"T\d|\d{1,2}:")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")


def parse_time_zone(name: str) -> tzinfo:
    """The time zone of a Spark session or literal. Raises NotReproducible for a name that is not known here."""
    if name in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = found[1], int(found[2]), int(found[3] or 0), int(found[4] or 0)
        if hours > 18 or minutes > 59 or seconds > 59:
            raise NotReproducible(f"no time zone has the offset {name!r}")
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(offset if sign == "+" else -offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise NotReproducible(f"time zone {name!r} is not known here") from None


def has_fixed_offset(time_zone: tzinfo) -> bool:
    """The zone's clocks are never changed, whatever edition of the zone tables one has."""
    return isinstance(time_zone, timezone)


def instant(wall: datetime, time_zone: tzinfo) -> datetime:
    """The instant, in UTC, at which a clock in that zone shows ``wall``."""
    return wall.replace(tzinfo=time_zone).astimezone(UTC)


def wall_clock(moment: datetime, time_zone: tzinfo) -> datetime:
    """What a clock in that zone shows at an instant."""
    return moment.astimezone(time_zone).replace(tzinfo=None, fold=0)


def wall_clocks(moments: npt.NDArray[np.int64], time_zone: tzinfo) -> npt.NDArray[np.int64]:
    """What clocks in that zone show at instants. Raises OverflowError beyond Python's years.

    ``moments``: int64 microseconds since 1970 UTC, shape (n,). Returns int64 microseconds since 1970 by those clocks,
    shape (n,). Asked quarter hour by quarter hour; one in which the clocks are changed is asked instant by instant.
    """
    quarters, which = np.unique(moments // _QUARTER_HOUR_MICROSECONDS, return_inverse=True)
    starts = _offsets(quarters * _QUARTER_HOUR_MICROSECONDS, time_zone)
    steady = starts == _offsets(quarters * _QUARTER_HOUR_MICROSECONDS + _QUARTER_HOUR_MICROSECONDS - 1, time_zone)
    shown = moments + starts[which]
    changing = ~steady[which]
    shown[changing] = moments[changing] + _offsets(moments[changing], time_zone)
    return shown


def _offsets(moments: npt.NDArray[np.int64], time_zone: tzinfo) -> npt.NDArray[np.int64]:
    found = ((EPOCH_UTC + int(moment) * MICROSECOND).astimezone(time_zone).utcoffset() for moment in moments)
    return np.array([(offset or timedelta()) // MICROSECOND for offset in found], np.int64)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def parse_date(text: str) -> date | None:
    """``CAST(text AS DATE)``; None where Spark gives NULL (or, under ANSI, an error). Raises NotReproducible."""
    found = _DATE_TEXT.fullmatch(text.strip(TRIMMED_CHARACTERS))
    return _day(found) if found else None


def parse_timestamp(text: str, time_zone: tzinfo) -> datetime | None:
    """``CAST(text AS TIMESTAMP)``, an instant in UTC; text without a zone is in ``place``."""
    found = _moment(text)
    if found is None:
        return None
    wall, named = found
    return instant(wall, parse_time_zone(named) if named else time_zone)


def parse_timestamp_ntz(text: str) -> datetime | None:
    """``CAST(text AS TIMESTAMP_NTZ)``; a zone in the text is read, and ignored."""
    found = _moment(text)
    if found is None:
        return None
    wall, named = found
    if named:
        parse_time_zone(named)
    return wall


def _moment(text: str) -> tuple[datetime, str | None] | None:
    trimmed = text.strip(TRIMMED_CHARACTERS)
    found = _TIMESTAMP_TEXT.fullmatch(trimmed)
    if found is None or not trimmed.isascii() or len(found["year"]) > 6:
        if _TIME_ALONE.match(trimmed):
            raise NotReproducible(f"{text!r} may be a time of today")
        return None
    day = _day(found)
    if day is None:
        return None
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((found["fraction"] or "").ljust(6, "0")[:6])
    return datetime(day.year, day.month, day.day, hour, minute, second, micros), found["zone"] and found["zone"].strip()


def _day(found: re.Match[str]) -> date | None:
    year, month, day = int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)
    if found["sign"] == "-" or not 1 <= year <= 9999:
        raise NotReproducible(f"the year of {found[0]!r} lies outside of what Python can hold")
    try:
        return date(year, month, day)
    except ValueError:
        return None
