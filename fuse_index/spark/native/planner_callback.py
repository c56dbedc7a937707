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

_logger = logging.getLogger("fuse_index.spark")

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """The values used last, at most ``most`` of them; safe to use from many threads."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._lock = Lock()
        self._entries: OrderedDict[_Key, tuple[_Value, float]] = OrderedDict()

    def get(
        self, key: _Key, load: Callable[[], _Value], ttl_seconds: Callable[[_Value], float] = lambda _: inf
    ) -> _Value:
        """The value, made if it is not there. Two threads may both make it: none waits for the other's slow one.

        ``lasts``: for how many seconds a value that was just made is remembered.
        """
        with self._lock:
            if key in self._entries and monotonic() < self._entries[key][1]:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        value = load()
        return self.put(key, value, ttl_seconds(value))

    def put(self, key: _Key, value: _Value, ttl_seconds: float = inf) -> _Value:
        with self._lock:
            self._entries[key] = value, monotonic() + ttl_seconds
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True)
class PruneReply:
    """``keep`` has one bool per block of the snapshot, in its order."""

    block_mask: npt.NDArray[np.bool_]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class RefreshReply:
    """A newer snapshot of the same schema, and its files as ``listing.packed`` gives them."""

    snapshot_id: str
    file_listing: bytes


@dataclass(frozen=True, slots=True)
class AggregateReply:
    """``left`` has one bool per block of the snapshot: which are to be scanned. ``states``: an Arrow stream of those of
    all others.

    The states' columns are the groups, then the parts of each aggregate in turn. None: nothing is answered.
    """

    scan_mask: npt.NDArray[np.bool_]
    states: bytes | None
    explanation: Explanation


class Planner(Protocol):
    """Who knows tables. All may raise, take long, and run on several threads at once."""

    def prune_blocks(self, request: Mapping[str, Any]) -> PruneReply:
        """``question`` is the JSON that ``FuseIndex.java`` makes: url, snapshot, mode, context, filters."""
        ...

    def answer_aggregate(self, request: Mapping[str, Any]) -> AggregateReply:
        """``question`` also has ``groups`` and ``aggregates``: typed trees, as the filters are. Raises nothing for what
        is not known.
        """
        ...

    def refresh_snapshot(self, url: str, branch: str, snapshot: str) -> RefreshReply | None:
        """To the head of the branch; None if that is ``snapshot``. Raises if the schema is another one by now."""
        ...


class PlannerCallback:
    """The session's one callback. Answers bytes: 1, their number and a bit for each block, or 0 and why there is no
    vote.
    """

    MAX_REMEMBERED_PRUNINGS: ClassVar[int] = 256
    MAX_REMEMBERED_AGGREGATES: ClassVar[int] = 32
    FAULTY_REPLY_SECONDS: ClassVar[float] = 30.0
    """So long a vote that a fault has spoiled is remembered: for the query that is being planned, and not for ever."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._answers: LruCache[str, tuple[bytes, Explanation]] = LruCache(self.MAX_REMEMBERED_AGGREGATES)
        self._votes: LruCache[str, tuple[bytes, Explanation]] = LruCache(self.MAX_REMEMBERED_PRUNINGS)

    def apply(self, request: str) -> bytes:
        try:
            return self._reply(request)
        except BaseException as failure:  # whatever it is, the query must go on, and py4j's thread must live
            _logger.warning("no index was asked about %.1000s", request, exc_info=True)
            return b"\0" + f"{type(failure).__name__}: {failure}".encode(errors="replace")

    def explain(self, request: str) -> Explanation:
        """The account of a vote or an answer, from memory if it is still there. Raises what the judge raises."""
        return self._cached_reply(request, json.loads(request))[1]

    def _reply(self, request: str) -> bytes:
        question = json.loads(request)
        if "refresh" in question:
            moved = self._planner.refresh_snapshot(question["url"], question["branch"], question["refresh"])
            return _encode_refresh_reply(moved)
        return self._cached_reply(request, question)[0]

    def _cached_reply(self, request: str, question: Mapping[str, Any]) -> tuple[bytes, Explanation]:
        if "aggregates" in question:
            return self._answers.get(
                request,
                lambda: _encode_aggregate_reply(self._planner.answer_aggregate(question)),
                self._reply_ttl_seconds,
            )
        return self._votes.get(
            request, lambda: _encode_prune_reply(self._planner.prune_blocks(question)), self._reply_ttl_seconds
        )

    def _reply_ttl_seconds(self, vote: tuple[bytes, Explanation]) -> float:
        return self.FAULTY_REPLY_SECONDS if vote[1].faulty else inf

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _encode_prune_reply(judgement: PruneReply) -> tuple[bytes, Explanation]:
    bits = np.packbits(judgement.block_mask, bitorder="little")
    return b"\1" + len(judgement.block_mask).to_bytes(4, "big") + bits.tobytes(), judgement.explanation


def _encode_aggregate_reply(answered: AggregateReply) -> tuple[bytes, Explanation]:
    if answered.states is None:
        return b"\0", answered.explanation
    bits = np.packbits(answered.scan_mask, bitorder="little")
    return b"\1" + len(answered.scan_mask).to_bytes(4, "big") + bits.tobytes() + answered.states, answered.explanation


def _encode_refresh_reply(moved: RefreshReply | None) -> bytes:
    if moved is None:
        return b"\1"
    name = moved.snapshot_id.encode()
    return bytes([1, len(name)]) + name + moved.file_listing
