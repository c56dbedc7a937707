"""What Spark asks while it plans: which blocks may hold an answer to these filters.

One ``Voter`` per session is called from threads of the JVM. It remembers votes by what was asked, since Spark asks the
same two or three times per query, and it never raises: an answer without votes means that every block is read. It knows
no table; who judges is handed in.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import inf
from threading import Lock
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fuse_index.pruning.explanation import Explanation

log = logging.getLogger("fuse_index.spark")

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values used last, at most ``most`` of them; safe to use from many threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Key, tuple[Value, float]] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Value], lasts: Callable[[Value], float] = lambda _: inf) -> Value:
        """The value, made if it is not there. Two threads may both make it: none waits for the other's slow one.

        ``lasts``: for how many seconds a value that was just made is remembered.
        """
        with self._lock:
            if key in self._kept and monotonic() < self._kept[key][1]:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make()
        return self.put(key, value, lasts(value))

    def put(self, key: Key, value: Value, seconds: float = inf) -> Value:
        with self._lock:
            self._kept[key] = value, monotonic() + seconds
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True)
class Judgement:
    """``keep`` has one bool per block of the snapshot, in its order."""

    keep: npt.NDArray[np.bool_]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Moved:
    """A newer snapshot of the same schema, and its files as ``listing.packed`` gives them."""

    snapshot: str
    listing: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """``left`` has one bool per block of the snapshot: which are to be scanned. ``states``: an Arrow stream of those of
    all others.

    The states' columns are the groups, then the parts of each aggregate in turn. None: nothing is answered.
    """

    left: npt.NDArray[np.bool_]
    states: bytes | None
    explanation: Explanation


class Judge(Protocol):
    """Who knows tables. All may raise, take long, and run on several threads at once."""

    def judge(self, question: Mapping[str, Any]) -> Judgement:
        """``question`` is the JSON that ``FuseIndex.java`` makes: url, snapshot, mode, context, filters."""
        ...

    def answer(self, question: Mapping[str, Any]) -> Answered:
        """``question`` also has ``groups`` and ``aggregates``: typed trees, as the filters are. Raises nothing for what
        is not known.
        """
        ...

    def move(self, url: str, branch: str, snapshot: str) -> Moved | None:
        """To the head of the branch; None if that is ``snapshot``. Raises if the schema is another one by now."""
        ...


class Voter:
    """The session's one callback. Answers bytes: 1, their number and a bit for each block, or 0 and why there is no
    vote.
    """

    MEMORY: ClassVar[int] = 256
    ANSWERS: ClassVar[int] = 32
    FAULT_SECONDS: ClassVar[float] = 30.0
    """So long a vote that a fault has spoiled is remembered: for the query that is being planned, and not for ever."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._answers: Recent[str, tuple[bytes, Explanation]] = Recent(self.ANSWERS)
        self._votes: Recent[str, tuple[bytes, Explanation]] = Recent(self.MEMORY)

    def apply(self, request: str) -> bytes:
        try:
            return self._answer(request)
        except BaseException as failure:  # whatever it is, the query must go on, and py4j's thread must live
            log.warning("no index was asked about %.1000s", request, exc_info=True)
            return b"\0" + f"{type(failure).__name__}: {failure}".encode(errors="replace")

    def explain(self, request: str) -> Explanation:
        """The account of a vote or an answer, from memory if it is still there. Raises what the judge raises."""
        return self._asked(request, json.loads(request))[1]

    def _answer(self, request: str) -> bytes:
        question = json.loads(request)
        if "refresh" in question:
            moved = self._judge.move(question["url"], question["branch"], question["refresh"])
            return _moved(moved)
        return self._asked(request, question)[0]

    def _asked(self, request: str, question: Mapping[str, Any]) -> tuple[bytes, Explanation]:
        if "aggregates" in question:
            return self._answers.get(request, lambda: _answered(self._judge.answer(question)), self._lasts)
        return self._votes.get(request, lambda: _packed(self._judge.judge(question)), self._lasts)

    def _lasts(self, vote: tuple[bytes, Explanation]) -> float:
        return self.FAULT_SECONDS if vote[1].faulty else inf

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _packed(judgement: Judgement) -> tuple[bytes, Explanation]:
    bits = np.packbits(judgement.keep, bitorder="little")
    return b"\1" + len(judgement.keep).to_bytes(4, "big") + bits.tobytes(), judgement.explanation


def _answered(answered: Answered) -> tuple[bytes, Explanation]:
    if answered.states is None:
        return b"\0", answered.explanation
    bits = np.packbits(answered.left, bitorder="little")
    return b"\1" + len(answered.left).to_bytes(4, "big") + bits.tobytes() + answered.states, answered.explanation


def _moved(moved: Moved | None) -> bytes:
    if moved is None:
        return b"\1"
    name = moved.snapshot.encode()
    return bytes([1, len(name)]) + name + moved.listing
