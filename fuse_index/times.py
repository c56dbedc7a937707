"""Days, instants and wall clocks as Spark reads them: time zones, and text to dates and timestamps.

Proleptic Gregorian, microseconds. A wall clock that a zone skips is moved on by as much as the zone skips, one that it
shows twice means the first. Whatever Spark might read and we might not raises ``Unsure``: a guess would change answers.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BLANK = "".join(map(chr, range(33))) + "\x7f"
"""What Spark trims from text before it casts it: ASCII blanks and control characters."""

DAY = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?")
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
MOMENT = re.compile(rf"(?P<day>{DAY.pattern})(?:[ T](?:(?P<clock>{CLOCK.pattern})\s*(?P<zone>\S.*)?)?)?")


class Unsure(ValueError):
    """Spark may read this in a way that is not known here."""


def zone(name: str) -> tzinfo:
    """The time zone of a Spark session or literal. Raises Unsure for a name that is not known here."""
    if name in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return UTC
    if found := OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = found[1], int(found[2]), int(found[3] or 0), int(found[4] or 0)
        if hours > 18 or minutes > 59 or seconds > 59:
            raise Unsure(f"no time zone has the offset {name!r}")
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(offset if sign == "+" else -offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Unsure(f"time zone {name!r} is not known here") from None


def is_fixed(place: tzinfo) -> bool:
    """The zone's clocks are never changed, whatever edition of the zone tables one has."""
    return isinstance(place, timezone)


def instant(wall: datetime, place: tzinfo) -> datetime:
    """The instant, in UTC, at which a clock in that zone shows ``wall``."""
    return wall.replace(tzinfo=place).astimezone(UTC)


def wall_clock(moment: datetime, place: tzinfo) -> datetime:
    """What a clock in that zone shows at an instant."""
    return moment.astimezone(place).replace(tzinfo=None, fold=0)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def parse_date(text: str) -> date | None:
    """``CAST(text AS DATE)``; None where Spark gives NULL (or, under ANSI, an error)."""
    trimmed = text.strip(BLANK)
    head, _, _ = trimmed.replace("T", " ", 1).partition(" ")
    if found := DAY.fullmatch(head):
        return _day(found[1], found[2], found[3])
    _doubt(trimmed)
    return None


def parse_timestamp(text: str, place: tzinfo) -> datetime | None:
    """``CAST(text AS TIMESTAMP)``, an instant in UTC; text without a zone is in ``place``."""
    found = _moment(text)
    if found is None:
        return None
    wall, named = found
    return instant(wall, zone(named) if named else place)


def parse_timestamp_ntz(text: str) -> datetime | None:
    """``CAST(text AS TIMESTAMP_NTZ)``; a zone in the text is read, and ignored."""
    found = _moment(text)
    if found is None:
        return None
    wall, named = found
    if named:
        zone(named)
    return wall


def _moment(text: str) -> tuple[datetime, str | None] | None:
    trimmed = text.strip(BLANK)
    found = MOMENT.fullmatch(trimmed)
    if found is None:
        _doubt(trimmed)
        return None
    day = _day(found[2], found[3], found[4])
    if day is None:
        return None
    if found["clock"] is None:
        if trimmed[-1] in " T":
            raise Unsure(f"{text!r} ends where a time of day should be")
        return midnight(day), None
    hour, minute, second = int(found[6]), int(found[7]), int(found[8] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((found[9] or "").ljust(6, "0")[:6])
    return datetime(day.year, day.month, day.day, hour, minute, second, micros), found["zone"]


def _day(year: str, month: str | None, day: str | None) -> date | None:
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        if int(year) == 0:
            raise Unsure("year 0 lies outside of what Python can hold") from None
        return None


def _doubt(text: str) -> None:
    """What begins as a date, a signed year or a time of day might be a time to Spark; all else is none."""
    if re.match(r"[0-9+:T-]", text):
        raise Unsure(f"{text!r} may or may not be a time to Spark")
