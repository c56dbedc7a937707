"""The formats of sources by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fuse_index.errors import InputError
from fuse_index.sources.delta.source import DeltaSource
from fuse_index.sources.iceberg.source import IcebergSource
from fuse_index.sources.parquet_folder import ParquetFolder
from fuse_index.sources.source import Source, StoreOptions
from fuse_storage import open_store

_OPENERS: Mapping[str, Callable[[str, StoreOptions], Source]] = {
    "parquet": ParquetFolder.open,
    "delta": DeltaSource.open,
    "iceberg": IcebergSource.open,
}

SOURCE_FORMATS = tuple(_OPENERS)


def open_source(format_: str, url: str, options: StoreOptions) -> Source:
    """The source at a path or URL; nothing is asked of it yet. Raises InputError for a format that is unknown."""
    if format_ not in _OPENERS:
        raise InputError(f"format={format_!r}: give {', '.join(SOURCE_FORMATS)}")
    return _OPENERS[format_](url, options)


def detect_format(url: str, options: StoreOptions) -> str:
    """The format of the source at a path or URL, by what lies there. Raises StorageError."""
    if url.startswith("iceberg://") or url.endswith(".metadata.json"):
        return "iceberg"
    if url.startswith("uc://"):
        return "delta"
    store = open_store(url, options)
    if next(iter(store.list("_delta_log")), None) is not None:
        return "delta"
    is_iceberg = any(meta.key.endswith(".metadata.json") for meta in store.list("metadata"))
    return "iceberg" if is_iceberg else "parquet"
