"""How long indexes may take: a budget for each query, and a memory of those that did not answer in time.

What counts is the time within calls of indexes: an engine that is slow itself, on a loaded driver, takes nothing from
them. Exact statistics of built-in kinds are asked without a limit, since nothing else prunes as cheaply.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fuse_index.indexes.interface import Refusal
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.reasons import Reason

_Answer = TypeVar("_Answer")

_FIRST_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
_MAX_REMEMBERED = 10_000
"""Indexes that are remembered at most: some bytes each."""


@dataclass
class TimeoutMemory:
    """Indexes that used up a budget and gave no answer: passed over for a minute, and each time for twice as long.

    An index that hangs would cost every query its whole budget. ``clock``: seconds from any start.
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
    """The seconds that all indexes together may take in one query. ``scope``: the table's URL.

    ``clock``: seconds from any start.
    """

    seconds: float
    scope: str
    clock: Callable[[], float] = time.perf_counter
    memory: TimeoutMemory = field(default_factory=lambda: TIMEOUTS)
    spent: float = 0.0

    def run(
        self,
        index: str,
        call: Callable[[float], _Answer],
        reason_of: Callable[[_Answer], Reason | None],
    ) -> _Answer | PluginFailure:
        """What ``call`` gives within the seconds that it is told; a TIMEOUT where it is not even made.

        ``index``: who is asked, and for what: who compiles a leaf in time may hang over its votes all the same.
        ``reason_of``: what is wrong with an answer, if anything is.
        """
        key = f"{self.scope} {index}"
        if (pause := self.memory.seconds_left(key)) > 0:
            detail = f"it gave no answer in time before, and is not asked for another {pause:.0f} s"
            return PluginFailure(Reason.TIMEOUT, detail)
        left = self.seconds - self.spent
        if left <= 0:
            detail = f"others had spent the {self.seconds:.3g} s that indexes may take before it was asked"
            return PluginFailure(Reason.TIMEOUT, detail)
        started = self.clock()
        answer = call(left)
        self.spent += self.clock() - started
        if reason_of(answer) is not Reason.TIMEOUT:
            self.memory.note_answer(key)
        elif 2 * left >= self.seconds:  # it was given its chance, and not what others had left
            self.memory.note_timeout(key)
        return answer


def failure_reason(answer: object) -> Reason | None:
    """What went wrong where an answer is a failure, or says no."""
    return answer.reason if isinstance(answer, PluginFailure | Refusal) else None
