"""Lakehouse tables on plain Parquet, with secondary indexes written in Python.

    import fuse_index as fuse

    table = fuse.create_table("/data/events", "id BIGINT, email STRING")
    table.append(rows)
    table.create_index("by_email", "bloom", ["email"])
    table.scan("email = 'ann@example.com'").to_arrow()

For Spark: ``from fuse_index import spark``. For authors of index kinds: ``fuse_index.plugin``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fuse_storage import lazy_names, set_source_options

if TYPE_CHECKING:
    from fuse_index.errors import (
        BuildError,
        DefinitionError,
        FuseIndexError,
        IndexFault,
        InputError,
        OpaqueError,
        WhereError,
    )
    from fuse_index.export.keep_up import ExportWarning
    from fuse_index.indexes.registry import Host, PluginWarning
    from fuse_index.ingest.read_files import read_files
    from fuse_index.operations.verify_index import Verification
    from fuse_index.predicate import Context
    from fuse_index.pruning.calls.switches import indexes_off
    from fuse_index.pruning.explanation import Explanation
    from fuse_index.query.scan import Scan
    from fuse_index.signals.counters import Counters
    from fuse_index.signals.listeners import listen
    from fuse_index.sources.prune import prune_files
    from fuse_index.sources.sync import LeftOutWarning, SyncResult
    from fuse_index.table.open import attach, create_table, open_table, recover_table
    from fuse_index.table.read import scan_polars
    from fuse_index.table.table import Table
    from fuse_index.table.tier import Tail
    from fuse_index.warehouse.catalog import Catalog, catalog
    from fuse_storage import (
        Advice,
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
        SchemaError,
        Snapshot,
        StorageError,
        TailFull,
        Unsupported,
        VotesOnly,
        cache_columns,
    )
else:
    _open = "open_table(place), or catalog(warehouse).load_table(name)"
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(("open", "load", "load_table", "DeltaTable", "table"), f"a table is opened by {_open}"),
            **dict.fromkeys(("connect", "load_catalog", "Database"), "a warehouse is opened by catalog(place)"),
            **dict.fromkeys(("read", "scan", "read_table"), "rows are read by open_table(place).scan(where)"),
            **dict.fromkeys(("write", "write_table", "append"), "rows are added by open_table(place).append(rows)"),
            **dict.fromkeys(("create", "new"), "a table is made by create_table(place, columns)"),
            **dict.fromkeys(("read_csv", "read_parquet"), "files are read by read_files(paths)"),
        },
    )


def _catalog_options(source: str) -> Mapping[str, str]:
    from fuse_index.sources.iceberg.credentials import catalog_options

    return catalog_options(source)


set_source_options("iceberg", _catalog_options)  # wherever files of a table are read, in workers of Spark, too

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "AlreadyExists",
    "BuildError",
    "Catalog",
    "CodedError",
    "CommitUnknown",
    "Conflict",
    "Context",
    "Corrupt",
    "Counters",
    "DefinitionError",
    "Expired",
    "Explanation",
    "ExportWarning",
    "LeftOutWarning",
    "FormatError",
    "FuseIndexError",
    "Host",
    "IndexFault",
    "InputError",
    "InvalidArgument",
    "NotEmpty",
    "NotFound",
    "OpaqueError",
    "PluginWarning",
    "ReadOnly",
    "Scan",
    "SchemaError",
    "Snapshot",
    "StorageError",
    "SyncResult",
    "Table",
    "Tail",
    "TailFull",
    "Unsupported",
    "Verification",
    "VotesOnly",
    "WhereError",
    "attach",
    "cache_columns",
    "catalog",
    "create_table",
    "indexes_off",
    "listen",
    "open_table",
    "prune_files",
    "read_files",
    "recover_table",
    "scan_polars",
]
