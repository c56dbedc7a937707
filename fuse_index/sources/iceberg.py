"""An Iceberg table as a source: metadata says which files are live in a snapshot. Knows it through ``pyiceberg``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions
from fuse_storage import NotFound, SourceColumn, SourceFile, StorageError, Unsupported, open_store

_CATALOG = re.compile(r"iceberg://(?P<catalog>[^/]+)/(?P<table>.+)")
_HINT = "metadata/version-hint.text"
_FIELD_ID = b"PARQUET:field_id"
_LAST_FORMAT_VERSION = 2
"""From 3 on rows have a lineage, columns defaults, and there are variants and deletion vectors."""
_OPTIONS = {
    "endpoint": "s3.endpoint",
    "endpoint_url": "s3.endpoint",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "token": "s3.session-token",
    "region": "s3.region",
}
"""What PyIceberg calls options of the object store."""


@dataclass(frozen=True)
class IcebergSource:
    """An Iceberg table: a folder with ``version-hint.text``, one metadata file, or ``iceberg://catalog/db.table``."""

    url: str
    options: StoreOptions = field(default_factory=dict)
    format: str = "iceberg"

    @staticmethod
    def open(url: str, options: StoreOptions) -> IcebergSource:
        return IcebergSource(url if _CATALOG.fullmatch(url) else open_store(url, options).url, options)

    def state(self, version: SourceVersionId | None = None) -> SourceState:
        table = self._load()
        if table.metadata.format_version > _LAST_FORMAT_VERSION:
            raise Unsupported(
                f"{self.url} is of Iceberg's format version {table.metadata.format_version}, whose row lineage, "
                f"variants and deletion vectors are not known here: attach a table of version {_LAST_FORMAT_VERSION}"
            )
        current = table.current_snapshot()
        if version is None:
            number = 0 if current is None else int(current.snapshot_id)
            schema = table.schema()
        else:
            number = self._number(table, version)
            schema = table.scan(snapshot_id=number).projection() if number else table.schema()
        files = list(self._files(self._plan(table, number))) if number else []
        return SourceState(number, files, tuple(_columns(schema, self.url)), by_id=True)

    def _plan(self, table: Any, number: int) -> list[Any]:
        """The data files of a snapshot with their delete files, as PyIceberg pairs them."""
        try:
            self._refuse_equality_deletes(table, number)
            return list(table.scan(snapshot_id=number).plan_files())
        except StorageError:
            raise
        except Exception as problem:  # PyIceberg's errors have no common base
            raise StorageError(f"{self.url}: the files of snapshot {number} cannot be listed: {problem!r}") from problem

    def _refuse_equality_deletes(self, table: Any, number: int) -> None:
        """Raise Unsupported for the first live file of equality deletes: PyIceberg plans no snapshot that has one."""
        from pyiceberg.manifest import DataFileContent, ManifestContent

        for manifest in table.snapshot_by_id(number).manifests(table.io):
            if manifest.content != ManifestContent.DELETES:
                continue
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.data_file.content == DataFileContent.EQUALITY_DELETES:
                    found = [table.schema().find_column_name(each) for each in entry.data_file.equality_ids or ()]
                    names = ", ".join(name or "a column that was dropped" for name in found)
                    raise Unsupported(
                        f"{entry.data_file.file_path} has equality deletes (by {names}), which are not read here: "
                        f"compact the table at the source (rewrite_data_files with delete-file-threshold = 1 and "
                        f"remove-dangling-deletes = true)"
                    )

    def _number(self, table: Any, version: SourceVersionId) -> int:
        known = [int(snapshot.snapshot_id) for snapshot in table.snapshots()]
        if (found := next((number for number in known if str(number) == str(version)), None)) is None:
            raise InputError(f"to={version!r}: {self.url} has the snapshots {', '.join(map(str, known)) or 'none'}")
        return found

    def _load(self) -> Any:
        try:
            from pyiceberg.catalog import load_catalog
            from pyiceberg.table import StaticTable
        except ImportError as missing:
            raise InputError(f"an Iceberg table is read through the package pyiceberg: {missing}") from missing
        properties = {
            _OPTIONS[name]: value
            for key, value in self.options.items()
            if (name := key.lower().removeprefix("aws_")) in _OPTIONS
        }
        try:
            if match := _CATALOG.fullmatch(self.url):
                return load_catalog(match["catalog"]).load_table(match["table"])
            return StaticTable.from_metadata(self._metadata_location(), properties)
        except StorageError:
            raise
        except Exception as problem:  # PyIceberg's errors have no common base, and its catalogues bring their own
            raise StorageError(f"{self.url} cannot be read as an Iceberg table: {problem!r}") from problem

    def _metadata_location(self) -> str:
        if self.url.endswith(".metadata.json"):
            return self.url
        try:
            hint = open_store(self.url, self.options).read(_HINT).decode().strip()
        except NotFound as missing:
            raise NotFound(
                f"{self.url} has no {_HINT}, so that nobody can tell which of its metadata is the newest: name the "
                f"metadata file (….metadata.json), or the table in its catalogue (iceberg://catalog/db.table)"
            ) from missing
        name = f"v{hint}.metadata.json" if hint.isdigit() else hint
        return f"{self.url}/metadata/{name}"

    def _files(self, tasks: Iterable[Any]) -> Iterator[SourceFile]:
        for task in tasks:
            path = str(task.file.file_path)
            if task.delete_files:
                raise Unsupported(
                    f"{path} has rows that a delete file takes away: compact the table at the source "
                    f"(rewrite_data_files)"
                )
            if "PARQUET" not in str(task.file.file_format).upper():
                raise Unsupported(f"{path} is of format {task.file.file_format}, and only Parquet is read")
            # as it is written: a % in it is one in the file's name
            location = "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path
            yield SourceFile(location, task.file.file_size_in_bytes)


def _columns(schema: Any, where: str) -> Iterator[SourceColumn]:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    for each in schema.fields:
        _raise_if_unknown(each.field_type, each.name, where)
    found = schema_to_pyarrow(schema)
    for column in found:
        yield _column(column)


def _raise_if_unknown(kind: Any, path: str, where: str) -> None:
    """Raise Unsupported for a type that no column here has, or a type that is made of one."""
    from pyiceberg.types import FixedType, StructType, UUIDType

    if isinstance(kind, FixedType | UUIDType):
        raise Unsupported(f"{where}: column {path!r} is of Iceberg's type {kind}, not known here")
    for part in (getattr(kind, name, None) for name in ("element_field", "key_field", "value_field")):
        if part is not None:
            _raise_if_unknown(part.field_type, f"{path}.{part.name}", where)
    for part in kind.fields if isinstance(kind, StructType) else ():
        _raise_if_unknown(part.field_type, f"{path}.{part.name}", where)


def _column(column: pa.Field) -> SourceColumn:
    kind = column.type
    parts: list[pa.Field] = []
    if pa.types.is_struct(kind):
        parts = list(kind)
    elif pa.types.is_map(kind):
        parts = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [kind.value_field.with_name("element")]
    number = int(column.metadata[_FIELD_ID])
    return SourceColumn(column.name, column.name, kind, number, None, tuple(map(_column, parts)))
