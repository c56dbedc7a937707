"""The formats of sources by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fuse_index.errors import InputError
from fuse_index.sources.delta import DeltaSource
from fuse_index.sources.iceberg import IcebergSource
from fuse_index.sources.parquet_folder import ParquetFolder
from fuse_index.sources.source import Source, StoreOptions

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
