"""An Iceberg table as a source: metadata says which files are live in a snapshot. Knows it through ``pyiceberg``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fuse_index.errors import InputError
from fuse_index.sources.iceberg.columns import AbsentValues, columns_of_schema
from fuse_index.sources.iceberg.credentials import CATALOG_URL, load_from_catalog, pyiceberg_options
from fuse_index.sources.iceberg.deletes import IcebergDeletes
from fuse_index.sources.iceberg.live_files import DataFileEntry, live_data_files, live_delete_files
from fuse_index.sources.iceberg.metadata import UnknownColumns, load_metadata, metadata_location
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions
from fuse_storage import SourceFile, StorageError, Unsupported, open_store

_LAST_FORMAT_VERSION = 3


@dataclass(frozen=True)
class IcebergSource:
    """An Iceberg table: a folder with ``version-hint.text``, one metadata file, or ``iceberg://catalog/db.table``."""

    url: str
    options: StoreOptions = field(default_factory=dict)
    format: str = "iceberg"

    @staticmethod
    def open(url: str, options: StoreOptions) -> IcebergSource:
        return IcebergSource(url if CATALOG_URL.fullmatch(url) else open_store(url, options).url, options)

    def location(self) -> str:
        return str(self._load(votes_only=True)[0].location())

    def has_moved(self, version: SourceVersionId | None, etag: str | None) -> bool:
        table, _ = self._load()
        current = table.current_snapshot()
        number = 0 if current is None else int(current.snapshot_id)
        return version is None or version != number or etag != _schema_name(table.schema())

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        table, unknown = self._load(votes_only)
        if table.metadata.format_version > _LAST_FORMAT_VERSION:
            raise Unsupported(
                f"{self.url} is of Iceberg's format version {table.metadata.format_version}, and the last known here "
                f"is {_LAST_FORMAT_VERSION}"
            )
        current = table.current_snapshot()
        if version is None:
            number = 0 if current is None else int(current.snapshot_id)
            schema = table.schema()
        else:
            number = self._number(table, version)
            schema = table.scan(snapshot_id=number).projection() if number else table.schema()
        columns = columns_of_schema(schema, self.url, votes_only, unknown.get(schema.schema_id, {}))
        values = AbsentValues(table, schema, columns.columns)
        try:
            entries = self._data_files(table, number, votes_only)
            deletes = [] if votes_only or not number else list(live_delete_files(table, number))
            found = IcebergDeletes(table, entries, deletes)
        except StorageError:
            raise
        except Exception as problem:  # PyIceberg's errors have no common base
            raise StorageError(f"{self.url}: the files of snapshot {number} cannot be listed: {problem!r}") from problem
        files = []
        for each in entries:
            try:
                absent = values.of(each.data_file)
            except Unsupported:
                if not votes_only:
                    raise
                continue
            name = None if votes_only else found.name(each)
            files.append(SourceFile(each.location, each.data_file.file_size_in_bytes, absent=absent, deletes=name))
        return SourceState(number, files, columns, by_id=True, deletes=found, etag=_schema_name(schema))

    def _data_files(self, table: Any, number: int, votes_only: bool) -> Sequence[DataFileEntry]:
        """The files of rows of a snapshot. Raises Unsupported for one that is no Parquet, unless ``votes_only``."""
        entries = list(live_data_files(table, number)) if number else []
        others = [each.data_file for each in entries if not _is_parquet(each.data_file)]
        if others and not votes_only:
            raise Unsupported(
                f"{others[0].file_path} is of format {others[0].file_format}, and only Parquet is read: rewrite the "
                f"table at the source with write.format.default = parquet"
            )
        return [each for each in entries if _is_parquet(each.data_file)]

    def _number(self, table: Any, version: SourceVersionId) -> int:
        known = [int(snapshot.snapshot_id) for snapshot in table.snapshots()]
        if (found := next((number for number in known if str(number) == str(version)), None)) is None:
            raise InputError(f"to={version!r}: {self.url} has the snapshots {', '.join(map(str, known)) or 'none'}")
        return found

    def _load(self, votes_only: bool = False) -> tuple[Any, UnknownColumns]:
        """The table, and its columns of types that PyIceberg does not know."""
        try:
            import pyiceberg.catalog  # noqa: F401  # to say what is missing
        except ImportError as missing:
            raise InputError("an Iceberg table is read through PyIceberg: pip install pyiceberg") from missing
        try:
            if CATALOG_URL.fullmatch(self.url):
                return load_from_catalog(self.url)
            return load_metadata(metadata_location(self.url, self.options, votes_only), pyiceberg_options(self.options))
        except StorageError:
            raise
        except Exception as problem:  # PyIceberg's errors have no common base, and its catalogues bring their own
            raise StorageError(f"{self.url} cannot be read as an Iceberg table: {problem!r}") from problem


def _schema_name(schema: Any) -> str:
    """What tells the columns of a state: they change, and defaults of theirs, without a new snapshot."""
    return f"schema {schema.schema_id}"


def _is_parquet(file: Any) -> bool:
    return "PARQUET" in str(file.file_format).upper()
