"""An Iceberg table as a source: metadata says which files are live in a snapshot. Knows it through ``pyiceberg``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fuse_index.errors import InputError
from fuse_index.sources.iceberg_metadata import metadata_location
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions, columns_of_log
from fuse_storage import (
    RowMask,
    SourceColumn,
    SourceFile,
    StorageError,
    Unsupported,
    encode_default,
    open_store,
)

_CATALOG = re.compile(r"iceberg://(?P<catalog>[^/]+)/(?P<table>.+)")
_FIELD_ID = b"PARQUET:field_id"
_LAST_FORMAT_VERSION = 2
"""From 3 on rows have a lineage, columns defaults, and there are variants and deletion vectors."""
_KNOWN_TYPES = (
    *("Boolean", "Integer", "Long", "Float", "Double", "Decimal", "String", "Binary"),
    *("Date", "Timestamp", "Timestamptz"),
)
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

    def location(self) -> str:
        return str(self._load(votes_only=True).location())

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        table = self._load(votes_only)
        if table.metadata.format_version > _LAST_FORMAT_VERSION and not votes_only:
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
        columns, without_votes = columns_of_schema(schema, self.url, votes_only)
        values = AbsentValues(table, schema, columns)
        files, deleted = [], dict[str, RowMask]()
        for each in self._data_files(table, number, votes_only, deleted) if number else ():
            try:
                files.append(self._file(each, values, deleted))
            except Unsupported:
                if not votes_only:
                    raise
        return SourceState(number, files, columns, by_id=True, without_votes=without_votes)

    def _data_files(self, table: Any, number: int, votes_only: bool, deleted: dict[str, RowMask]) -> list[Any]:
        """The data files of a snapshot, as PyIceberg has them. Raises Unsupported unless all can be read.

        ``deleted`` gets, by path of a file, which of its rows do not count: bool, shape (rows,).
        """
        try:
            if votes_only:
                return [each for each in _live_files(table, number) if _is_parquet(each)]
            self._refuse_equality_deletes(table, number)
            tasks = list(table.scan(snapshot_id=number).plan_files())
            for task in tasks:
                self._refuse_unreadable(task)
            deleted.update(_deleted_rows(table.io, tasks))
            return [task.file for task in tasks]
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

    def _load(self, votes_only: bool = False) -> Any:
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
            return StaticTable.from_metadata(metadata_location(self.url, self.options, votes_only), properties)
        except StorageError:
            raise
        except Exception as problem:  # PyIceberg's errors have no common base, and its catalogues bring their own
            raise StorageError(f"{self.url} cannot be read as an Iceberg table: {problem!r}") from problem

    def _refuse_unreadable(self, task: Any) -> None:
        """Raise Unsupported for a file, or one with its deletes, that is no Parquet."""
        for each in (task.file, *task.delete_files):
            if not _is_parquet(each):
                raise Unsupported(f"{each.file_path} is of format {each.file_format}, and only Parquet is read")

    def _file(self, file: Any, values: AbsentValues, deleted: Mapping[str, RowMask]) -> SourceFile:
        path = str(file.file_path)
        # as it is written: a % in it is one in the file's name
        location = "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path
        return SourceFile(location, file.file_size_in_bytes, absent=values.of(file), deleted=deleted.get(path))


def _is_parquet(file: Any) -> bool:
    return "PARQUET" in str(file.file_format).upper()


def _deleted_rows(io: Any, tasks: Sequence[Any]) -> dict[str, RowMask]:
    """Which rows position deletes take away, by path of a data file: bool, shape (rows,). Each is read once."""
    masks = dict[str, RowMask]()
    tasks_of = dict[str, list[Any]]()
    for task in tasks:
        for each in task.delete_files:
            tasks_of.setdefault(str(each.file_path), []).append(task)
    for place, affected in tasks_of.items():
        with io.new_input(place).open() as file:
            rows = pq.read_table(file, columns=["file_path", "pos"])
        paths, positions = (
            pc.dictionary_encode(rows.column("file_path")).combine_chunks(),
            rows.column("pos").to_numpy(),
        )
        numbers = {path: number for number, path in enumerate(paths.dictionary.to_pylist())}
        for task in affected:
            path = str(task.file.file_path)
            mask = masks.setdefault(path, np.zeros(task.file.record_count, np.bool_))
            mask[positions[paths.indices.to_numpy() == numbers.get(path, -1)]] = True
    return masks


def _live_files(table: Any, number: int) -> Iterator[Any]:
    """The data files of a snapshot, whatever is deleted of them."""
    from pyiceberg.manifest import ManifestContent

    for manifest in table.snapshot_by_id(number).manifests(table.io):
        if manifest.content == ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file


class AbsentValues:
    """What columns hold in files that lack them, where it is not NULL: by which a file is partitioned, or a default."""

    def __init__(self, table: Any, schema: Any, columns: Sequence[SourceColumn]) -> None:
        self._specs = table.specs()
        self._types = {column.id: column.type for column in columns if not column.children}
        defaults = {each.field_id: each.initial_default for each in schema.fields}
        self._defaults = {
            number: _constant(value, self._types[number], "its default")
            for number, value in defaults.items()
            if value is not None and number in self._types
        }

    def of(self, file: Any) -> Mapping[str | int, Any]:
        """By field id, the values in a file, as JSON has defaults."""
        from pyiceberg.transforms import IdentityTransform

        return self._defaults | {
            part.source_id: _constant(file.partition[position], self._types[part.source_id], str(file.file_path))
            for position, part in enumerate(self._specs[file.spec_id].fields)
            if isinstance(part.transform, IdentityTransform) and part.source_id in self._types
        }


def columns_of_schema(schema: Any, where: str, votes_only: bool) -> tuple[tuple[SourceColumn, ...], Mapping[str, str]]:
    """The columns of a schema of PyIceberg. Gives and raises as ``columns_of_log``."""
    return columns_of_log(schema.fields, partial(_column, where=where), votes_only)


def _constant(value: Any, kind: pa.DataType, where: str) -> Any:
    """A value as JSON has defaults; days and times may be numbers, as Avro has them. Raises Unsupported."""
    try:
        return encode_default(pa.scalar(value, kind).as_py())
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise Unsupported(f"{where} has a value that is none of type {kind}: {value!r}") from problem


def _column(field: Any, where: str) -> SourceColumn:
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.schema import Schema
    from pyiceberg.types import PrimitiveType

    if field.initial_default is not None and not isinstance(field.field_type, PrimitiveType):
        raise Unsupported(f"{where}: column {field.name!r} has a default of its own in files that lack it")
    _raise_if_unknown(field.field_type, field.name, where)
    (found,) = schema_to_pyarrow(Schema(field))
    if field.initial_default is not None:
        _constant(field.initial_default, found.type, f"{where}: column {field.name!r}")
    return _arrow_column(found)


def _raise_if_unknown(kind: Any, path: str, where: str) -> None:
    """Raise Unsupported for a type that no column here has, or a type that is made of one."""
    from pyiceberg.types import PrimitiveType, StructType

    if isinstance(kind, PrimitiveType) and type(kind).__name__.removesuffix("Type") not in _KNOWN_TYPES:
        raise Unsupported(f"{where}: column {path!r} is of Iceberg's type {kind}, not known here")
    for part in (getattr(kind, name, None) for name in ("element_field", "key_field", "value_field")):
        if part is not None:
            _raise_if_unknown(part.field_type, f"{path}.{part.name}", where)
    for part in kind.fields if isinstance(kind, StructType) else ():
        if part.initial_default is not None:
            raise Unsupported(f"{where}: column {path!r} has a default in {part.name!r} of files that lack it")
        _raise_if_unknown(part.field_type, f"{path}.{part.name}", where)


def _arrow_column(column: pa.Field) -> SourceColumn:
    kind = column.type
    parts: list[pa.Field] = []
    if pa.types.is_struct(kind):
        parts = list(kind)
    elif pa.types.is_map(kind):
        parts = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [kind.value_field.with_name("element")]
    number = int(column.metadata[_FIELD_ID])
    return SourceColumn(column.name, column.name, kind, number, None, tuple(map(_arrow_column, parts)))
