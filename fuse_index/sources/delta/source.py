"""A Delta table as a source: its log says which files are live at a version. Knows the log through ``deltalake``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.sources.delta.columns import ColumnReader
from fuse_index.sources.delta.deletes import DeltaDeletes
from fuse_index.sources.delta.log import commit_key, live_vectors, log_version
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions, columns_of_log
from fuse_storage import (
    SHARED_PLACES_OPTION,
    NotFound,
    SharedKeys,
    SourceColumn,
    SourceFile,
    StorageError,
    Unsupported,
    encode_default,
    list_keys_after,
    modified_microseconds,
    object_meta,
    open_store,
)

_MAX_DIGITS = 19
"""Digits of the greatest version that there can be."""
_DELETION_VECTORS = "deletionVectors"
_FILES_AT_ONCE = 200
"""Files of which values of partitions are Python's at a time."""
_KNOWN_FEATURES = {
    "collations",
    "collations-preview",
    "columnMapping",
    _DELETION_VECTORS,  # a table may have the feature and no file with one
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
}
"""Reader features under which a file's rows are what is in it, under the names or ids that the schema gives, but for
columns of types that are not known."""
_VOTABLE_FEATURES = {"catalogManaged", "catalogOwned-preview"}
"""Further ones under which votes hold: what they add are commits that the log lacks so far."""
_BACKTRACE = re.compile(r"\s+(?:stack backtrace:|0: )")
"""What follows are frames of Rust, one a line, each with its number."""
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
"""In a path: deltalake lists the log that is there, and reads the commits of the folder that this is an escape of."""


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table. Nothing is written to its log."""

    url: str
    options: StoreOptions = field(default_factory=dict)
    format: str = "delta"

    @staticmethod
    def open(url: str, options: StoreOptions) -> DeltaSource:
        if url.startswith("uc://"):
            raise InputError(
                f"{url} is a name of Unity Catalog, whose credentials deltalake hands to nobody: name its folder "
                f"(its storage location), or the table in the catalogue's Iceberg REST (iceberg://catalog/schema.table)"
            )
        return DeltaSource(open_store(url, options).url, options)

    def location(self) -> str:
        return self.url

    def has_moved(self, version: SourceVersionId | None, etag: str | None) -> bool:
        if version is None:
            return True
        # Whoever cleans the log up takes its oldest commits: the next one may be gone, and later ones there.
        keys = list_keys_after(open_store(self.url, self.options), commit_key(int(version)).removesuffix(".json"))
        newest = max((number for key in keys if (number := log_version(key)) is not None), default=-1)
        # A table that was made anew at this place may have as many versions, or fewer.
        return newest != int(version) or (etag is not None and self._etag(newest) not in (etag, None))

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        table = self._load(None)
        if version is not None and (wanted := _version_number(version, table.version(), self.url)) != table.version():
            table = self._load(wanted)
        return replace(self.state_of(table, votes_only), etag=self._etag(table.version()))

    def state_of(self, table: Any, votes_only: bool) -> SourceState:
        """The state that a ``DeltaTable`` of deltalake has. Raises as ``state``."""
        metadata, protocol = table.metadata(), table.protocol()
        mode = metadata.configuration.get("delta.columnMapping.mode", "none")
        features = set(protocol.reader_features or ())
        if unknown := sorted(features - _KNOWN_FEATURES - (_VOTABLE_FEATURES if votes_only else set())):
            raise Unsupported(f"{self.url} has the Delta reader feature {unknown[0]!r}, which is not known here")
        deletes = self._deletes(table) if _DELETION_VECTORS in features and not votes_only else None
        columns = columns_of_log(
            json.loads(table.schema().to_json())["fields"], ColumnReader(mode, self.url, not votes_only).read
        )
        partitions = {each.name: each for each in columns.columns if each.name in metadata.partition_columns}
        files = list(self._files(table, partitions, deletes))
        return SourceState(table.version(), files, columns, mode == "id", deletes=deletes)

    def _etag(self, version: int) -> str | None:
        """What tells the commit of a version from one that is written in its place; None where it was cleaned up."""
        try:
            commit = object_meta(open_store(self.url, self.options), commit_key(version))
        except NotFound:
            return None
        return commit.etag or f"{commit.size}-{modified_microseconds(commit)}"

    def _load(self, version: int | None) -> Any:
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError, TableNotFoundError
        except ImportError as missing:
            raise InputError("a Delta table is read through the package deltalake: pip install deltalake") from missing
        if "://" not in self.url and (escape := _ESCAPE.search(self.url)) is not None:
            raise Unsupported(
                f"{self.url} has {escape[0]} in its path, which deltalake takes for an escape: it would read the log "
                f"of another folder, so give this one a name without it"
            )
        options = {name: value for name, value in self.options.items() if name != SHARED_PLACES_OPTION}
        if any(value.startswith("http://") for name, value in options.items() if name.lower().endswith("endpoint")):
            options.setdefault("allow_http", "true")  # as stores do; deltalake wants to be told
        try:
            return DeltaTable(self.url, version=version, storage_options=options or None)
        except TableNotFoundError as missing:
            if version is not None:  # a newer one was read
                raise StorageError(
                    f"{self.url} has no log of version {version} any more: it was cleaned up; sync to a later version"
                ) from missing
            raise InputError(f"{self.url} is no Delta table: there is no log (_delta_log) in it") from missing
        except (DeltaError, OSError, ValueError) as problem:
            where = self.url if version is None else f"{self.url} at version {version}"
            raise StorageError(f"{where} cannot be read as a Delta table: {_told(problem)}") from problem

    def _deletes(self, table: Any) -> DeltaDeletes:
        store = open_store(self.url, self.options)
        places = {self._location(path): place for path, place in live_vectors(store, table.version()).items()}
        return DeltaDeletes(store, places)

    def _files(
        self, table: Any, partitions: Mapping[str, SourceColumn], deletes: DeltaDeletes | None
    ) -> Iterator[SourceFile]:
        places = {} if deletes is None else dict(deletes.places)
        actions = pa.table(table.get_add_actions(flatten=False))
        wanted = [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
        chosen, known = actions.select(wanted), {str: dict[Any, Any](), int: dict[Any, Any]()}
        del actions
        places_of = {
            each.physical_name if each.id is None else each.id: at for at, each in enumerate(partitions.values())
        }
        rows = (row for batch in chosen.to_batches(max_chunksize=_FILES_AT_ONCE) for row in batch.to_pylist())
        for row in rows:
            values: Mapping[str, Any] = row.get("partition") or {}
            found = (encode_default(values.get(name, values.get(of.physical_name))) for name, of in partitions.items())
            # files of a partition have the same texts and numbers
            shared = tuple(known.get(type(each), {}).setdefault(each, each) for each in found)
            constants = SharedKeys(places_of, shared)
            where = self._location(row["path"])
            vector = places.pop(where, None)
            yield SourceFile(
                where, row["size_bytes"], constants=constants, deletes=None if vector is None else vector.name
            )
        if places:  # else rows that are deleted would be read
            raise Unsupported(f"{next(iter(places))} has a deletion vector, and is no file of {self.url}")

    def _location(self, path: str) -> str:
        if path.startswith("file:"):
            return unquote("/" + path.removeprefix("file:").lstrip("/"))
        return path if "://" in path or path.startswith("/") else f"{self.url}/{unquote(path)}"


def _told(problem: Exception) -> str:
    """What deltalake says, in one line, without frames of Rust."""
    return " ".join(_BACKTRACE.split(str(problem))[0].split())


def _version_number(version: SourceVersionId, newest: int, where: str) -> int:
    """A version that was asked for as a number. Raises InputError for one that cannot be: deltalake may wait for it."""
    text = str(version)
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) <= newest):
        raise InputError(f"to={version!r}: the newest version of {where} is {newest}, and its first 0")
    return int(text)
