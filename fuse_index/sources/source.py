"""What a source is: a place of files that somebody else writes, and its states. Knows no format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from fuse_storage import RowMask, SchemaError, SourceColumn, SourceFile, Unsupported

SourceVersionId = str | int
"""What a source calls one of its states: Delta's version, Iceberg's snapshot id; of a folder, when it was listed."""


@dataclass(frozen=True, slots=True)
class KnownRows:
    """A file whose deleted rows are wanted, and what a table knows of these.

    ``name``: what the source called its deletes; ``rows``: bool, shape (rows,), True where a row does not count; None
    where nothing is known.
    """

    file: SourceFile
    name: str | None = None
    rows: RowMask | None = None


KeyHolders = Callable[[Mapping[int, pa.ChunkedArray]], Mapping[str, bool] | None]
"""A function of keys, columns by their ids: which files may hold one, by location; None where nobody knows."""


class SourceDeletes(Protocol):
    """The deleted rows of a state's files. Nothing of it is read before it is asked for."""

    @property
    def followed(self) -> str | None:
        """Up to where a table has followed deletes that may be of any file; None where there are none."""
        ...

    def changed(self, file: SourceFile, known: str | None, followed: str | None) -> bool:
        """Whether rows may have gone, or come back, since a state in which these were the names."""
        ...

    def read(
        self, files: Sequence[KnownRows], followed: str | None, holders: KeyHolders | None = None
    ) -> Mapping[str, RowMask]:
        """Tell which rows do not count, by location: bool, shape (rows,) or shorter. A file that is left out has all.

        ``holders``: what a table's statistics and indexes know of keys.
        Raises StorageError for what cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns of a table over a state. ``left_out``: why a column of the source is none of them, by its name.

    ``untyped``: names of those of which no file says the type. ``names``: of all columns of the source, where some were
    asked for.
    """

    columns: tuple[SourceColumn, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    untyped: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceState:
    """One state of a source. ``files``: all that are live then.

    ``columns``: None where only the files say which there are; then ``partitions`` are those that paths add to them.
    ``by_id``: files are read by field ids. ``deletes``: None where no source of its kind has any. ``etag``: of the file
    that says the version, where another could take its place; None where it is gone, too. Or of the columns, where they
    change within a version.
    """

    version: SourceVersionId
    files: Sequence[SourceFile]
    columns: ChosenColumns | None
    by_id: bool = False
    partitions: pa.Schema = field(default_factory=lambda: pa.schema([]))
    deletes: SourceDeletes | None = None
    etag: str | None = None


class Source(Protocol):
    """A place of files. ``format``: its name. ``url``: absolute, without a slash at its end."""

    @property
    def format(self) -> str: ...

    @property
    def url(self) -> str: ...

    def location(self) -> str:
        """The folder in which its files and its log are, by which its readers know it. Raises StorageError."""
        ...

    def has_moved(self, version: SourceVersionId | None, etag: str | None) -> bool:
        """Whether there may be another state than this one, asked by two requests where the source's format allows."""
        ...

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        """The newest state, or one that is asked for.

        ``votes_only``: no row is read, so that rows of files may be deleted. Raises InputError for a version that
        cannot be, and what cannot be read exactly: Unsupported, StorageError.
        """
        ...


StoreOptions = Mapping[str, str]
"""Options of the object store that both the table and its source are asked with."""


def columns_of_log(described: Sequence[Any], make: Callable[[Any], SourceColumn]) -> ChosenColumns:
    """The columns that a log describes. ``make``: of a description, which is a mapping or an object with a ``name``."""
    columns, left_out = [], dict[str, str]()
    for each in described:
        try:
            columns.append(make(each))
        except (Unsupported, SchemaError) as refusal:
            left_out[each["name"] if isinstance(each, Mapping) else each.name] = str(refusal)
    return ChosenColumns(tuple(columns), left_out)
