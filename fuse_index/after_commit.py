"""What follows a commit, whoever made it and by whichever way: one place, so that none forgets a part of it."""

from __future__ import annotations

from collections.abc import Iterable

from fuse_index.export.keep_up import keep_exports
from fuse_index.indexes.builder import warn_of_unindexed
from fuse_index.indexes.registry import Host
from fuse_index.signals.events import CommitMade
from fuse_index.signals.listeners import emit
from fuse_storage import StoredTable


def after_commit(
    table: StoredTable, task_warnings: Iterable[str] | None = None, host: Host | None = None
) -> StoredTable:
    """Warn of indexes that lack blocks which tasks wrote, do a small step of upkeep, and bring exports up to it.

    ``table``: as the commit left it, which stands whatever comes of this. ``task_warnings``: what tasks in other
    processes warned of, empty if it is not known; None where this process wrote the blocks, and warned then. ``host``:
    by default with all kinds that are installed. Gives the table after a step of upkeep, or as it is.
    """
    if task_warnings is not None:
        warn_of_unindexed(table.snapshot, task_warnings)
    tell_commit(table)
    return follow_commit(table, host)


def follow_commit(table: StoredTable, host: Host | None = None) -> StoredTable:
    """Do a small step of upkeep, and bring exports up to a commit that listeners were told of, as ``after_commit``."""
    after = table
    if "maintain_after_commit" in table.snapshot.properties:
        from fuse_index.upkeep.after import step_after_commit  # which few tables need, and each worker would pay for

        after = step_after_commit(table, host)
    keep_exports(after)
    return after


def tell_commit(table: StoredTable) -> None:
    """Tell listeners of a commit, which left the table so."""
    snapshot = table.snapshot
    emit(
        lambda: CommitMade(
            table=table.store.url,
            snapshot=snapshot.id,
            version=table.entry.version,
            operation=table.entry.operation,
            summary=snapshot.summary,
        )
    )
