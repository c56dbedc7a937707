"""What is due at a table: a pure function of one of its states, the policy and the time, for which no row is read.

In: a stored table, the kinds that are installed, a ``MaintenancePolicy``. Out: tasks, the worst first. Nothing is asked
of the store beyond metadata that queries read too; an attached table's source is asked for its newest version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.registry import Host
from fuse_index.upkeep.due_blocks import BLOCK_FINDERS
from fuse_index.upkeep.due_times import TIME_FINDERS
from fuse_index.upkeep.task import DUE_SCHEMA, REPAIR, DueTask, Finder, UpkeepContext
from fuse_storage import MaintenancePolicy, StoredTable


def upkeep_context(table: StoredTable, host: Host, policy: MaintenancePolicy, now: datetime) -> UpkeepContext:
    """Gather what tells whether tasks are due at a state of a table."""
    found = load_definitions(table.snapshot, host)
    usable = tuple(each for each in found if isinstance(each, IndexDefinition))
    broken = tuple(each for each in found if isinstance(each, UnavailableIndex))
    return UpkeepContext(table, host, policy, now, usable, broken)


def due_tasks(context: UpkeepContext, for_blocks: Sequence[DueTask] | None = None) -> list[DueTask]:
    """Find what is due at a state of a table, the worst first; nothing if ``maintain`` is off. Raises StorageError.

    ``for_blocks``: what ``due_for_blocks`` said of this state and policy, where that is known.
    """
    if not context.policy.tasks:
        return []
    known = due_for_blocks(context) if for_blocks is None else for_blocks
    tasks = [*known, *_found(TIME_FINDERS, context), *map(_repair, context.broken)]
    return sorted(tasks, key=lambda task: (-task.excess, task.bytes, task.task, task.index or ""))


def due_for_blocks(context: UpkeepContext) -> list[DueTask]:
    """Find what is due for how blocks are, at whatever time. Raises StorageError."""
    return _found(BLOCK_FINDERS, context)


def _found(finders: Mapping[str, Finder], context: UpkeepContext) -> list[DueTask]:
    return [task for name in context.policy.tasks if name in finders for task in finders[name](context)]


def due_table(tasks: Iterable[DueTask]) -> pa.Table:
    """Tasks as rows of ``DUE_SCHEMA``."""
    return pa.Table.from_pylist([task.to_dict() for task in tasks], DUE_SCHEMA)


def _repair(index: UnavailableIndex) -> DueTask:
    why = f"index {index.name!r} cannot be used here: {index.refusal.detail or index.refusal.reason}"
    return DueTask(REPAIR, why, 0, "the index helps again", 0.0, index.name)
