"""A folder of this machine as a store, without obstore: what is below the folder is the store's, and nothing else.

Links, pipes and devices below it are not followed, read, written or deleted: a listing passes over them, and a key that
leads over one is refused.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from fuse_storage.errors import RESTORE_HINT, AlreadyExists, Corrupt, NotFound, StorageError
from fuse_storage.store.folders import (
    list_folder,
    open_file,
    open_folder,
    prune_folders,
    raise_if_irregular,
    readable_folder,
    sync_folder,
)
from fuse_storage.store.ranges import (
    MAX_FILE_BYTES,
    STAGING_FOLDER,
    ByteRange,
    ObjectMeta,
    coalesce_ranges,
    slice_ranges,
    validate_key,
)

_NO_HARD_LINK_ERRNOS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV}

_NO_RIGHT_ERRNOS = {errno.EACCES, errno.EPERM, errno.EROFS}

_DRAFT_MAX_AGE_SECONDS = 24 * 60 * 60
"""Seconds after which nobody works on a draft any more."""
_MAX_KEY_PARTS = 32
"""Folders below so many others are passed over: keys of a table have five parts at most."""


class LocalStore:
    """A folder. Files are staged, made durable and then linked: unlike a rename, a link refuses to replace."""

    coalesce_gap = 4 << 10

    def __init__(self, folder: str, options: Mapping[str, str] | None = None) -> None:
        self.url, self.options = os.path.abspath(os.path.expanduser(folder)), dict(options or {})
        self._swept = False

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self.url, self.options)

    def __repr__(self) -> str:
        return f"LocalStore({self.url!r})"

    def path(self, key: str) -> str:
        return f"{self.url}/{validate_key(key)}"

    def read(self, key: str) -> bytes:
        return self.read_at_most(key, MAX_FILE_BYTES)

    def read_at_most(self, key: str, limit: int) -> bytes:
        with self._translate_errors(key):
            file, size = open_file(self.url, validate_key(key))
            try:
                if size > limit:
                    raise Corrupt(f"{self.url}/{key} has {size} bytes instead of at most {limit}: {RESTORE_HINT}")
                return _read_at(file, 0, size)
            finally:
                os.close(file)

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        with self._translate_errors(key):
            file, size = open_file(self.url, validate_key(key))
            try:
                fetched = [_read_at(file, offset, min(length, max(size - offset, 0))) for offset, length in spans]
            finally:
                os.close(file)
        return slice_ranges(ranges, spans, fetched, self.path(key))

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        for key, state in self._walk(prefix):
            if stat.S_ISREG(state.st_mode):
                yield _object_meta(key, state)

    def object_meta(self, key: str) -> ObjectMeta:
        with self._translate_errors(key):
            file, _ = open_file(self.url, validate_key(key))
            try:
                state = os.fstat(file)
            finally:
                os.close(file)
        return _object_meta(key, state)

    def strays(self, prefix: str = "") -> Iterator[str]:
        """The keys of what a listing passes over: links, which are not followed, pipes, sockets and devices."""
        return (key for key, state in self._walk(prefix) if not stat.S_ISREG(state.st_mode))

    def _walk(self, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        """All that is below a folder and is no folder itself, in order."""
        pending = [validate_key(prefix.strip("/")) if prefix.strip("/") else ""]
        while pending:
            prefix = pending.pop()
            within = f"{prefix}/" if prefix else ""
            try:
                entries = list_folder(self.url, prefix.split("/") if prefix else [])
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as refusal:
                raise StorageError(f"{self.url}/{within}: {refusal.strerror}") from refusal
            folders = []
            for name, state in entries:
                key = within + name
                if not _can_be_key(name) or key == STAGING_FOLDER:
                    continue
                if not stat.S_ISDIR(state.st_mode):
                    yield key, state
                elif key.count("/") < _MAX_KEY_PARTS:
                    folders.append(key)
            pending += reversed(folders)

    def list_keys_after(self, key: str) -> Sequence[str]:
        *folders, last = validate_key(key).split("/")
        try:
            with (
                self._translate_errors(key),
                open_folder(self.url, folders) as folder,
                readable_folder(folder) as handle,
                os.scandir(handle) as listed,
            ):
                names = [one.name for one in listed if one.name > last and not one.is_dir(follow_symlinks=False)]
        except NotFound:
            return []
        return ["/".join([*folders, name]) for name in names if _can_be_key(name)]

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        *folders, name = validate_key(key).split("/")
        with (
            self._translate_errors(key, missing=StorageError),
            open_folder(self.url, folders, make=True) as folder,
            open_folder(self.url, [STAGING_FOLDER], make=True) as staging,
        ):
            draft = self._stage_draft(staging, data)
            try:
                if overwrite:
                    os.replace(draft, name, src_dir_fd=staging, dst_dir_fd=folder)
                while not overwrite and not self._link(staging, draft, folder, name):
                    with suppress(NotFound, FileNotFoundError):  # it was there and is gone: link again
                        raise_if_irregular(folder, name, self.path(key))
                        if self.read(key) != data:
                            raise AlreadyExists(f"{self.path(key)} already holds other bytes")
                        break
                sync_folder(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=staging)

    def sweep_drafts(self) -> None:
        """Remove what writers that died have left in the staging folder."""
        with suppress(FileNotFoundError), open_folder(self.url, [STAGING_FOLDER]) as staging:
            _sweep(staging)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            *folders, name = validate_key(key).split("/")
            with suppress(NotFound), self._translate_errors(key), open_folder(self.url, folders) as folder:
                os.unlink(name, dir_fd=folder)

    def remove_empty_folders(self, prefix: str) -> None:
        """Remove a folder of which all files were deleted, and the folders within it."""
        prune_folders(self.url, validate_key(prefix).split("/"))

    def _stage_draft(self, staging: int, data: bytes) -> str:
        if not self._swept:
            self._swept = True
            _sweep(staging)
        draft = uuid.uuid4().hex
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=staging)
            with open(handle, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):  # a full disk should not stay full of it
                os.unlink(draft, dir_fd=staging)
            raise
        return draft

    def _link(self, staging: int, draft: str, folder: int, name: str) -> bool:
        """Put the draft under ``name`` if nothing is there, and return whether it was so."""
        try:
            os.link(draft, name, src_dir_fd=staging, dst_dir_fd=folder, follow_symlinks=False)
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
            error = StorageError(f"{self.url}/{key}: {refusal.strerror}")
            error.not_permitted = refusal.errno in _NO_RIGHT_ERRNOS
            raise error from refusal


def _read_at(file: int, offset: int, length: int) -> bytes:
    data = os.pread(file, length, offset)
    while len(data) < length and (more := os.pread(file, length - len(data), offset + len(data))):
        data += more  # network file systems may answer in pieces
    return data


def _can_be_key(name: str) -> bool:
    """Whether a name in a folder can be part of a key: no other is a table's, and none could be deleted by it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in name


def _object_meta(key: str, state: os.stat_result) -> ObjectMeta:
    """What is said of a file. Its ETag: which file it is, and when its bytes or its attributes last changed.

    Nobody sets the latter, as the time of writing is set by copies and restores.
    """
    version = f"{state.st_ino:x}-{state.st_ctime_ns:x}"
    return ObjectMeta(key, state.st_size, datetime.fromtimestamp(state.st_mtime, UTC), version)


def _sweep(staging: int) -> None:
    """Remove drafts that a crash left behind; a living one is linked within seconds."""
    with readable_folder(staging) as handle, os.scandir(handle) as drafts:
        for draft in drafts:
            with suppress(FileNotFoundError):
                state = draft.stat(follow_symlinks=False)
                if stat.S_ISREG(state.st_mode) and state.st_mtime < time.time() - _DRAFT_MAX_AGE_SECONDS:
                    os.unlink(draft.name, dir_fd=staging)
