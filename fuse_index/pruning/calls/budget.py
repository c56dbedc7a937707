"""How long indexes may take: a budget for each query, and a memory of those that failed after a long time.

What counts is the time within calls of indexes: an engine that is slow itself, on a loaded driver, takes nothing from
them. Exact statistics of built-in kinds are asked without a limit, since nothing else prunes as cheaply; other built-in
kinds have as much again as strangers' together, which so cannot leave them none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fuse_index.errors import InputError
from fuse_index.indexes.interface import Refusal
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.reasons import Reason

_Answer = TypeVar("_Answer")

DEFAULT_SECONDS = 10.0
SECONDS_PROPERTY = "index_seconds"
"""The property of a table that says how long its indexes may take in one query."""
SECONDS_VARIABLE = "FUSE_INDEX_SECONDS"
"""The environment variable that says so of all tables of this process that do not."""
UNITS_PER_CALL = 1000
"""Blocks that one call of an index is about: votes on them stay when the time is over. A call costs 50 µs."""

_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
_MAX_REMEMBERED = 10_000
"""Indexes that are remembered at most: some bytes each."""


@dataclass
class TimeoutMemory:
    """Indexes that used up a budget and gave no answer: passed over for a minute, and each time for twice as long.

    An index that hangs, or raises after a while, would cost every query its whole budget. ``clock``: seconds from any
    start.
    """

    clock: Callable[[], float] = time.monotonic
    pauses: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By index: until when it is passed over, and for how long that is."""

    def seconds_left(self, index: str) -> float:
        """How long an index is passed over yet; 0 or less if it may be asked."""
        until, _ = self.pauses.get(index, (float("-inf"), 0.0))
        return until - self.clock()

    def note_timeout(self, index: str) -> None:
        """Pass over an index for a while."""
        if len(self.pauses) >= _MAX_REMEMBERED:
            self.pauses.clear()
        _, pause = self.pauses.get(index, (0.0, _FIRST_PAUSE_SECONDS / 2))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        self.pauses[index] = (self.clock() + pause, pause)

    def note_answer(self, index: str) -> None:
        """Forget that an index was late once."""
        self.pauses.pop(index, None)


TIMEOUTS = TimeoutMemory()
"""That of this process."""


@dataclass
class CallBudget:
    """The seconds that indexes may take in one query: strangers' together, and as many for built-in ones.

    ``scope``: the table's URL. ``units_per_call``: blocks that one call for votes is about. ``clock``: seconds from any
    start.
    """

    seconds: float
    scope: str
    clock: Callable[[], float] = time.perf_counter
    memory: TimeoutMemory = field(default_factory=lambda: TIMEOUTS)
    units_per_call: int = UNITS_PER_CALL
    spent: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})
    """By whether kinds are built in."""

    def run(
        self,
        index: str,
        call: Callable[[float], _Answer],
        reason_of: Callable[[_Answer], Reason | None],
        built_in: bool = False,
    ) -> _Answer | PluginFailure:
        """What ``call`` gives within the seconds that it is told; a TIMEOUT where it is not even made.

        ``index``: who is asked, and for what: who compiles a leaf in time may hang over its votes all the same.
        ``reason_of``: what is wrong with an answer, if anything is. ``built_in``: the kind comes with the engine.
        """
        key = f"{self.scope} {index}"
        if (pause := self.memory.seconds_left(key)) > 0:
            detail = f"it gave no answer in time before, and is not asked for another {pause:.0f} s"
            return PluginFailure(Reason.TIMEOUT, detail)
        left = self.seconds - self.spent[built_in]
        if left <= 0:
            detail = f"others had spent the {self.seconds:.3g} s that indexes may take before it was asked"
            return PluginFailure(Reason.TIMEOUT, detail)
        started = self.clock()
        answer = call(left)
        took = self.clock() - started
        self.spent[built_in] += took
        reason = reason_of(answer)
        if reason is Reason.TIMEOUT:
            if 2 * left >= self.seconds:  # it was given its chance, and not what others had left
                self.memory.note_timeout(key)
        elif reason is Reason.PLUGIN_ERROR and 2 * took >= self.seconds:
            self.memory.note_timeout(key)
        else:
            self.memory.note_answer(key)
        return answer


def budget_of(scope: str, properties: Mapping[str, Any], asked: float | CallBudget | None = None) -> CallBudget:
    """The budget of a query: what the call says, or the table by a property, or the process by its environment.

    ``asked``: seconds, or a budget that others of the same query spend from, too. Raises InputError for an environment
    that says no number of seconds.
    """
    if isinstance(asked, CallBudget):
        return asked
    said = properties.get(SECONDS_PROPERTY) if asked is None else asked
    return CallBudget(float(said) if isinstance(said, int | float) else _process_seconds(), scope)


def _process_seconds() -> float:
    text = os.environ.get(SECONDS_VARIABLE, "")
    try:
        seconds = float(text or DEFAULT_SECONDS)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"{SECONDS_VARIABLE}={text!r} in the environment: give a number of seconds, 0 or more")
    return seconds


def failure_reason(answer: object) -> Reason | None:
    """What went wrong where an answer is a failure, or says no."""
    return answer.reason if isinstance(answer, PluginFailure | Refusal) else None
