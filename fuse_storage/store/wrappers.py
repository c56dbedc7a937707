"""Stores around another one: one counts what is asked of it, one refuses to write, one has a cache of its own.

What tests and ``explain`` say of requests and bytes is exact, since it is counted here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuse_storage.errors import NotFound, ReadOnly, TableUrl
from fuse_storage.store.abilities import list_keys_after, list_strays, object_meta, read_at_most
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.ranges import ByteRange, ObjectMeta, coalesce_ranges, slice_ranges
from fuse_storage.store.store import Store


class MeteredStore:
    """Counts requests to the store within, one for each range that is fetched, and one for each listing or write.

    ``reads`` and ``writes`` hold (verb, key, bytes) of each, in the order in which they ended. It has no ``path``, so
    that nobody reads past it. Counts stay behind when it is pickled.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Begin again from zero."""
        with self._lock:
            self.reads: list[tuple[str, str, int]] = []
            self.writes: list[tuple[str, str, int]] = []

    @property
    def request_count(self) -> int:
        return len(self.reads) + len(self.writes)

    @property
    def bytes_read(self) -> int:
        with self._lock:
            return sum(size for _, _, size in self.reads)

    @property
    def bytes_written(self) -> int:
        with self._lock:
            return sum(size for _, _, size in self.writes)

    def __reduce__(self) -> tuple[Any, ...]:
        return MeteredStore, (self.store,)

    def __repr__(self) -> str:
        return f"Metered({self.store!r})"

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def coalesce_gap(self) -> int:
        return self.store.coalesce_gap

    @property
    def options(self) -> Mapping[str, str]:
        return getattr(self.store, "options", {})

    @property
    def cache(self) -> Cache:
        return cache_of(self.store)

    def path(self, key: str) -> None:
        return None

    def read(self, key: str) -> bytes:
        try:
            data = self.store.read(key)
        except NotFound:  # to ask is a request, too
            self._record(self.reads, ("read", key, 0))
            raise
        self._record(self.reads, ("read", key, len(data)))
        return data

    def read_at_most(self, key: str, limit: int) -> bytes:
        try:
            data = read_at_most(self.store, key, limit)
        except NotFound:
            self._record(self.reads, ("read", key, 0))
            raise
        self._record(self.reads, ("read", key, len(data)))
        return data

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        # as the store itself would, so it asks for these as they are
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        fetched = self.store.read_ranges(key, spans)
        self._record(self.reads, *(("read_ranges", key, len(data)) for data in fetched))
        return slice_ranges(ranges, spans, fetched, f"{self.url}/{key}")

    def object_meta(self, key: str) -> ObjectMeta:
        self._record(self.reads, ("meta", key, 0))
        return object_meta(self.store, key)

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        self._record(self.reads, ("list", prefix, 0))
        yield from self.store.list(prefix)

    def list_keys_after(self, key: str) -> Sequence[str]:
        self._record(self.reads, ("list", key, 0))
        return list_keys_after(self.store, key)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        self.store.create(key, data, overwrite)
        self._record(self.writes, ("create", key, len(data)))

    def delete(self, keys: Iterable[str]) -> None:
        names = list(keys)
        self.store.delete(names)
        self._record(self.writes, *(("delete", name, 0) for name in names))

    def _record(self, log: Any, *entries: tuple[str, str, int]) -> None:
        with self._lock:
            log.extend(entries)


def meter_requests(store: Store) -> MeteredStore:
    """Count the store from zero."""
    return MeteredStore(store)


@dataclass(frozen=True)
class _StoreWrapper:
    """A store that does what the store within does."""

    store: Store

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def coalesce_gap(self) -> int:
        return self.store.coalesce_gap

    @property
    def options(self) -> Mapping[str, str]:
        return getattr(self.store, "options", {})

    def read(self, key: str) -> bytes:
        return self.store.read(key)

    def read_at_most(self, key: str, limit: int) -> bytes:
        return read_at_most(self.store, key, limit)

    def strays(self, prefix: str = "") -> Iterator[str]:
        return list_strays(self.store, prefix)

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        return self.store.read_ranges(key, ranges)

    def object_meta(self, key: str) -> ObjectMeta:
        return object_meta(self.store, key)

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        return self.store.list(prefix)

    def list_keys_after(self, key: str) -> Sequence[str]:
        return list_keys_after(self.store, key)

    def path(self, key: str) -> str | None:
        return self.store.path(key)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        self.store.create(key, data, overwrite)

    def delete(self, keys: Iterable[str]) -> None:
        self.store.delete(keys)


@dataclass(frozen=True)
class CachedStore(_StoreWrapper):
    """The store within, with a cache of its own: who reads it sees nothing of what others have read before."""

    cache: Cache = field(default_factory=Cache)


@dataclass(frozen=True)
class ReadOnlyStore(_StoreWrapper):
    """The store within, of which nothing is written or deleted. Raises ReadOnly instead."""

    @property
    def cache(self) -> Cache:
        return cache_of(self.store)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        raise self._refusal()

    def delete(self, keys: Iterable[str]) -> None:
        raise self._refusal()

    def _refusal(self) -> ReadOnly:
        return ReadOnly(TableUrl(self.url) + " was opened to be read only: open it without read_only to change it")
