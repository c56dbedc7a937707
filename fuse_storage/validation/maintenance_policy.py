"""What a table's properties say of its upkeep: which tasks, from which limits on, when, and at which price.

Knows no task. A namespace of a warehouse has the same properties, as texts, for tables that do not say so themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

from fuse_storage.errors import InvalidArgument
from fuse_storage.validation.durations import parse_duration_text

MAINTENANCE_TASKS = ("tier", "sync", "refresh", "compact", "recluster", "vacuum", "verify")
"""What can be done by itself, in no order: whatever is worst comes first."""
AFTER_COMMIT_TASKS = ("refresh", "compact", "recluster")
"""What a writer can do in a small step; who tiers is said by the property ``tiering``."""
_MIN_RETENTION = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """Limits within which a table is left alone, and what may be done beyond them.

    ``stated``: whether somebody said so. ``tasks``: those that may be done; none if ``maintain`` is off.
    ``target_depth``: blocks that a value may be within the bounds of. ``small_share``: of blocks that joining would
    save. ``tail_age``: of the oldest hot commit. ``retention``: of replaced files. ``verify_every``: how often indexes
    are checked, None for never. ``window``: times of day (UTC) between which files are rewritten. ``daily_bytes``: that
    are rewritten in 24 hours at most. ``after_commit``: what a writer does in a small step.
    """

    stated: bool = False
    tasks: tuple[str, ...] = MAINTENANCE_TASKS
    target_depth: int = 4
    small_share: float = 0.1
    tail_age: timedelta = timedelta(minutes=5)
    retention: timedelta = timedelta(days=7)
    verify_every: timedelta | None = timedelta(days=30)
    window: tuple[time, time] | None = None
    daily_bytes: int | None = None
    after_commit: tuple[str, ...] = ()

    @staticmethod
    def from_properties(properties: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> MaintenancePolicy:
        """Read the policy of a table. ``defaults``: properties of its namespaces. Raises InvalidArgument."""
        policy = MaintenancePolicy()
        for name, value in {**(defaults or {}), **properties}.items():
            if (found := _PROPERTIES.get(name)) is not None:
                member, parse = found
                try:
                    policy = replace(policy, **{member: parse(value)})
                except (TypeError, ValueError) as problem:
                    raise InvalidArgument(f"{name} = {value!r} {problem}") from problem
                policy = replace(policy, stated=policy.stated or name == "maintain")
        return policy

    def allows(self, now: datetime) -> bool:
        """Whether files may be rewritten at this time (UTC)."""
        if self.window is None:
            return True
        start, end = self.window
        at = now.time()
        return start <= at < end if start < end else at >= start or at < end


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT]?)B?", re.ASCII)
_BYTES_PER_UNIT = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _list_of(names: tuple[str, ...], text: Any) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(","))))) if isinstance(text, str) else ()
    if not chosen or not set(chosen) <= set(names):
        raise ValueError(f"names tasks that there are not: choose of {', '.join(names)}")
    return chosen


def _parse_tasks(value: Any) -> tuple[str, ...]:
    if value in ("on", True):
        return MAINTENANCE_TASKS
    if value in ("off", False):
        return ()
    try:
        return _list_of(MAINTENANCE_TASKS, value)
    except ValueError:
        raise ValueError(f"is neither on nor off nor a list of {', '.join(MAINTENANCE_TASKS)}") from None


def _parse_after_commit(value: Any) -> tuple[str, ...]:
    return () if value in ("off", False, "") else _list_of(AFTER_COMMIT_TASKS, value)


def parse_size_text(text: str) -> int:
    """Read a number of bytes. Raises ValueError.

    >>> parse_size_text("1.5GB"), parse_size_text("10")
    (1500000000, 10)
    """
    if (match := _SIZE.fullmatch(text.strip())) is None:
        raise ValueError("is no number of bytes: say 500MB, 100GB")
    size = Decimal(match[1]) * _BYTES_PER_UNIT[match[2].upper()]
    if size % 1:
        raise ValueError("is no whole number of bytes: say 500MB, 100GB")
    return int(size)


def _parse_bytes(value: Any) -> int:
    return _parse_count(parse_size_text(value) if isinstance(value, str) else value)


def _number(value: Any) -> Any:
    """A number that came as text, as properties of SQL do; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _parse_count(value: Any) -> int:
    number = _number(value)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError("must be a whole number from 1 on")
    return number


def _parse_share(value: Any) -> float:
    number = _number(value)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number <= 1:
        raise ValueError("must be a number from 0 to 1")
    return float(number)


def _parse_duration(value: Any) -> timedelta:
    if not isinstance(value, str):
        raise TypeError("is no duration: say 12h, 7d, 0.5s")
    return parse_duration_text(value)


def _parse_retention(value: Any) -> timedelta:
    if (retention := _parse_duration(value)) < _MIN_RETENTION:
        raise ValueError("is below an hour, in which readers may still need what was replaced")
    return retention


def _parse_verify_every(value: Any) -> timedelta | None:
    return None if value in ("off", False) else _parse_duration(value)


def _parse_window(value: Any) -> tuple[time, time]:
    start, minus, end = value.partition("-") if isinstance(value, str) else ("", "", "")
    try:
        times = time.fromisoformat(start.strip()), time.fromisoformat(end.strip())
    except ValueError:
        minus = ""
    if not minus or times[0] == times[1] or any(each.tzinfo for each in times):
        raise ValueError("is no window of a day: say 22:00-05:00, which is in UTC")
    return times


_PROPERTIES: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "maintain": ("tasks", _parse_tasks),
    "maintain_target_depth": ("target_depth", _parse_count),
    "maintain_small_share": ("small_share", _parse_share),
    "maintain_tail_age": ("tail_age", _parse_duration),
    "maintain_retention": ("retention", _parse_retention),
    "maintain_verify_every": ("verify_every", _parse_verify_every),
    "maintain_window": ("window", _parse_window),
    "maintain_daily_bytes": ("daily_bytes", _parse_bytes),
    "maintain_after_commit": ("after_commit", _parse_after_commit),
}
MAINTENANCE_PROPERTIES = tuple(_PROPERTIES)
"""The properties that say how a table is kept."""
