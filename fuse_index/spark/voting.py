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
from threading import Lock
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fuse_index.explain import Explanation

log = logging.getLogger("fuse_index.spark")

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values used last, at most ``most`` of them; safe to use from many threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value, made if it is not there. Two threads may both make it: none waits for the other's slow one."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        return self.put(key, make())

    def put(self, key: Key, value: Value) -> Value:
        with self._lock:
            self._kept[key] = value
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


class Judge(Protocol):
    """Who knows tables. Both may raise, take long, and run on several threads at once."""

    def judge(self, question: Mapping[str, Any]) -> Judgement:
        """``question`` is the JSON that ``FuseIndex.java`` makes: url, snapshot, mode, context, filters."""
        ...

    def move(self, url: str, branch: str, snapshot: str) -> Moved | None:
        """To the head of the branch; None if that is ``snapshot``. Raises if the schema is another one by now."""
        ...


class Voter:
    """The session's one callback. Answers bytes: 1, their number and a bit for each block, or 0 and why there is no vote."""

    MEMORY: ClassVar[int] = 256

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._votes: Recent[str, tuple[bytes, Explanation]] = Recent(self.MEMORY)

    def apply(self, request: str) -> bytes:
        try:
            return self._answer(request)
        except BaseException as failure:  # whatever it is, the query must go on, and py4j's thread must live
            log.warning("no index was asked about %.1000s", request, exc_info=True)
            return b"\0" + f"{type(failure).__name__}: {failure}".encode(errors="replace")

    def explain(self, request: str) -> Explanation:
        """The account of a vote, from memory if it is still there. Raises what the judge raises."""
        return self._vote(request)[1]

    def _answer(self, request: str) -> bytes:
        question = json.loads(request)
        if "refresh" in question:
            moved = self._judge.move(question["url"], question["branch"], question["refresh"])
            return _moved(moved)
        return self._vote(request)[0]

    def _vote(self, request: str) -> tuple[bytes, Explanation]:
        return self._votes.get(request, lambda: _packed(self._judge.judge(json.loads(request))))

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _packed(judgement: Judgement) -> tuple[bytes, Explanation]:
    bits = np.packbits(judgement.keep, bitorder="little")
    return b"\1" + len(judgement.keep).to_bytes(4, "big") + bits.tobytes(), judgement.explanation


def _moved(moved: Moved | None) -> bytes:
    if moved is None:
        return b"\1"
    name = moved.snapshot.encode()
    return bytes([1, len(name)]) + name + moved.listing
