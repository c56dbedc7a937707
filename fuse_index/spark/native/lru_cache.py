"""A memo of the values that were used last, each for as long as it is good."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """The values used last, safe to use from many threads.

    There are at most ``max_entries`` and, by ``size_of``, ``max_bytes`` of them: one that has more alone is not kept.
    """

    def __init__(
        self, max_entries: int, max_bytes: float = inf, size_of: Callable[[_Value], int] = lambda _: 0
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._bytes = 0
        self._lock = Lock()
        self._entries: OrderedDict[_Key, tuple[_Value, float]] = OrderedDict()

    def get(
        self, key: _Key, load: Callable[[], _Value], ttl_seconds: Callable[[_Value], float] = lambda _: inf
    ) -> _Value:
        """The value of a key, loaded if it is not there. Two threads may both load it: none waits for the other's.

        ``ttl_seconds``: for how many seconds a value that was just loaded is remembered.
        """
        if (known := self.find(key)) is not None:
            return known
        value = load()
        return self.put(key, value, ttl_seconds(value))

    def find(self, key: _Key) -> _Value | None:
        """The value of a key, if it is there."""
        with self._lock:
            if key not in self._entries or monotonic() >= self._entries[key][1]:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: _Key, value: _Value, ttl_seconds: float = inf) -> _Value:
        """Remember a value in place of a former one."""
        with self._lock:
            if (former := self._entries.pop(key, None)) is not None:
                self._bytes -= self._size_of(former[0])
            self._entries[key] = value, monotonic() + ttl_seconds
            self._bytes += self._size_of(value)
            while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
                _, (oldest, _) = self._entries.popitem(last=False)
                self._bytes -= self._size_of(oldest)
        return value
