"""Files of a source: where they are, and their footers. Knows no blocks, and no source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_storage.errors import Corrupt, NotFound, SchemaError, Unsupported
from fuse_storage.parquet.foreign.footer import OpenedFile, open_foreign_file
from fuse_storage.parquet.pages import RowMask
from fuse_storage.store.shared_files import resolve_foreign_store
from fuse_storage.store.store import Store

_FOOTER_READERS = 16
"""Files whose footers are read at a time."""

ColumnConstants = Mapping[str | int, Any]
"""By the physical name of a column, or its field id where files are read by it, what all rows of a file hold.

Values are as JSON has defaults.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SharedKeys(Mapping[str | int, Any]):
    """A mapping whose keys are shared by many: a tuple takes a fifth of a dict, of thousands of files with a hundred.

    ``places``: where the value of each key is among ``values_in_order``.

    >>> one = SharedKeys({"a": 0, "b": 1}, (7, None))
    >>> one == {"a": 7, "b": None}, "c" in one
    (True, False)
    """

    places: Mapping[str | int, int]
    values_in_order: tuple[Any, ...]

    def __getitem__(self, key: str | int) -> Any:
        return self.values_in_order[self.places[key]]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


UNKNOWABLE = (SchemaError, Unsupported, Corrupt, NotFound, pa.ArrowException)
"""What is raised for a file that a table for votes alone does not know: its readers may find a way, or raise."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A live file of a source. ``location``: its absolute path or URL. ``modified``: microseconds since 1970.

    ``constants``: values of partition columns. ``absent``: of columns that hold another value than NULL where the file
    lacks them. ``deletes``: what the source calls the deletes of this file alone. ``deleted``: bool, shape (rows,) or
    shorter, True where a row of the file does not count; None: all do.
    """

    location: str
    size: int
    modified: int | None = None
    etag: str | None = None
    constants: ColumnConstants = field(default_factory=dict)
    absent: ColumnConstants = field(default_factory=dict)
    deletes: str | None = None
    deleted: RowMask | None = field(default=None, compare=False)

    def deleted_rows(self, row_count: int) -> RowMask:
        """Which rows of the file do not count: bool, shape (row_count,)."""
        found = np.zeros(row_count, np.bool_)
        if self.deleted is not None:
            found[: len(self.deleted)] = self.deleted[:row_count]
        return found


def open_source_files(
    store: Store,
    source: str,
    files: Sequence[SourceFile],
    progress: Callable[[int, int], None] | None = None,
    unknown: dict[str, str] | None = None,
) -> list[tuple[SourceFile, OpenedFile]]:
    """Read the footers of files at a source, in their order. ``store``: the table's, whose options are used.

    Raises StorageError, naming the file; with ``unknown`` files that nobody can know are left out instead, and this is
    told why, by their places.
    """

    def open_one(file: SourceFile) -> OpenedFile | None:
        other, key = resolve_foreign_store(store, file.location, source)
        try:
            return open_foreign_file(other, key, file.size, ask_meta=file.modified is None)
        except UNKNOWABLE as refusal:
            if unknown is None:
                raise
            unknown[file.location] = str(refusal)
            return None

    opened = []
    with ThreadPoolExecutor(_FOOTER_READERS, "fuse-attach") as pool:
        for number, (file, result) in enumerate(zip(files, pool.map(open_one, files), strict=True), 1):
            if result is not None:
                opened.append((file, result))
            if progress is not None:
                progress(number, len(files))
    return opened
