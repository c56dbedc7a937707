"""Things that never change, kept in memory up to a number of bytes.

Every file of a table is written once, so what was read of it may be kept for ever; the only question is which to
forget, and that is the one used longest ago. Keys must say which store they are from. Knows nothing of what it keeps.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Cache:
    """A bounded, thread-safe memory. Two threads that miss the same key may both load it; one result is kept."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], T], size: Callable[[T], int]) -> T:
        """What is kept under ``key``, or else ``load()``, which is then kept if it fits."""
        found = self.find(key)
        if found is None:
            found = load()
            self.put(key, found, size(found))
        return cast(T, found)

    def find(self, key: Hashable) -> Any | None:
        """What is kept under ``key``, or None."""
        with self._lock:
            if (entry := self._kept.get(key)) is None:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep ``value``, of ``size`` bytes, unless it alone is larger than a quarter of the room."""
        if size > self.max_bytes // 4:
            return
        with self._lock:
            if (old := self._kept.pop(key, None)) is not None:
                self.bytes -= old[1]
            self._kept[key] = (value, size)
            self.bytes += size
            while self.bytes > self.max_bytes:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)


shared = Cache(512 << 20)
"""The cache of this process."""
