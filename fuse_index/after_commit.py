"""What follows a commit, whoever made it and by whichever way: one place, so that none forgets a part of it."""

from __future__ import annotations

from collections.abc import Iterable

from fuse_index.export.keep_up import keep_exports
from fuse_index.indexes.builder import warn_of_unindexed
from fuse_storage import StoredTable


def after_commit(table: StoredTable, task_warnings: Iterable[str] | None = None) -> None:
    """Warn of each index that lacks blocks which tasks wrote, and bring exports that are kept up to the commit.

    ``table``: as the commit left it, which stands whatever comes of this. ``task_warnings``: what tasks in other
    processes warned of, empty if it is not known; None where this process wrote the blocks, and warned then.
    """
    if task_warnings is not None:
        warn_of_unindexed(table.snapshot, task_warnings)
    keep_exports(table)
