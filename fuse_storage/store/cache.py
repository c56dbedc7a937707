"""Things that never change, kept in memory up to a number of bytes.

Every file of a table is written once, so what was read of it may be kept for ever; the only question is which to
forget, and that is the one used longest ago. A store may own a cache; all others share that of the process, so keys
must say which store they are from. Knows nothing of what it keeps.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from fuse_storage.errors import InvalidArgument

_T = TypeVar("_T")


class Cache:
    """A bounded, thread-safe memory. Two threads that miss the same key may both load it; one result is kept.

    What is kept stays behind when it is pickled.
    """

    def __init__(self, max_bytes: int = 512 << 20) -> None:
        self.max_bytes = max_bytes
        self.total_bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self.max_bytes,)

    def get_or_load(self, key: Hashable, load: Callable[[], _T], size_of: Callable[[_T], int]) -> _T:
        """Return what is kept under ``key``, or else ``load()``, which is then kept if it fits."""
        value = self.find(key)
        if value is None:
            value = load()
            self.put(key, value, size_of(value))
        return cast(_T, value)

    def find(self, key: Hashable) -> Any | None:
        """Return what is kept under ``key``, or None."""
        with self._lock:
            if (entry := self._entries.get(key)) is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep ``value``, of ``size`` bytes, unless it alone is larger than a quarter of the room."""
        if size > self.max_bytes // 4:
            return
        with self._lock:
            if (old := self._entries.pop(key, None)) is not None:
                self.total_bytes -= old[1]
            self._entries[key] = (value, size)
            self.total_bytes += size
            self._forget_oldest()

    def resize(self, max_bytes: int) -> None:
        """Keep up to so many bytes from now on, and forget what is over that."""
        with self._lock:
            self.max_bytes = max_bytes
            self._forget_oldest()

    def clear(self) -> None:
        """Forget everything, whichever store it is from."""
        with self._lock:
            self._entries.clear()
            self.total_bytes = 0

    def _forget_oldest(self) -> None:
        while self.total_bytes > self.max_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.total_bytes -= freed

    def __len__(self) -> int:
        return len(self._entries)


process_cache = Cache()
"""The cache of all stores of this process that have none of their own."""

column_cache = Cache(0)
"""The decoded columns of whole blocks, of all tables of this process; none, unless it is given room."""


def cache_columns(max_bytes: int) -> None:
    """Keep decoded columns in this process's memory; at first none are kept.

    Scans, counts and whatever else reads all rows of a block keep the columns that they read, and take them from there
    the next time, without a request and without decoding. A column of a block that takes more than a quarter of the
    room is not kept; what was used longest ago is forgotten first. Files of attached tables are always read. Spark's
    own scans are not concerned.

    Args:
        max_bytes: Up to so many bytes; 0 keeps none.

    Raises:
        InvalidArgument: It is no whole number from 0 on.

    Example:
        >>> fuse.cache_columns(64 << 20)
        >>> fuse.cache_columns(0)
    """
    if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 0:
        raise InvalidArgument(f"max_bytes = {max_bytes!r}: it must be a whole number of bytes, 0 to keep no columns")
    column_cache.resize(max_bytes)


def cache_of(store: object) -> Cache:
    """The cache in which readers keep what they read of a store: its own ``cache``, or else the process's."""
    cache: Cache = getattr(store, "cache", process_cache)
    return cache


_MAX_KEPT_UNITS, _MAX_KEPT_VALUES = 100_000, 16
"""Units of a frame, and values of each, up to which they are kept: some 100 MB at the most."""

_Frame = TypeVar("_Frame", bound="_KeepingFrame")
_Kept = TypeVar("_Kept")
_Arguments = ParamSpec("_Arguments")


class _KeepingFrame(Protocol):
    """A frame that never changes. ``is_whole``: it is of all units of a snapshot, so that many queries ask it."""

    is_whole: bool
    kept: dict[Any, Any]

    def __len__(self) -> int: ...


def keep_if_whole(
    method: Callable[Concatenate[_Frame, _Arguments], _Kept],
) -> Callable[Concatenate[_Frame, _Arguments], _Kept]:
    """Keep what a method of a frame gives as long as the frame lives, if that is of a whole snapshot, and not huge.

    What says that it has an ``error`` is not kept, as a later read may do better.
    """

    @wraps(method)
    def kept(frame: _Frame, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Kept:
        key = (method.__name__, arguments)
        found: _Kept | None = frame.kept.get(key)
        if found is not None and getattr(found, "error", None) is None:
            return found
        made = method(frame, *arguments, **named)
        if frame.is_whole and len(frame) <= _MAX_KEPT_UNITS:
            for oldest in list(frame.kept)[: max(len(frame.kept) + 1 - _MAX_KEPT_VALUES, 0)]:
                frame.kept.pop(oldest, None)
            frame.kept[key] = made
        return made

    return kept
