"""Files and folders below a root, opened part by part so that no symbolic link is followed on the way.

Whoever made a folder may have put links, pipes or devices into it, and may change it while it is read. So each part of
a path is opened by itself, from the folder above. A link in the path of the root is its user's own, and is followed.
Knows no keys.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import NoReturn

from fuse_storage.errors import StorageError

_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe that nobody writes to is not waited for; it is refused once it is open."""


@contextmanager
def open_folder(root: str, parts: Sequence[str], make: bool = False) -> Iterator[int]:
    """The folder of these names, one in the other, from which names in it can be opened, linked and deleted.

    ``make``: those that are missing are made. Raises OSError, and StorageError for a link among them.
    """
    if make:
        _make_root(root)
    handle = os.open(root, _FOLDER_FLAGS)
    try:
        for number, part in enumerate(parts):
            below = _enter(handle, part, make, f"{root}/{'/'.join(parts[: number + 1])}")
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def open_file(root: str, key: str) -> tuple[int, int]:
    """A file, open to be read, and its length. Raises OSError, and StorageError for what is no plain file.

    Its whole path is opened at once, and afterwards asked of the kernel: if a link led elsewhere, or that cannot be
    told, it is opened part by part.
    """
    path = f"{root}/{key}"
    try:
        file = os.open(path, _FILE_FLAGS)
    except FileNotFoundError:
        raise
    except OSError:
        file = _open_by_parts(root, key)
    try:
        if _path_of(file) != f"{_real_path(root)}/{key}":
            os.close(file)
            file = -1
            file = _open_by_parts(root, key)
        state = os.fstat(file)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(state.st_mode):
            _raise_irregular(state, path)
    except BaseException:
        if file >= 0:
            os.close(file)
        raise
    return file, state.st_size


def _open_by_parts(root: str, key: str) -> int:
    *above, name = key.split("/")
    with open_folder(root, above) as folder:
        try:
            return os.open(name, _FILE_FLAGS, dir_fd=folder)
        except OSError as refusal:
            if refusal.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
                raise_if_irregular(folder, name, f"{root}/{key}")
            raise


def _path_of(file: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{file}")
    except OSError:  # no Linux
        return None


@lru_cache(maxsize=256)
def _real_path(root: str) -> str:
    return os.path.realpath(root)


def list_folder(root: str, parts: Sequence[str]) -> list[tuple[str, os.stat_result]]:
    """Names in a folder, in order, and what each is, itself and not what it links to. Raises as ``open_folder``."""
    with open_folder(root, parts) as folder, readable_folder(folder) as handle:
        found = []
        with os.scandir(handle) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return sorted(found, key=lambda each: each[0])


def prune_folders(root: str, parts: Sequence[str]) -> None:
    """Remove a folder and those within it, as far as nothing else is in them."""
    with suppress(OSError, StorageError):
        for name, state in list_folder(root, parts):
            if stat.S_ISDIR(state.st_mode):
                prune_folders(root, [*parts, name])
        with open_folder(root, parts[:-1]) as above:
            os.rmdir(parts[-1], dir_fd=above)


@contextmanager
def readable_folder(folder: int) -> Iterator[int]:
    """Open a folder so that its entries can be listed and made durable."""
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def sync_folder(folder: int) -> None:
    """Make the entries of a folder durable."""
    with readable_folder(folder) as handle:
        os.fsync(handle)


def raise_if_irregular(folder: int, name: str, path: str) -> None:
    """Raise StorageError for a name in a folder that is there and is no plain file. Raises FileNotFoundError."""
    state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(state.st_mode):
        _raise_irregular(state, path)


def _enter(above: int, name: str, make: bool, path: str) -> int:
    flags = _FOLDER_FLAGS | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=above)
        sync_folder(above)
        return os.open(name, flags, dir_fd=above)
    except OSError:
        state = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISLNK(state.st_mode):
            _raise_irregular(state, path)
        raise


def _make_root(folder: str) -> None:
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_root(above)
    os.makedirs(folder, exist_ok=True)
    handle = os.open(above, _FOLDER_FLAGS)
    try:
        sync_folder(handle)
    finally:
        os.close(handle)


def _raise_irregular(state: os.stat_result, path: str) -> NoReturn:
    kinds = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
    kind = kinds.get(stat.S_IFMT(state.st_mode), "device")
    raise StorageError(f"{path} is a {kind}, and a table has plain files and folders only: remove it")
