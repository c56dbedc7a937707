"""Exports that are kept up: after each commit, in the formats that a table's property ``exports`` names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from fuse_index.ingest.schema_merge import evolved_table, schema_merge
from fuse_storage import (
    MAIN_BRANCH,
    Conflict,
    InvalidArgument,
    SchemaChange,
    SchemaError,
    StoredTable,
    export_formats,
)

if TYPE_CHECKING:
    from fuse_index.export.live_files import TableFormat


def _to_delta(table: StoredTable) -> int:
    from fuse_index.export.delta import export_delta  # which few tables need, and each worker of Spark would pay for

    return export_delta(table)


def _to_iceberg(table: StoredTable) -> str:
    from fuse_index.export.iceberg import export_iceberg

    return export_iceberg(table)


def _formats() -> Mapping[str, TableFormat]:
    from fuse_index.export.delta_schema import DELTA_FORMAT
    from fuse_index.export.iceberg_schema import ICEBERG_FORMAT

    return {"delta": DELTA_FORMAT, "iceberg": ICEBERG_FORMAT}


_EXPORTS: Mapping[str, Callable[[StoredTable], int | str]] = {"delta": _to_delta, "iceberg": _to_iceberg}
_TRIES = 5
"""How often an export is tried that others are faster with: what they write is as new."""


class ExportWarning(UserWarning):
    """A commit was made, and an export of it that is to be kept up was not; the message says why."""


def check_exports(table: StoredTable, step: SchemaChange) -> None:
    """Refuse a change of columns or properties after which an export that is kept up could no longer be made.

    Raises SchemaError, which says what the format cannot say.
    """
    evolved = evolved_table(table, step)
    for name in _kept_formats(evolved):
        problem = _hindrance(evolved, name)
        if problem is not None and (name not in _kept_formats(table) or _hindrance(table, name) is None):
            raise problem


def merge_columns(rows: pa.Schema, table: StoredTable) -> SchemaChange | None:
    """Make the step by which rows of this schema fit a table, as ``schema_merge``, and no export is lost by it.

    Raises SchemaError, as ``check_exports`` too, and DefinitionError.
    """
    step = schema_merge(rows, table.snapshot)
    if step is not None:
        check_exports(table, step)
    return step


def keep_exports(table: StoredTable) -> None:
    """Export the head of the main branch in the formats of the property ``exports``, after a commit to ``table``.

    The commit stands, whatever comes of this: what hinders an export is an ExportWarning, and the next commit's export
    makes up for it.
    """
    for name in _kept_formats(table):
        try:
            _export_head(table, _EXPORTS[name])
        except Exception as problem:  # of a writer of theirs, whatever it is: the commit was made
            warnings.warn(
                f"a commit to {table.store.url} was made, and its export as {name} was not: {problem}",
                ExportWarning,
                stacklevel=2,
            )


def _kept_formats(table: StoredTable) -> tuple[str, ...]:
    try:
        return export_formats(table.snapshot.properties) if table.branch == MAIN_BRANCH else ()
    except InvalidArgument:  # of an older version, to which the property was anybody's
        return ()


def _hindrance(table: StoredTable, name: str) -> SchemaError | None:
    from fuse_index.export.live_files import LiveFiles

    try:
        LiveFiles(table).check(_formats()[name])
    except SchemaError as problem:
        return problem
    return None


def _export_head(table: StoredTable, export: Callable[[StoredTable], int | str]) -> None:
    """Export the head, and what others made it meanwhile, so that the last export is of the last commit."""
    for tries_left in reversed(range(_TRIES)):
        head = table.refresh()
        try:
            export(head)
        except Conflict:
            if not tries_left:
                raise
        else:
            if head.refresh() is head:
                return
