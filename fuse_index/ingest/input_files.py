"""Files that people bring, found: paths, folders, globs and URLs of object stores, standard input. Knows no format.

In a folder of Hive's, ``year=2026/city=Bonn/rows.csv``, the path says more of each row: its partition columns.
"""

from __future__ import annotations

import glob
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.ingest.input_formats import InputFormat as InputFormat
from fuse_storage import StorageError, Store, open_store

STDIN = "-"
_WILDCARD = re.compile(r"[*?\[]")
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_READ_AHEAD = 4 << 20
"""Bytes that are asked of an object store at a time."""


class InputFileError(InputError):
    """A source file is not there, or cannot be read as what it is said to be; the message names it."""

    code = "INVALID_FILE"


_FORMAT_BY_SUFFIX = {
    ".parquet": InputFormat.parquet,
    ".pq": InputFormat.parquet,
    ".csv": InputFormat.csv,
    ".tsv": InputFormat.tsv,
    ".tab": InputFormat.tsv,
    ".jsonl": InputFormat.jsonl,
    ".ndjson": InputFormat.jsonl,
    ".json": InputFormat.json,
}
COMPRESSION_BY_SUFFIX = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".br": "brotli",
}


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file. ``open`` may be called more than once but for standard input, whose ``size`` nobody knows.

    ``partition``: what its path says of its rows, by column; None is NULL. ``nulls``: the unquoted texts that mean NULL
    in CSV and TSV.
    """

    name: str
    format: InputFormat
    open: Callable[[], Any]
    size: int | None = None
    partition: tuple[tuple[str, str | None], ...] = ()
    nulls: tuple[str, ...] = ("",)

    @property
    def compression(self) -> str | None:
        """How its name says that it is compressed."""
        return COMPRESSION_BY_SUFFIX.get(PurePosixPath(self.name).suffix.lower())

    @property
    def is_stdin(self) -> bool:
        return self.name == STDIN


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, and the part of its path below what was asked for."""

    name: str
    below: str
    open: Callable[[], Any]
    size: int | None


def find_input_files(
    paths: Sequence[str | PathLike[str]],
    format_: InputFormat | None = None,
    nulls: Sequence[str] = (),
    partitions: bool = True,
    options: Mapping[str, str] | None = None,
) -> list[InputFile]:
    """The files at these paths, those of a folder or a glob in the order of their names.

    Of a folder those whose names say that they hold rows, but for hidden ones, which begin with ``_`` or a dot.
    ``options``: of object stores. Raises InputFileError, StorageError.
    """
    files: list[InputFile] = []
    for path in map(str, paths):
        found = list(_find(path, options))
        if not found and not (path == STDIN or _WILDCARD.search(path) or _is_folder(path)):
            raise InputFileError(f"no file {path!r}")
        is_one = [each.name for each in found] == [path]
        for each in found:
            known = format_ or _format_of(each.name)
            if known is None and not is_one:
                continue  # of a folder, and no rows
            if known is None:
                what = "standard input has no name" if path == STDIN else f"{path!r} ends in none of {_suffixes()}"
                raise InputFileError(f"{what}: say its format (--format, or format= in Python)")
            partition = tuple(path_partition(each.below)) if partitions else ()
            files.append(InputFile(each.name, known, each.open, each.size, partition, tuple(nulls) or ("",)))
    if not files:
        raise InputFileError(f"no Parquet, CSV, TSV or JSON file in {', '.join(map(repr, map(str, paths)))}")
    return files


def _suffixes() -> list[str]:
    return sorted(_FORMAT_BY_SUFFIX)


def _format_of(name: str) -> InputFormat | None:
    """What a name says that a file is, compressed or not."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSION_BY_SUFFIX:
        path = path.with_suffix("")
    return _FORMAT_BY_SUFFIX.get(path.suffix)


def _find(path: str, options: Mapping[str, str] | None) -> Iterator[_Found]:
    if path == STDIN:
        yield _Found(path, "", lambda: sys.stdin.buffer, None)
    elif "://" in path and not path.startswith("file://"):
        yield from _find_in_store(path, options)
    else:
        yield from _find_locally(path.removeprefix("file://"))


def _find_locally(path: str) -> Iterator[_Found]:
    literal = Path(path)
    if literal.is_dir():
        names = sorted(str(each) for each in literal.rglob("*") if each.is_file())
        yield from (_local(name, str(literal)) for name in names if not is_hidden(name[len(str(literal)) :]))
    elif literal.exists():
        yield _local(path, str(literal.parent))
    elif _WILDCARD.search(path):
        base, found = _fixed_part(path), {}
        for name in glob.glob(path, recursive=True):
            inside = [_local(name, base)] if Path(name).is_file() else _rebased(_find_locally(name), base)
            found.update({each.name: each for each in inside if not is_hidden(each.below)})
        yield from (found[name] for name in sorted(found))


def _rebased(found: Iterator[_Found], base: str) -> Iterator[_Found]:
    return (replace(each, below=each.name[len(base) :]) for each in found)


def _local(name: str, base: str) -> _Found:
    return _Found(name, name[len(base) :], lambda: pa.OSFile(name), Path(name).stat().st_size)


def _find_in_store(url: str, options: Mapping[str, str] | None) -> Iterator[_Found]:
    """The objects that a URL names: itself, all below it, or those that a glob matches."""
    base = _fixed_part(url) if _WILDCARD.search(url) else url.rstrip("/")
    yield from _listed(base, url, options)
    if base == url and "/" in url.partition("://")[2]:  # no folder, then: one object of its folder
        folder, _, name = url.rpartition("/")
        store = open_store(folder, options)
        yield from (
            _Found(url, "", partial(_open_object, store, name, meta.size), meta.size)
            for meta in store.list()
            if meta.key == name
        )


def _listed(base: str, url: str, options: Mapping[str, str] | None) -> Iterator[_Found]:
    store = open_store(base, options)
    pattern = _translated(url[len(base) :].lstrip("/")) if base != url.rstrip("/") else re.compile("")
    for meta in sorted(store.list(), key=lambda each: each.key):
        if pattern.match(meta.key) and not is_hidden(meta.key):
            yield _Found(f"{base}/{meta.key}", meta.key, partial(_open_object, store, meta.key, meta.size), meta.size)


def _translated(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: ``*`` and ``?`` stay within a name, ``**`` does not."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    return re.compile(
        "".join(words.get(part) or (part if part[:1] == "[" else re.escape(part)) for part in parts) + r"\Z"
    )


def _fixed_part(path: str) -> str:
    """The folder of a glob before its first wildcard, and before the first that says something of rows."""
    parts = path.split("/")
    first = next(
        (n for n, part in enumerate(parts) if _WILDCARD.search(part) or _PARTITION.fullmatch(part)), len(parts)
    )
    return "/".join(parts[:first]) or ("/" if path.startswith("/") else "")


def _is_folder(path: str) -> bool:
    return "://" not in path and Path(path).is_dir()


def is_hidden(below: str) -> bool:
    """Tell whether a part of a path is passed over in folders: it begins with ``_`` or a dot, and is no partition."""
    return any(part[:1] in ("_", ".") and "=" not in part for part in below.strip("/").split("/"))


def path_partition(below: str) -> Iterator[tuple[str, str | None]]:
    """The columns that the folders of a path give, and their values; None is NULL."""
    for part in below.split("/")[:-1]:
        if match := _PARTITION.fullmatch(part):
            value = unquote(match[2])
            yield unquote(match[1]), None if value == _NULL_PARTITION else value


def _open_object(store: Store, key: str, size: int) -> Any:
    return io.BufferedReader(_ObjectReader(store, key, size), _READ_AHEAD)


class _ObjectReader(io.RawIOBase):
    """An object of a store as a file that is read by ranges."""

    def __init__(self, store: Store, key: str, size: int) -> None:
        self._store, self._key, self._size, self._position = store, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = max(min(len(buffer), self._size - self._position), 0)
        if length:
            try:
                (data,) = self._store.read_ranges(self._key, [(self._position, length)])
            except StorageError as refusal:
                raise OSError(str(refusal)) from refusal
            buffer[:length] = data
            self._position += length
        return length
