"""What a source is: a place of files that somebody else writes, and its states. Knows no format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from fuse_storage import SourceColumn, SourceFile

SourceVersionId = str | int
"""What a source calls one of its states: Delta's version, Iceberg's snapshot id; of a folder, when it was listed."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """One state of a source. ``files``: all that are live then.

    ``columns``: None where only the files say which there are; then ``partitions`` are those that paths add to them.
    ``by_id``: files are read by field ids.
    """

    version: SourceVersionId
    files: Sequence[SourceFile]
    columns: tuple[SourceColumn, ...] | None
    by_id: bool = False
    partitions: pa.Schema = field(default_factory=lambda: pa.schema([]))


class Source(Protocol):
    """A place of files. ``format``: its name. ``url``: absolute, without a slash at its end."""

    @property
    def format(self) -> str: ...

    @property
    def url(self) -> str: ...

    def state(self, version: SourceVersionId | None = None) -> SourceState:
        """The newest state, or one that is asked for.

        Raises InputError for a version that cannot be, and what cannot be read exactly: Unsupported, StorageError.
        """
        ...


StoreOptions = Mapping[str, str]
"""Options of the object store that both the table and its source are asked with."""
