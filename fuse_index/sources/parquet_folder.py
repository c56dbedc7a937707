"""A folder of Parquet files as a source: what is there when it is listed. Hive's folders are columns."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.ingest.input_files import InputFile, InputFormat, is_hidden, path_partition
from fuse_index.ingest.read_files import partition_columns, partition_value
from fuse_index.sources.source import SourceState, SourceVersionId, StoreOptions
from fuse_storage import (
    Advice,
    NotFound,
    ObjectMeta,
    SourceFile,
    StorageError,
    Unsupported,
    encode_default,
    list_strays,
    open_store,
)

_SUFFIXES = (".parquet", ".pq", ".parq")
_HUDI_HINT = "have Apache XTable write Delta or Iceberg metadata beside it, and attach that"
_OTHER_FORMATS = {"_delta_log/": "delta", "metadata/version-hint.text": "iceberg"}


@dataclass(frozen=True)
class ParquetFolder:
    """All files of a folder whose names say that they are Parquet, but for hidden ones (``_`` or a dot first)."""

    url: str
    options: StoreOptions = field(default_factory=dict)
    format: str = "parquet"

    @staticmethod
    def open(url: str, options: StoreOptions) -> ParquetFolder:
        return ParquetFolder(open_store(url, options).url, options)

    def location(self) -> str:
        return self.url

    def has_moved(self, version: SourceVersionId | None, etag: str | None) -> bool:
        return True  # a folder is listed to know, and a sync does not more

    def state(self, version: SourceVersionId | None = None, votes_only: bool = False) -> SourceState:
        if version is not None:
            raise InputError(f"to={version!r}: a folder has no versions; open the table at= one of its own snapshots")
        store = open_store(self.url, self.options)
        listed = sorted(store.list(), key=lambda meta: meta.key)
        if not listed and os.path.isfile(store.url):
            raise InputError(f"{self.url} is a file: attach the folder that it is in, or append its rows to a table")
        if not listed and "://" not in store.url and not os.path.isdir(store.url):
            raise NotFound(f"there is no folder {self.url}: bring it back, or attach the one where its files are now")
        for meta in listed:
            if meta.key.startswith("_refs/"):
                raise InputError(f"{self.url} is a table already, which can have indexes: open it, or clone it")
            if meta.key.startswith(".hoodie/"):
                raise Unsupported(f"{self.url} is a table of Hudi, of which some files are replaced: {_HUDI_HINT}")
            for prefix, format_ in _OTHER_FORMATS.items():
                if meta.key.startswith(prefix):
                    raise InputError(
                        f"{self.url} is a table of format {format_!r}: attach it with "
                        + Advice.argument("attach", format=format_)
                    )
        files = [meta for meta in listed if meta.key.lower().endswith(_SUFFIXES) and not is_hidden(meta.key)]
        if stray := next((key for key in list_strays(store) if key.lower().endswith(_SUFFIXES)), None):
            raise StorageError(f"{self.url}/{stray} is a link or a device, which is not followed: attach what it names")
        inputs = [self._input(meta) for meta in files]
        partitions = partition_columns(inputs, pa.schema([]))
        newest = max((meta.modified for meta in files), default=None)
        version = f"{len(files)} files, the last of {newest.isoformat()}" if newest else "no files"
        found = [self._file(meta, each, partitions) for meta, each in zip(files, inputs, strict=True)]
        return SourceState(version, found, None, partitions=partitions)

    def _input(self, meta: ObjectMeta) -> InputFile:
        partition = tuple(path_partition(meta.key))
        return InputFile(f"{self.url}/{meta.key}", InputFormat.parquet, _never_opened, meta.size, partition)

    def _file(self, meta: ObjectMeta, each: InputFile, partitions: pa.Schema) -> SourceFile:
        values = dict(each.partition)  # what other paths alone give may be a column of this file
        constants = {
            column.name: encode_default(partition_value(values[column.name], column, each).as_py())
            for column in partitions
            if column.name in values
        }
        return SourceFile(each.name, meta.size, round(meta.modified.timestamp() * 1_000_000), meta.etag, constants)


def _never_opened() -> Any:
    raise AssertionError("its rows are read as a block's")
