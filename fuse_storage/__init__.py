"""A table on plain Parquet files, kept the way Git keeps files. Knows no index, no Spark and no SQL.

The front door, by which the engine enters: what is imported for types is here for everybody, once it is asked for.
"""

from typing import TYPE_CHECKING

from fuse_storage.front_door import lazy_names, missing_name, missing_names

if TYPE_CHECKING:
    from fuse_storage.attach.known_files import KnownFile, known_files
    from fuse_storage.attach.set_source import (
        SetSource,
        SourceChoice,
        SourceVersion,
        adopt_files,
        create_attached_table,
        first_attached_snapshot,
        has_page_zones,
        set_source,
    )
    from fuse_storage.attach.source_columns import (
        ColumnMatch,
        SourceColumn,
        evolve_to,
        mark_narrower,
        plain_source_columns,
        variant_types,
    )
    from fuse_storage.attach.source_files import UNKNOWABLE, SharedKeys, SourceFile, open_source_files
    from fuse_storage.attach.stage_files import FileRules, StagedFiles, reads_as_logged, stage_source_files
    from fuse_storage.bitmaps import pack_mask, unpack_mask
    from fuse_storage.bounds import extremes, prefix_end, truncate_bounds
    from fuse_storage.card import (
        CARD_STYLE,
        MAX_GRID_COLUMNS,
        MAX_GRID_ROWS,
        Shown,
        bytes_text,
        show_card,
        show_line,
        value_grid,
        value_text,
    )
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
    from fuse_storage.commit.actions import AppendSegments, OverwriteSegments, changed_column_names
    from fuse_storage.commit.draft import keeps_rows
    from fuse_storage.commit.head import commits_checked_by
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
    from fuse_storage.commit.table_keys import (
        PrimaryKey,
        cluster_by,
        cluster_column_ids,
        is_exact_type,
        key_by,
    )
    from fuse_storage.commit.transaction import Transaction, said_of_commits
    from fuse_storage.deletion.live_rows import (
        are_worn,
        is_worn,
        leave_out_deleted,
        live_among,
        live_row_masks,
        read_live_rows,
        stored_blocks,
    )
    from fuse_storage.deletion.stage_deletions import stage_deletions
    from fuse_storage.errors import (
        EXTERNAL_ERROR,
        AlreadyExists,
        CodedError,
        CommitUnknown,
        Conflict,
        Corrupt,
        Expired,
        FormatError,
        InvalidArgument,
        NotEmpty,
        NotFound,
        ReadOnly,
        RepeatedKey,
        SchemaError,
        StorageError,
        TailFull,
        Unsupported,
        VotesOnly,
    )
    from fuse_storage.errors.sentence import Advice, Operation, Sentence, TableUrl, Words
    from fuse_storage.hot.tail import tail_changes, tail_files, tail_times
    from fuse_storage.hot_commit.append import append_hot
    from fuse_storage.hot_commit.delete import WholeBlocks, delete_blocks
    from fuse_storage.hot_commit.put import (
        StagedPuts,
        check_keys_once,
        commit_puts,
        key_schema_of,
        last_of_each_key,
        put_rows,
        stage_puts,
    )
    from fuse_storage.hot_commit.snapshot_of import snapshot_of
    from fuse_storage.location import (
        DELETE_MODES,
        HOT_PROPERTIES,
        KNOWN_PROPERTIES,
        VOTES_PROPERTIES,
        export_formats,
        first_snapshot,
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
    from fuse_storage.maintenance.diff import (
        BlockTotals,
        SnapshotDiff,
        changed_blocks,
        diff_snapshots,
        narrowed_columns,
    )
    from fuse_storage.maintenance.key_operations import KeyOperations, key_operations, state_before
    from fuse_storage.maintenance.lease import upkeep_lease
    from fuse_storage.maintenance.recover_refs import Recovery, recover_branches
    from fuse_storage.maintenance.replace_table import (
        abort_replacement,
        can_be_replaced,
        commit_replacement,
        stage_replacement,
    )
    from fuse_storage.maintenance.upkeep_record import first_commit_time, record_upkeep, upkeep_record
    from fuse_storage.maintenance.vacuum import VacuumResult, vacuum_table
    from fuse_storage.metadata.block_frame import BlockFrame
    from fuse_storage.metadata.file_ref import FileRef, id_time, new_id
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
    from fuse_storage.parquet.foreign.file_schema import (
        FileColumns,
        file_columns,
        merge_file_schemas,
        read_file_schema,
    )
    from fuse_storage.parquet.foreign.footer import OpenedFile
    from fuse_storage.parquet.foreign.variants import WITHOUT_SHREDDING_HINT, told_variants
    from fuse_storage.parquet.pages import RowMask
    from fuse_storage.parquet.untrusted import read_untrusted_parquet
    from fuse_storage.partitions.check import staged_partitions
    from fuse_storage.partitions.spec import PARTITION_PROPERTY, PartitionSpec
    from fuse_storage.primary_key.hidden_rows import NOT_IN_TAIL, HotKeys, find_in_tail, hot_keys_since, tail_keys
    from fuse_storage.primary_key.key_sets import SoughtKeys, key_table, places_of_keys
    from fuse_storage.primary_key.row_rules import is_keyed, row_rules
    from fuse_storage.schema.castable import castable_type, to_castable
    from fuse_storage.schema.conform import conform_rows
    from fuse_storage.schema.given_values import check_uncut, describe_given, scalar_of_type
    from fuse_storage.schema.nested_arrays import (
        child_arrays,
        empty_table,
        holds_variant,
        map_variants,
        of_child_arrays,
        repeat_scalar,
        type_without_variants,
    )
    from fuse_storage.schema.schema import Field, Schema
    from fuse_storage.schema.types import SPARK_TYPES_BY_NAME, decode_constant, encode_default
    from fuse_storage.schema.variant import VARIANT, VARIANT_STORAGE, is_variant, to_variants
    from fuse_storage.schema.variant_bytes import (
        VARIANT_OBJECT,
        MalformedVariant,
        array_bytes,
        array_places,
        binary_bytes,
        byte_slice,
        little_endian,
        metadata_of_names,
        name_order,
        names_of_metadata,
        object_bytes,
        object_parts,
        text_bytes,
    )
    from fuse_storage.source_options import set_source_options
    from fuse_storage.statistics import ColumnStatistics, chunked_to_array, column_values, compute_statistics
    from fuse_storage.store.abilities import list_keys_after, list_strays, object_meta
    from fuse_storage.store.cache import Cache, cache_columns, cache_of, process_cache
    from fuse_storage.store.ranges import ObjectMeta
    from fuse_storage.store.shared_files import resolve_foreign_store
    from fuse_storage.store.store import SHARED_PLACES_OPTION, Store, open_store, set_store_defaults
    from fuse_storage.store.wrappers import CachedStore, MeteredStore, ReadOnlyStore, meter_requests
    from fuse_storage.table import StoredTable
    from fuse_storage.validation.durations import check_duration, is_duration, parse_duration_text
    from fuse_storage.validation.maintenance_policy import (
        AFTER_COMMIT_TASKS,
        MAINTENANCE_PROPERTIES,
        MAINTENANCE_TASKS,
        MaintenancePolicy,
        parse_size_text,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
