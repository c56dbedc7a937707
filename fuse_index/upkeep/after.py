"""A small step of upkeep after a commit, by whoever made it: for tables that no job keeps."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fuse_index.indexes.registry import Host
from fuse_index.upkeep.due import due_tasks, upkeep_context
from fuse_index.upkeep.steps import LOCAL_STEPS, run_step
from fuse_index.upkeep.task import DueTask, UpkeepContext
from fuse_storage import Conflict, MaintenancePolicy, StoredTable, upkeep_lease

MAX_AFTER_COMMIT_BYTES = 64 << 20
"""Bytes of blocks that a writer reads at most, which takes a second or so: what needs more is left to a maintainer."""
_UPKEEP = ("compact", "recluster", "build index", "vacuum", "verify")
"""Operations that are no occasion for upkeep, since they are it."""
_LEASE = timedelta(minutes=1)


class MaintenanceWarning(UserWarning):
    """A commit was made, and the step of upkeep after it was not; the message says why."""


def step_after_commit(table: StoredTable, host: Host | None) -> StoredTable:
    """Do the worst that is due of what the property ``maintain_after_commit`` names, if it is small.

    Gives the table after it, or as it is. Whatever stands in the way is a MaintenanceWarning: the commit was made.
    """
    if table.snapshot.operation in _UPKEEP:
        return table
    try:
        return _step(table, host or Host.discover())
    except Conflict:  # somebody else changes the table: the next commit is another chance
        return table
    except Exception as problem:  # of a plugin, or of a property of an older version: the commit was made
        text = f"a commit to {table.store.url} was made, and the upkeep after it was not: {problem}"
        warnings.warn(text, MaintenanceWarning, stacklevel=4)
        return table


def _step(table: StoredTable, host: Host) -> StoredTable:
    policy = MaintenancePolicy.from_properties(table.snapshot.properties)
    tasks = tuple(name for name in policy.after_commit if name in policy.tasks)
    context = upkeep_context(table, host, replace(policy, tasks=tasks), datetime.now(UTC))
    if (task := _worst(context)) is None:
        return table
    with upkeep_lease(table.store, _LEASE) as mine:
        return run_step(LOCAL_STEPS[task.task], context, task).table if mine else table


def _worst(context: UpkeepContext) -> DueTask | None:
    return next(
        (task for task in due_tasks(context) if task.task in LOCAL_STEPS and task.bytes <= MAX_AFTER_COMMIT_BYTES), None
    )
