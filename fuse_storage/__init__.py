"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL."""

from fuse_storage.attach.set_source import (
    SetSource,
    SourceVersion,
    adopt_files,
    create_attached_table,
    first_attached_snapshot,
    set_source,
)
from fuse_storage.attach.source_columns import ColumnMatch, SourceColumn, mark_narrower, plain_source_columns
from fuse_storage.attach.stage_files import SourceFile, StagedFiles, open_source_files, stage_source_files
from fuse_storage.bounds import prefix_end
from fuse_storage.catalog.actions import (
    CatalogAction,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    PurgeTables,
    RenameTable,
    UndropTable,
    UpdateNamespace,
    UpdateTable,
)
from fuse_storage.catalog.history import NameEvent, name_history
from fuse_storage.catalog.names import Identifier, join_identifier, parse_identifier
from fuse_storage.catalog.new_table import NewTable, stage_table
from fuse_storage.catalog.purge import PurgedTable, purge_dropped, purge_table, same_table
from fuse_storage.catalog.state import CatalogState, CatalogTable, DroppedTable, Namespace
from fuse_storage.catalog.table_places import location_of, open_table_store
from fuse_storage.catalog.warehouse import Warehouse
from fuse_storage.commit.actions import AppendSegments, changed_column_names
from fuse_storage.commit.draft import keeps_rows
from fuse_storage.commit.replace_blocks import BlockReplacement, ReplaceBlocks
from fuse_storage.commit.schema_evolution import (
    SchemaChange,
    add_column,
    can_widen,
    change_type,
    drop_column,
    move_column,
    rename_column,
    set_comment,
    set_default,
    set_nullable,
)
from fuse_storage.commit.segment_writer import SegmentWriter, WriteOptions
from fuse_storage.commit.sidecar_writer import SidecarBuilder, SidecarWriter
from fuse_storage.commit.table_keys import cluster_by, cluster_column_ids, is_exact_type, key_by
from fuse_storage.commit.transaction import Transaction
from fuse_storage.deletion.live_rows import (
    are_worn,
    is_worn,
    leave_out_deleted,
    live_among,
    live_row_masks,
    read_live_rows,
)
from fuse_storage.deletion.stage_deletions import stage_deletions
from fuse_storage.errors import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Corrupt,
    Expired,
    FormatError,
    InvalidArgument,
    NotEmpty,
    NotFound,
    ReadOnly,
    SchemaError,
    StorageError,
    TailFull,
    Unsupported,
)
from fuse_storage.hot.tail import tail_files, tail_times
from fuse_storage.hot_commit.append import append_hot
from fuse_storage.hot_commit.snapshot_of import snapshot_of
from fuse_storage.location import (
    DELETE_MODES,
    HOT_PROPERTIES,
    KNOWN_PROPERTIES,
    export_formats,
    update_properties,
)
from fuse_storage.maintenance.branches import (
    create_branch,
    drop_branch,
    fast_forward_branch,
    is_ancestor,
    list_branches,
    restore_snapshot,
)
from fuse_storage.maintenance.clone import clone_table
from fuse_storage.maintenance.diff import BlockTotals, SnapshotDiff, changed_blocks, diff_snapshots, narrowed_columns
from fuse_storage.maintenance.recover_refs import Recovery, recover_branches
from fuse_storage.maintenance.vacuum import VacuumResult, vacuum_table
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.file_ref import FileRef, new_id
from fuse_storage.metadata.metadata_table import ranges_to_indices
from fuse_storage.metadata.pack import Pack, PackSlice, Sidecar, add_checksums
from fuse_storage.metadata.refs import MAIN_BRANCH, RefEntry
from fuse_storage.metadata.segment import StagedSegment, TailTotals
from fuse_storage.metadata.segment_frame import ScanUnits, SegmentFrame, UnitFrame, ZoneFrame
from fuse_storage.metadata.sidecar import SidecarRows, StagedSidecars
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, Snapshot
from fuse_storage.metadata.tags import Tag, drop_tag, list_tags
from fuse_storage.parquet.footer import FIRST_ZONE_OFFSET
from fuse_storage.parquet.foreign.file import modified_microseconds
from fuse_storage.parquet.foreign.file_schema import merge_file_schemas, read_file_schema, storable_schema
from fuse_storage.parquet.foreign.footer import OpenedFile
from fuse_storage.parquet.untrusted import read_untrusted_parquet
from fuse_storage.schema.conform import conform_rows
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.types import SPARK_TYPES_BY_NAME, decode_constant, encode_default
from fuse_storage.statistics import ColumnStatistics, chunked_to_array, column_values, compute_statistics
from fuse_storage.store.abilities import list_strays
from fuse_storage.store.cache import Cache, cache_columns, cache_of, process_cache
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import SHARED_PLACES_OPTION, Store, open_store
from fuse_storage.store.wrappers import CachedStore, MeteredStore, ReadOnlyStore, meter_requests
from fuse_storage.table import StoredTable

__all__ = [
    "FIRST_ZONE_OFFSET",
    "CLUSTER_METHODS",
    "DELETE_MODES",
    "HOT_PROPERTIES",
    "KNOWN_PROPERTIES",
    "MAIN_BRANCH",
    "SHARED_PLACES_OPTION",
    "SPARK_TYPES_BY_NAME",
    "AlreadyExists",
    "AppendSegments",
    "BlockFrame",
    "ColumnMatch",
    "OpenedFile",
    "ReplaceBlocks",
    "SetSource",
    "SourceColumn",
    "SourceFile",
    "SourceVersion",
    "StagedFiles",
    "adopt_files",
    "plain_source_columns",
    "create_attached_table",
    "first_attached_snapshot",
    "mark_narrower",
    "merge_file_schemas",
    "modified_microseconds",
    "open_source_files",
    "read_file_schema",
    "set_source",
    "snapshot_of",
    "stage_source_files",
    "storable_schema",
    "BlockReplacement",
    "BlockTotals",
    "Cache",
    "CachedStore",
    "CatalogAction",
    "CatalogState",
    "CatalogTable",
    "ColumnStatistics",
    "CommitUnknown",
    "Conflict",
    "Corrupt",
    "CreateNamespace",
    "CreateTable",
    "DropNamespace",
    "DropTable",
    "DroppedTable",
    "Expired",
    "Field",
    "FileRef",
    "FormatError",
    "Identifier",
    "InvalidArgument",
    "MeteredStore",
    "NameEvent",
    "Namespace",
    "NewTable",
    "NotEmpty",
    "NotFound",
    "ObjectMeta",
    "Pack",
    "PackSlice",
    "PurgeTables",
    "PurgedTable",
    "ReadOnly",
    "ReadOnlyStore",
    "Recovery",
    "RefEntry",
    "RenameTable",
    "ScanUnits",
    "Schema",
    "SchemaChange",
    "SchemaError",
    "SegmentFrame",
    "SegmentWriter",
    "Sidecar",
    "SidecarBuilder",
    "SidecarRows",
    "SidecarWriter",
    "Snapshot",
    "SnapshotDiff",
    "StagedSegment",
    "StagedSidecars",
    "StorageError",
    "Store",
    "StoredTable",
    "Tag",
    "TailFull",
    "TailTotals",
    "Transaction",
    "UndropTable",
    "UnitFrame",
    "Unsupported",
    "UpdateNamespace",
    "UpdateTable",
    "VacuumResult",
    "Warehouse",
    "WriteOptions",
    "ZoneFrame",
    "add_checksums",
    "add_column",
    "append_hot",
    "cache_columns",
    "cache_of",
    "can_widen",
    "change_type",
    "changed_blocks",
    "changed_column_names",
    "chunked_to_array",
    "clone_table",
    "cluster_by",
    "cluster_column_ids",
    "column_values",
    "compute_statistics",
    "conform_rows",
    "create_branch",
    "diff_snapshots",
    "drop_branch",
    "drop_column",
    "decode_constant",
    "drop_tag",
    "encode_default",
    "export_formats",
    "list_strays",
    "fast_forward_branch",
    "is_ancestor",
    "is_exact_type",
    "join_identifier",
    "keeps_rows",
    "key_by",
    "are_worn",
    "is_worn",
    "leave_out_deleted",
    "list_branches",
    "list_tags",
    "live_among",
    "live_row_masks",
    "location_of",
    "meter_requests",
    "move_column",
    "name_history",
    "narrowed_columns",
    "new_id",
    "open_store",
    "open_table_store",
    "parse_identifier",
    "prefix_end",
    "process_cache",
    "purge_dropped",
    "purge_table",
    "ranges_to_indices",
    "read_live_rows",
    "read_untrusted_parquet",
    "recover_branches",
    "rename_column",
    "set_comment",
    "set_default",
    "set_nullable",
    "restore_snapshot",
    "same_table",
    "stage_deletions",
    "stage_table",
    "tail_files",
    "tail_times",
    "update_properties",
    "vacuum_table",
]
