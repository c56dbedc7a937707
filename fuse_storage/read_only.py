"""A store that is only read: what attaches a table that is somebody else's cannot change it by mistake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuse_storage.errors import ReadOnly
from fuse_storage.objects import Object, Range
from fuse_storage.store import Store


@dataclass(frozen=True)
class ReadOnlyStore:
    """The store within, of which nothing is written or deleted. Raises ReadOnly instead."""

    store: Store

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def gap(self) -> int:
        return self.store.gap

    @property
    def options(self) -> Mapping[str, str]:
        return getattr(self.store, "options", {})

    def read(self, key: str) -> bytes:
        return self.store.read(key)

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.store.read_ranges(key, ranges)

    def list(self, prefix: str = "") -> Iterator[Object]:
        return self.store.list(prefix)

    def path(self, key: str) -> str | None:
        return self.store.path(key)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        raise self._refusal()

    def delete(self, keys: Iterable[str]) -> None:
        raise self._refusal()

    def _refusal(self) -> ReadOnly:
        return ReadOnly(f"{self.url} was opened to be read only: open it without read_only to change it")
