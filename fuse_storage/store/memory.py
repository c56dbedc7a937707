"""The memory of this process as a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fuse_storage.errors import AlreadyExists, NotFound
from fuse_storage.store.ranges import ByteRange, ObjectMeta, coalesce_ranges, slice_ranges, validate_key


class MemoryStore:
    """The memory of this process: all stores of one name are one, and ``name/folder`` is a folder of ``name``.

    Picklable by name, so of no use to other processes.
    """

    coalesce_gap = 4 << 10
    _objects_by_name: dict[str, dict[str, tuple[bytes, datetime]]] = {}  # noqa: RUF012 - one for the process is the point
    _lock = threading.Lock()

    def __init__(self, name: str, options: Mapping[str, str] | None = None) -> None:
        self.url, self.options = f"memory://{name}", dict(options or {})
        name, _, folder = name.partition("/")
        self._within = f"{folder}/" if folder else ""
        with self._lock:
            self._objects = self._objects_by_name.setdefault(name, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self.url.removeprefix("memory://"), self.options)

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"

    def path(self, key: str) -> None:
        return None

    def read(self, key: str) -> bytes:
        try:
            return self._objects[self._name(key)][0]
        except KeyError:
            raise NotFound(f"{self.url}/{key}: there is no such object") from None

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        data = self.read(key)
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        return slice_ranges(
            ranges, spans, [data[offset : offset + length] for offset, length in spans], f"{self.url}/{key}"
        )

    def object_meta(self, key: str) -> ObjectMeta:
        try:
            data, modified = self._objects[self._name(key)]
        except KeyError:
            raise NotFound(f"{self.url}/{key}: there is no such object") from None
        return ObjectMeta(key, len(data), modified)

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        prefix = prefix.strip("/")
        within = self._within + (f"{prefix}/" if prefix else "")
        found = [item for item in self._objects.copy().items() if item[0].startswith(within)]
        for name, (data, modified) in sorted(found):
            yield ObjectMeta(name[len(self._within) :], len(data), modified)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        name = self._name(key)
        with self._lock:
            existing = self._objects.get(name)
            if existing is None or overwrite:
                self._objects[name] = (bytes(data), datetime.now(UTC))
            elif existing[0] != data:
                raise AlreadyExists(f"{self.url}/{key} already holds other bytes")

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._objects.pop(self._name(key), None)

    def _name(self, key: str) -> str:
        """The name of an object among all that are shared."""
        return self._within + validate_key(key)
