"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL."""

from fuse_storage.commit.replace_blocks import Swap
from fuse_storage.commit.schema_evolution import (
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
)
from fuse_storage.commit.segment_writer import Limits, SegmentWriter
from fuse_storage.commit.transaction import Transaction
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
)
from fuse_storage.maintenance.branches import branches, create_branch, drop_branch, fast_forward, leads_to, restore
from fuse_storage.maintenance.clone import clone
from fuse_storage.maintenance.diff import Difference, Extent, difference, exchanged, narrowed
from fuse_storage.maintenance.recover_refs import Recovery, recover
from fuse_storage.maintenance.vacuum import Litter
from fuse_storage.maintenance.vacuum import vacuum as collect
from fuse_storage.metadata.block_frame import Blocks, Zones
from fuse_storage.metadata.file_ref import Reference, new_id
from fuse_storage.metadata.pack import Pack, PackPayload, Sidecar, seal
from fuse_storage.metadata.refs import RefEntry
from fuse_storage.metadata.segment import StagedSegment
from fuse_storage.metadata.segment_frame import SegmentList, Units
from fuse_storage.metadata.sidecar import SidecarRows, StagedSidecars
from fuse_storage.metadata.sidecar_writer import SidecarBuilder, SidecarWriter
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, Snapshot
from fuse_storage.metadata.tags import Tag, drop_tag, tags
from fuse_storage.schema.conform import conform as conformed
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.statistics import compute as compute_statistics
from fuse_storage.statistics import leaf as column_values
from fuse_storage.store.cache import Cache, shared
from fuse_storage.store.ranges import Object
from fuse_storage.store.store import Store, open_store
from fuse_storage.store.wrappers import Metered, ReadOnlyStore, metered
from fuse_storage.table import Table

__all__ = [
    "AlreadyExists",
    "Blocks",
    "CLUSTER_METHODS",
    "Cache",
    "ColumnStatistics",
    "CommitUnknown",
    "Conflict",
    "Corrupt",
    "Difference",
    "Expired",
    "Extent",
    "Field",
    "FormatError",
    "InvalidArgument",
    "Limits",
    "Litter",
    "Metered",
    "NotFound",
    "Object",
    "Pack",
    "PackPayload",
    "ReadOnly",
    "ReadOnlyStore",
    "Recovery",
    "RefEntry",
    "Reference",
    "Schema",
    "SchemaError",
    "SegmentList",
    "SegmentWriter",
    "Sidecar",
    "SidecarBuilder",
    "SidecarRows",
    "SidecarWriter",
    "Snapshot",
    "StagedSegment",
    "StagedSidecars",
    "Step",
    "StorageError",
    "Store",
    "Swap",
    "Table",
    "Tag",
    "Transaction",
    "Units",
    "Unsupported",
    "Zones",
    "add_column",
    "branches",
    "change_type",
    "clone",
    "cluster_by",
    "cluster_ids",
    "collect",
    "column_values",
    "compute_statistics",
    "conformed",
    "create_branch",
    "difference",
    "drop_branch",
    "drop_column",
    "drop_tag",
    "exact",
    "exchanged",
    "fast_forward",
    "key_by",
    "leads_to",
    "metered",
    "move_column",
    "narrowed",
    "new_id",
    "open_store",
    "recover",
    "rename_column",
    "restore",
    "seal",
    "shared",
    "tags",
]
