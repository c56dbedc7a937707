"""Exports that are kept up: after each commit, in the formats that a table's property ``exports`` names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from fuse_index.errors import FuseIndexError
from fuse_storage import MAIN_BRANCH, Conflict, InvalidArgument, StorageError, StoredTable, export_formats


def _to_delta(table: StoredTable) -> int:
    from fuse_index.export.delta import export_delta  # which few tables need, and each worker of Spark would pay for

    return export_delta(table)


def _to_iceberg(table: StoredTable) -> str:
    from fuse_index.export.iceberg import export_iceberg

    return export_iceberg(table)


_EXPORTS: Mapping[str, Callable[[StoredTable], int | str]] = {"delta": _to_delta, "iceberg": _to_iceberg}
_TRIES = 5
"""How often an export is tried that others are faster with: what they write is as new."""


class ExportWarning(UserWarning):
    """A commit was made, and an export of it that is to be kept up was not; the message says why."""


def keep_exports(table: StoredTable) -> None:
    """Export the head of the main branch in the formats of the property ``exports``, after a commit to ``table``.

    The commit stands, whatever comes of this: what hinders an export is an ExportWarning, and the next commit's export
    makes up for it.
    """
    try:
        formats = export_formats(table.snapshot.properties) if table.branch == MAIN_BRANCH else ()
    except InvalidArgument:  # of an older version, to which the property was anybody's
        return
    for name in formats:
        try:
            _export_head(table, _EXPORTS[name])
        except (StorageError, FuseIndexError) as problem:
            warnings.warn(
                f"a commit to {table.store.url} was made, and its export as {name} was not: {problem}",
                ExportWarning,
                stacklevel=2,
            )


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
