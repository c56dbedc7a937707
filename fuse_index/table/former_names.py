"""Methods that ``fuse_index.Table`` had: they work for one more version, and say once where they went."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.operations.compact import start_compaction
from fuse_index.operations.recluster import start_reclustering
from fuse_index.table.indexes import plan_index_tasks
from fuse_index.table.tier import start_tiering
from fuse_storage import missing_name

_INSPECTING = (
    "blocks",
    "clustering",
    "columns",
    "files",
    "indexes",
    "partitions",
    "refs",
    "segments",
    "snapshots",
    "statistics",
    "suggest",
)
_MAINTAINING = ("compact", "rebuild_index", "recluster", "refresh_index", "tier", "vacuum", "verify_index")


def _builders(table: TableHandle) -> tuple[IndexBuilder, ...]:
    return index_builders(table.snapshot, table.host)


_FUNCTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "builders": ("fuse_index.indexes.builder.index_builders", _builders),
    "compacting": ("fuse_index.operations.compact.start_compaction", start_compaction),
    "index_tasks": ("fuse_index.table.indexes.plan_index_tasks", plan_index_tasks),
    "reclustering": ("fuse_index.operations.recluster.start_reclustering", start_reclustering),
    "tiering": ("fuse_index.table.tier.start_tiering", start_tiering),
}
"""Functions of a table that were methods, by their former names: where they are, and what takes the table first."""

FORMER_NAMES: Mapping[str, str] = (
    {name: f"table.inspect.{name}" for name in _INSPECTING}
    | {"inspect_index": "table.inspect.index"}
    | {name: f"table.maintenance.{name}" for name in _MAINTAINING}
    | {name: place for name, (place, _) in _FUNCTIONS.items()}
)
"""Where the methods are now, by their former names."""

_SCANNED = "rows are read by table.scan(where, columns), such as table.scan('id = 1').to_polars()"
OTHERS_NAMES: Mapping[str, str] = (
    dict.fromkeys(("read", "where", "filter", "select", "query", "collect", "to_df", "rows", "find"), _SCANNED)
    | dict.fromkeys(("insert", "write", "add", "ingest", "insert_into", "put"), "rows are added by table.append(rows)")
    | dict.fromkeys(("optimize", "bin_pack", "rewrite"), "table.maintenance.compact() joins small blocks")
    | dict.fromkeys(("add_index", "build_index", "index"), "say table.create_index(name, kind, columns)")
    | dict.fromkeys(("drop", "drop_table", "remove"), "catalog.drop_table(name) drops a table that has a name")
    | dict.fromkeys(("versions", "log", "commits"), "table.history() lists the commits")
    | dict.fromkeys(("columns", "dtypes", "fields"), "table.schema has the columns")
    | dict.fromkeys(("alter", "alter_column"), "add_column, drop_column, rename_column and change_type change columns")
    | {
        "show": "table.head(10) reads some rows",
        "truncate": "table.delete('TRUE') deletes all rows",
        "toPandas": "say table.to_pandas()",
        "sql": "Spark, DuckDB and Polars speak SQL: duckdb.sql('SELECT … FROM table') takes a table",
        "expire_snapshots": "table.maintenance.vacuum() collects what is old",
        "create_tag": "say table.tag(name)",
        "create_branch": "say table.branch(name)",
        "rollback": "say table.restore(version)",
        "num_rows": "say table.count()",
        "path": "say table.stored.store.url",
    }
)
"""What other libraries call it, and how it is done here."""

_warned: set[str] = set()


def former_method(table: TableHandle, name: str) -> Callable[..., Any]:
    """Find the method that a table once had by this name, and warn once that it moved. Raises AttributeError."""
    if (place := FORMER_NAMES.get(name)) is None:
        meant = f": {OTHERS_NAMES[name]}" if name in OTHERS_NAMES else ""
        raise missing_name(f"{type(table).__name__!r} object has no attribute {name!r}{meant}", name, table)
    if name not in _warned:
        warnings.warn(f"Table.{name} moved: call {place}", DeprecationWarning, stacklevel=3)
        _warned.add(name)
    if name in _FUNCTIONS:
        return partial(_FUNCTIONS[name][1], table)
    found: Callable[..., Any] = attrgetter(place.removeprefix("table."))(table)
    return found
