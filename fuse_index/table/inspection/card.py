"""A table as a card: its columns, its indexes and its last commits, within bounds, however large it is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import fuse_storage as storage
from fuse_index.handle import TableHandle
from fuse_index.indexes.definition import load_definitions
from fuse_index.table.inspection.describe_indexes import describe_indexes
from fuse_storage import Shown, StorageError, missing_names, show_line, value_grid

MAX_BLOCKS_LOOKED_AT, MAX_COMMITS = 1_000, 5
"""Bounds: above so many blocks coverage and sizes of indexes are not looked up, and so many commits are shown."""


_OTHERS_NAMES: Mapping[str, str] = (
    dict.fromkeys(("optimize", "bin_pack"), "say table.maintenance.compact()")
    | dict.fromkeys(("expire", "expire_snapshots", "clean", "gc"), "say table.maintenance.vacuum()")
    | dict.fromkeys(("zorder", "cluster"), "say table.cluster_by(columns), and table.maintenance.recluster()")
    | dict.fromkeys(("analyze", "refresh_statistics"), "every write keeps statistics: there is nothing to do")
    | dict.fromkeys(("reindex", "build_index"), "say table.maintenance.rebuild_index(name)")
    | dict.fromkeys(("tags", "branches"), "say table.inspect.refs()")
    | {"history": "say table.history()", "schema": "say table.schema", "stats": "say table.inspect.statistics()"}
)


class TablePart(Shown):
    """A part of a table by a name of its own, which shows what it can do."""

    if not TYPE_CHECKING:  # so that mypy knows what is not there
        __getattr__ = missing_names(_OTHERS_NAMES)

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def __repr__(self) -> str:
        return show_line(type(self).__name__, {}, self._table.name or self._table.stored.store.url)

    def _facts(self) -> Mapping[str, Any]:
        methods = inspect.getmembers(type(self), inspect.isfunction)
        return {
            f"{name}()": (inspect.getdoc(method) or "").partition("\n")[0]
            for name, method in methods
            if not name.startswith("_")
        }


def table_facts(table: TableHandle) -> Mapping[str, Any]:
    """What a table is, in short."""
    snapshot = table.snapshot
    return {
        "branch": table.stored.branch,
        "version": snapshot.version,
        "rows": snapshot.row_count,
        "blocks": snapshot.block_count,
        "bytes": snapshot.bytes,
        "key": snapshot.key,
        "clustered by": snapshot.cluster_by,
    }


def table_sections(table: TableHandle) -> Iterator[str]:
    """HTML of columns, indexes and commits; a store that fails leaves its sentence."""
    yield _columns(table)
    for show in (index_section, _commits):
        try:
            yield show(table)
        except StorageError as problem:
            yield value_grid(["problem"], [[str(problem)]])


def _columns(table: TableHandle) -> str:
    snapshot = table.snapshot
    rows = [
        [field.name, str(field.type), "" if field.nullable else "NOT NULL", field.comment or ""]
        for field in snapshot.schema.fields
    ]
    return value_grid(["column", "type", "", "comment"], rows, len(rows), "Columns", "columns")


def index_section(table: TableHandle, title: str = "Indexes") -> str:
    """The indexes as HTML, with what they cover where that is soon known; empty where there are none."""
    if not table.snapshot.definitions:
        return ""
    if table.snapshot.block_count > MAX_BLOCKS_LOOKED_AT:
        found = load_definitions(table.snapshot, table.host)
        named = [[each.name, each.kind, ", ".join(each.columns)] for each in found]
        return value_grid(["index", "kind", "columns"], named, len(named), title, "indexes")
    rows = [
        [
            row["name"],
            row["kind"],
            ", ".join(row["columns"]),
            f"{row['blocks_indexed']:,} of {row['blocks']:,}",
            storage.bytes_text((row["summary_bytes"] or 0) + (row["payload_bytes"] or 0)),
            row["problem"] or "",
        ]
        for row in describe_indexes(table.stored, table.host).to_pylist()
    ]
    return value_grid(["index", "kind", "columns", "blocks", "size", "problem"], rows, len(rows), title, "indexes")


def _commits(table: TableHandle) -> str:
    rows = [
        [entry.version, entry.timestamp, entry.operation, None if state is None else state.row_count]
        for entry, state in table.stored.snapshots(MAX_COMMITS)
    ]
    return value_grid(["version", "time", "operation", "rows"], rows, table.snapshot.version, "Commits", "commits")
