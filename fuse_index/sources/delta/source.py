"""A Delta table as a source: its log says which files are live at a version. Knows the log through ``deltalake``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions, columns_of_log
from fuse_storage import (
    SHARED_PLACES_OPTION,
    RowMask,
    SourceColumn,
    SourceFile,
    StorageError,
    Unsupported,
    encode_default,
    open_store,
)

_MAX_DIGITS = 19
"""Digits of the greatest version that there can be."""
_DELETION_VECTORS = "deletionVectors"
_KNOWN_FEATURES = {
    "columnMapping",
    _DELETION_VECTORS,  # a table may have the feature and no file with one
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""Reader features under which a file's rows are what is in it, under the names that the schema gives."""
_VOTABLE_FEATURES = {
    "catalogManaged",
    "catalogOwned-preview",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
}
"""Further ones under which votes hold: what they add are types without votes, or commits that the log lacks so far."""
_BACKTRACE = re.compile(r"\s+(?:stack backtrace:|0: )")
"""What follows are frames of Rust, one a line, each with its number."""
_PADDED_TYPE = re.compile(r"(?<!var)char\(\d+\)", re.IGNORECASE)
_TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table. Nothing is written to its log."""

    url: str
    options: StoreOptions = field(default_factory=dict)
    format: str = "delta"

    @staticmethod
    def open(url: str, options: StoreOptions) -> DeltaSource:
        return DeltaSource(open_store(url, options).url, options)

    def location(self) -> str:
        return self.url

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        table = self._load(None)
        if version is not None and (wanted := _version_number(version, table.version(), self.url)) != table.version():
            table = self._load(wanted)
        return self.state_of(table, votes_only)

    def state_of(self, table: Any, votes_only: bool) -> SourceState:
        """The state that a ``DeltaTable`` of deltalake has. Raises as ``state``."""
        metadata, protocol = table.metadata(), table.protocol()
        mode = metadata.configuration.get("delta.columnMapping.mode", "none")
        features = set(protocol.reader_features or ())
        if unknown := sorted(features - _KNOWN_FEATURES - (_VOTABLE_FEATURES if votes_only else set())):
            raise Unsupported(f"{self.url} has the Delta reader feature {unknown[0]!r}, which is not known here")
        if mode == "id" and not votes_only:
            raise Unsupported(f"{self.url} maps columns by ids (delta.columnMapping.mode): set the mode to 'name'")
        deleted = self._deleted_rows(table) if _DELETION_VECTORS in features and not votes_only else {}
        make = partial(_votable_column if votes_only else _column, mapped=mode, where=self.url)
        columns, without_votes = columns_of_log(json.loads(table.schema().to_json())["fields"], make, votes_only)
        partitions = {each.name: each for each in columns if each.name in metadata.partition_columns}
        files = list(self._files(table, partitions, deleted))
        return SourceState(table.version(), files, columns, mode == "id", without_votes=without_votes)

    def _load(self, version: int | None) -> Any:
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError, TableNotFoundError
        except ImportError as missing:
            raise InputError(f"a Delta table is read through the package deltalake: {missing}") from missing
        options = {name: value for name, value in self.options.items() if name != SHARED_PLACES_OPTION}
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

    def _deleted_rows(self, table: Any) -> dict[str, RowMask]:
        """Which rows do not count, by the location of a file with a deletion vector: bool, shape (rows,) or shorter.

        Raises Unsupported for a vector that cannot be read.
        """
        try:
            found = pa.table(table.deletion_vectors())
        except Exception as problem:  # deltalake raises whatever its parts raise
            raise Unsupported(
                f"{self.url} has deletion vectors that cannot be read ({_told(problem)}): run REORG TABLE … APPLY "
                f"(PURGE) at the source"
            ) from problem
        kept = found.column("selection_vector")
        return {
            self._location(name): ~kept[number].values.to_numpy(zero_copy_only=False)
            for number, name in enumerate(found.column("filepath").to_pylist())
        }

    def _files(
        self, table: Any, partitions: Mapping[str, SourceColumn], deleted: dict[str, RowMask]
    ) -> Iterator[SourceFile]:
        actions = pa.table(table.get_add_actions(flatten=False))
        wanted = [name for name in ("path", "size_bytes", "partition") if name in actions.column_names]
        for row in actions.select(wanted).to_pylist():
            values: Mapping[str, Any] = row.get("partition") or {}
            constants = {
                column.physical_name if column.id is None else column.id: encode_default(
                    values.get(name, values.get(column.physical_name))
                )
                for name, column in partitions.items()
            }
            where = self._location(row["path"])
            yield SourceFile(where, row["size_bytes"], constants=constants, deleted=deleted.pop(where, None))
        if deleted:  # else rows that are deleted would be read
            raise Unsupported(f"{next(iter(deleted))} has a deletion vector, and is no file of {self.url}")

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


def _votable_column(described: Mapping[str, Any], mapped: str, where: str) -> SourceColumn:
    """A column of which values are compared by their bytes, as votes do. Raises Unsupported for others."""
    if collations := described.get("metadata", {}).get("__COLLATIONS"):
        raise Unsupported(f"{where}: column {described['name']!r} is compared by a collation: {collations}")
    return _column(described, mapped, where)


def _column(described: Mapping[str, Any], mapped: str, where: str) -> SourceColumn:
    """A column, or a field of one, as a log describes it. ``mapped``: how names in files are mapped."""
    name, metadata = described["name"], described.get("metadata", {})
    if padded := _PADDED_TYPE.search(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
        raise Unsupported(
            f"{where}: column {name!r} has texts of type {padded[0].upper()}, which Spark pads with spaces when it "
            f"reads them, and no reader here does: run ALTER TABLE … ALTER COLUMN {name} TYPE STRING at the source"
        )
    physical = name if mapped == "none" else metadata["delta.columnMapping.physicalName"]
    column = _typed(name, physical, described["type"], mapped, where)
    number = int(metadata["delta.columnMapping.id"]) if mapped == "id" else None
    return replace(column, id=number, comment=metadata.get("comment"))


def _typed(name: str, physical: str, described: Any, mapped: str, where: str) -> SourceColumn:
    if mapped == "id" and isinstance(described, Mapping) and described["type"] in ("array", "map"):
        raise Unsupported(f"{where}: column {name!r} has arrays or maps, whose parts have no ids in the log")
    match described:
        case {"type": "struct", "fields": fields}:
            children = tuple(_column(each, mapped, where) for each in fields)
            kind = pa.struct([pa.field(child.name, child.type) for child in children])
        case {"type": "array", "elementType": element}:
            children = (_typed("element", "element", element, mapped, where),)
            kind = pa.list_(pa.field("element", children[0].type))
        case {"type": "map", "keyType": key, "valueType": value}:
            children = (_typed("key", "key", key, mapped, where), _typed("value", "value", value, mapped, where))
            kind = pa.map_(children[0].type, children[1].type)
        case str() as text:
            children, kind = (), _plain_type(text, name, where)
        case _:
            raise Unsupported(f"{where}: column {name!r} is of a type that is not known here: {described}")
    return SourceColumn(name, physical, kind, children=children)


def _plain_type(text: str, name: str, where: str) -> pa.DataType:
    if text.startswith("decimal("):
        precision, scale = text.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if text not in _TYPES:
        raise Unsupported(f"{where}: column {name!r} is of Delta's type {text!r}, which is not known here")
    return _TYPES[text]
