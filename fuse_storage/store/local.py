"""Stores on this machine: a folder, and the memory of this process. Neither needs obstore."""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from fuse_storage.errors import AlreadyExists, NotFound, StorageError
from fuse_storage.store.ranges import STAGING_FOLDER, ByteRange, ObjectMeta, coalesce_ranges, slice_ranges, validate_key

_NO_HARD_LINK_ERRNOS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV}

_DRAFT_MAX_AGE_SECONDS = 24 * 60 * 60
"""Seconds after which nobody works on a draft any more."""


class LocalStore:
    """A folder. Files are staged, made durable and then linked: unlike a rename, a link refuses to replace."""

    coalesce_gap = 4 << 10

    def __init__(self, folder: str) -> None:
        self.url = os.path.abspath(os.path.expanduser(folder))
        self._swept = False

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self.url,)

    def __repr__(self) -> str:
        return f"LocalStore({self.url!r})"

    def path(self, key: str) -> str:
        return f"{self.url}/{validate_key(key)}"

    def read(self, key: str) -> bytes:
        with self._translate_errors(key), open(self.path(key), "rb", buffering=0) as file:
            return file.read()

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        with self._translate_errors(key), open(self.path(key), "rb", buffering=0) as file:
            fetched = [_read_at(file.fileno(), offset, length) for offset, length in spans]
        return slice_ranges(ranges, spans, fetched, self.path(key))

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        prefix = prefix.strip("/")
        yield from self._walk(f"{prefix}/" if prefix else "")

    def _walk(self, prefix: str) -> Iterator[ObjectMeta]:
        try:
            with os.scandir(f"{self.url}/{prefix}") as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as refusal:
            raise StorageError(f"{self.url}/{prefix}: {refusal.strerror}") from refusal
        for entry in entries:
            key = prefix + entry.name
            if entry.is_dir():
                if key != STAGING_FOLDER:
                    yield from self._walk(key + "/")
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                state = entry.stat()
                yield ObjectMeta(key, state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        path = self.path(key)
        with self._translate_errors(key, missing=StorageError):
            self._make_folder(os.path.dirname(path))
            draft = self._stage_draft(data)
            try:
                if overwrite:
                    os.replace(draft, path)
                while not overwrite and not self._link(draft, path):
                    with suppress(NotFound):  # it was there and is gone: link again
                        if self.read(key) != data:
                            raise AlreadyExists(f"{path} already holds other bytes")
                        break
                _sync(os.path.dirname(path))
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            with suppress(NotFound), self._translate_errors(key):
                os.unlink(self.path(key))

    def _stage_draft(self, data: bytes) -> str:
        self._make_folder(f"{self.url}/{STAGING_FOLDER}")
        if not self._swept:
            self._sweep()
        draft = f"{self.url}/{STAGING_FOLDER}/{uuid.uuid4().hex}"
        try:
            with open(draft, "xb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):  # a full disk should not stay full of it
                os.unlink(draft)
            raise
        return draft

    def _sweep(self) -> None:
        """Remove drafts that a crash left behind; a living one is linked within seconds."""
        self._swept = True
        with os.scandir(f"{self.url}/{STAGING_FOLDER}") as drafts:
            for draft in drafts:
                with suppress(FileNotFoundError):
                    if draft.stat().st_mtime < time.time() - _DRAFT_MAX_AGE_SECONDS:
                        os.unlink(draft.path)

    def _link(self, draft: str, path: str) -> bool:
        """Put the draft at ``path`` if nothing is there, and return whether it was so."""
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as refusal:
            if refusal.errno in _NO_HARD_LINK_ERRNOS:
                raise StorageError(
                    f"{self.url} is on a file system without hard links, by which two writers are told apart: "
                    "put the table elsewhere, or into an object store"
                ) from refusal
            raise
        return True

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        above = os.path.dirname(folder)
        self._make_folder(above)
        os.makedirs(folder, exist_ok=True)
        _sync(above)

    @contextmanager
    def _translate_errors(self, key: str, missing: type[StorageError] = NotFound) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as refusal:
            if missing is NotFound:
                raise missing(f"{self.url}/{key}: there is no such file") from refusal
            raise missing(
                f"{self.url}/{key} cannot be written: {refusal.strerror}; choose a place where folders can be made"
            ) from refusal
        except OSError as refusal:
            raise StorageError(f"{self.url}/{key}: {refusal.strerror}") from refusal


def _read_at(file: int, offset: int, length: int) -> bytes:
    data = os.pread(file, length, offset)
    while len(data) < length and (more := os.pread(file, length - len(data), offset + len(data))):
        data += more  # network file systems may answer in pieces
    return data


def _sync(folder: str) -> None:
    """Make the entries of a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class MemoryStore:
    """The memory of this process: all stores of one name are one.

    Picklable by name, so of no use to other processes.
    """

    coalesce_gap = 4 << 10
    _objects_by_name: dict[str, dict[str, tuple[bytes, datetime]]] = {}  # noqa: RUF012 - one for the process is the point
    _lock = threading.Lock()

    def __init__(self, name: str) -> None:
        self.url = f"memory://{name}"
        with self._lock:
            self._objects = self._objects_by_name.setdefault(name, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self.url.removeprefix("memory://"),)

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"

    def path(self, key: str) -> None:
        return None

    def read(self, key: str) -> bytes:
        try:
            return self._objects[validate_key(key)][0]
        except KeyError:
            raise NotFound(f"{self.url}/{key}: there is no such object") from None

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        data = self.read(key)
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        return slice_ranges(
            ranges, spans, [data[offset : offset + length] for offset, length in spans], f"{self.url}/{key}"
        )

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        prefix = prefix.strip("/")
        within = f"{prefix}/" if prefix else ""
        for key, (data, modified) in sorted(self._objects.copy().items()):
            if key.startswith(within):
                yield ObjectMeta(key, len(data), modified)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        with self._lock:
            existing = self._objects.get(validate_key(key))
            if existing is None or overwrite:
                self._objects[key] = (bytes(data), datetime.now(UTC))
            elif existing[0] != data:
                raise AlreadyExists(f"{self.url}/{key} already holds other bytes")

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._objects.pop(validate_key(key), None)
