"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL."""

from fuse_storage.block_frames import Blocks, Zones
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
from fuse_storage.frames import SegmentList, Units
from fuse_storage.metered import Metered, metered
from fuse_storage.objects import Object
from fuse_storage.packs import Pack, PackPayload, Sidecar, seal
from fuse_storage.references import Reference
from fuse_storage.refs import RefEntry, Tag
from fuse_storage.schema import Field, Schema
from fuse_storage.segments import StagedSegment
from fuse_storage.sidecar_writing import SidecarBuilder, SidecarWriter
from fuse_storage.sidecars import SidecarRows, StagedSidecars
from fuse_storage.snapshots import Snapshot
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.statistics import compute as compute_statistics
from fuse_storage.store import Store, open_store
from fuse_storage.table import Table
from fuse_storage.transaction import Transaction
from fuse_storage.writing import SegmentWriter

__all__ = [
    "AlreadyExists", "Blocks", "Cache", "ColumnStatistics", "CommitUnknown", "Conflict", "Corrupt", "Expired", "Field",
    "FormatError", "Metered", "NotFound", "Object", "Pack", "PackPayload", "RefEntry", "Reference", "Schema", "SchemaError",
    "SegmentList", "SegmentWriter", "Sidecar", "SidecarBuilder", "SidecarRows", "SidecarWriter", "Snapshot", "StagedSegment",
    "StagedSidecars", "StorageError", "Store", "Table", "Tag", "Transaction", "Units", "Unsupported", "Zones",
    "compute_statistics", "metered", "open_store", "seal", "shared",
]  # fmt: skip
