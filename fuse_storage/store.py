"""Where bytes live: written once, read many times.

A key is written once and never changes, so whatever was read may be kept for ever. ``create`` is put-if-absent and
succeeds for equal bytes; it is the only conditional operation, and the only one that a commit needs.
Knows no file format, no table and no snapshot. The only module that imports obstore, and only for remote stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Object:
    """One entry of a listing. ``modified`` is the store's own clock, in UTC."""

    key: str
    size: int
    modified: datetime


@runtime_checkable
class Store(Protocol):
    """Bytes by key. Keys are relative, with "/" between their parts; a prefix is whole parts ("_refs/branch").

    Safe to use from several threads, and picklable. Raises NotFound (naming the URL) for a missing key, StorageError
    (naming it too) for anything else that a store refuses.
    """

    @property
    def url(self) -> str: ...

    def read(self, key: str) -> bytes:
        """All bytes of ``key``."""
        ...

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes]:
        """The bytes of each (offset, length), in order; near ranges are fetched together. Raises Corrupt past the end."""
        ...

    def list(self, prefix: str = "") -> Iterator[Object]:
        """All objects under ``prefix``, in no promised order; what is written meanwhile may or may not be seen."""
        ...

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        """Write all of ``data`` or nothing, durably; raise AlreadyExists if ``key`` holds other bytes.

        Creating equal bytes twice is no conflict, so a retry after a lost answer is safe. ``overwrite`` is for
        advisory hints only.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove these; a missing one is no error."""
        ...

    def path(self, key: str) -> str | None:
        """Where ``key`` is on this machine's file system, or None."""
        ...


def open_store(url: str, options: Mapping[str, str] | None = None) -> Store:
    raise NotImplementedError
