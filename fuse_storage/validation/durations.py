"""Durations as people write them: ``12h``, ``7d``, ``0.5s``."""

from __future__ import annotations

import re
from datetime import timedelta

_PATTERN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MAX_DURATION = timedelta(days=1000 * 365)
"""So that no end of a duration leaves the calendar."""


def is_duration(text: str) -> bool:
    """Whether a text has the form of a duration."""
    return _PATTERN.fullmatch(text) is not None


def parse_duration_text(text: str) -> timedelta:
    """Read a duration. Raises ValueError, whose text says what is wrong with it.

    >>> parse_duration_text("1.5h")
    datetime.timedelta(seconds=5400)
    """
    if (match := _PATTERN.fullmatch(text)) is None:
        raise ValueError("is no duration: say 12h, 7d, 0.5s")
    seconds = float(match[1]) * _SECONDS_PER_UNIT[match[2]]
    return check_duration(timedelta(seconds=min(seconds, 2 * _MAX_DURATION.total_seconds())))


def check_duration(duration: timedelta) -> timedelta:
    """Give a duration back. Raises ValueError for one that leads out of the calendar."""
    if abs(duration) > _MAX_DURATION:
        raise ValueError("is longer than a thousand years")
    return duration
