"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL."""

from fuse_storage.block_frames import Blocks, Zones
from fuse_storage.branching import branches, create_branch, drop_branch, fast_forward, leads_to, restore
from fuse_storage.cache import Cache, shared
from fuse_storage.cloning import clone
from fuse_storage.conform import conform as conformed
from fuse_storage.differences import Difference, Extent, difference, exchanged, narrowed
from fuse_storage.errors import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Corrupt,
    Expired,
    FormatError,
    InvalidArgument,
    NotFound,
    ReadOnly,
    SchemaError,
    StorageError,
    Unsupported,
)  # fmt: skip
from fuse_storage.evolution import (
    Step,
    add_column,
    change_type,
    cluster_by,
    cluster_ids,
    drop_column,
    exact,
    key_by,
    move_column,
    rename_column,
)  # fmt: skip
from fuse_storage.frames import SegmentList, Units
from fuse_storage.metered import Metered, metered
from fuse_storage.objects import Object
from fuse_storage.packs import Pack, PackPayload, Sidecar, seal
from fuse_storage.read_only import ReadOnlyStore
from fuse_storage.recovery import Recovery, recover
from fuse_storage.references import Reference, new_id
from fuse_storage.refs import RefEntry
from fuse_storage.rewriting import Swap
from fuse_storage.schema import Field, Schema
from fuse_storage.segments import StagedSegment
from fuse_storage.sidecar_writing import SidecarBuilder, SidecarWriter
from fuse_storage.sidecars import SidecarRows, StagedSidecars
from fuse_storage.snapshots import CLUSTER_METHODS, Snapshot
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.statistics import compute as compute_statistics
from fuse_storage.statistics import leaf as column_values
from fuse_storage.store import Store, open_store
from fuse_storage.table import Table
from fuse_storage.tags import Tag, drop_tag, tags
from fuse_storage.transaction import Transaction
from fuse_storage.vacuum import Litter
from fuse_storage.vacuum import vacuum as collect
from fuse_storage.writing import Limits, SegmentWriter

__all__ = [
    "AlreadyExists", "Blocks", "CLUSTER_METHODS", "Cache", "ColumnStatistics", "CommitUnknown", "Conflict", "Corrupt",
    "Difference", "Expired", "Extent", "Field", "FormatError", "InvalidArgument", "Limits", "Litter", "Metered", "NotFound",
    "Object", "Pack", "PackPayload", "ReadOnly", "ReadOnlyStore", "Recovery", "RefEntry", "Reference", "Schema", "SchemaError",
    "SegmentList", "SegmentWriter", "Sidecar", "SidecarBuilder", "SidecarRows", "SidecarWriter", "Snapshot", "StagedSegment",
    "StagedSidecars", "Step", "StorageError", "Store", "Swap", "Table", "Tag", "Transaction", "Units", "Unsupported", "Zones",
    "add_column", "branches", "change_type", "clone", "cluster_by", "cluster_ids", "collect", "column_values",
    "compute_statistics", "conformed", "create_branch", "difference", "drop_branch", "drop_column", "drop_tag", "exact", "exchanged",
    "fast_forward", "key_by", "leads_to", "metered", "move_column", "narrowed", "new_id", "open_store", "recover", "rename_column",
    "restore", "seal", "shared", "tags",
]  # fmt: skip
