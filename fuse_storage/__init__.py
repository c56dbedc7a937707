"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL."""

from fuse_storage.cache import Cache, shared
from fuse_storage.errors import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Corrupt,
    Expired,
    FormatError,
    NotFound,
    SchemaError,
    StorageError,
    Unsupported,
)  # fmt: skip
from fuse_storage.metered import Metered, metered
from fuse_storage.objects import Object
from fuse_storage.packs import Pack, PackPayload, Sidecar, seal
from fuse_storage.schema import Field, Schema
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.statistics import compute as compute_statistics
from fuse_storage.store import Store, open_store

__all__ = [
    "AlreadyExists", "Cache", "ColumnStatistics", "CommitUnknown", "Conflict", "Corrupt", "Expired", "Field",
    "FormatError", "Metered", "NotFound", "Object", "Pack", "PackPayload", "Schema", "SchemaError", "Sidecar", "StorageError",
    "Store", "Unsupported", "compute_statistics", "metered", "open_store", "seal", "shared",
]  # fmt: skip
