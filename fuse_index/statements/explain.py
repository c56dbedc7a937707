"""What a statement that changes rows would read of a snapshot, and write: told from its plan, without doing it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuse_index.operations.dml_job import DmlJob
from fuse_index.pruning.account.uses import StatementUse
from fuse_index.pruning.explanation import Explanation, explain_plan
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_storage import BlockFrame, StoredTable

_Plans = tuple[ScanPlan[BlockFrame], ScanPlan[BlockFrame]]


def explain_rewrite(job: DmlJob, writes: str) -> Explanation:
    """Explain a statement that marks rows, or rewrites blocks in which some change. Raises StorageError.

    ``writes``: what is written for rows that change (``RowStore.writes``).
    """
    read, dropped = job.plan_blocks()
    writes = writes if len(read.blocks) else "no block anew"
    every_zone = replace(read, zones=np.ones(len(read.zones), np.bool_), row_masks={})
    return _explain_statement(job.operation, (every_zone, dropped), writes)


def explain_by_key(job: DmlJob, writes: str, plans: _Plans | None = None) -> Explanation:
    """Explain a statement that puts rows and deletes keys. Raises StorageError.

    ``writes``: as for ``explain_rewrite``. ``plans``: of blocks that it reads, and that go unread.
    """
    if plans is None:
        plan = plan_scan(job.table, job.condition.predicate, job.condition.engine)
        nothing = plan.take(np.zeros(0, np.int64))
        plans = (nothing if job.edit is None else plan), nothing
    return _explain_statement(job.operation, plans, writes)


def explain_append(table: StoredTable, operation: str, writes: str) -> Explanation:
    """Explain rows that come, for which no block of the table is read. Raises StorageError."""
    nothing = np.zeros(0, np.int64)
    account = explain_plan(table, 0, table.blocks().take(nothing), nothing.astype(np.bool_), {}, ())
    return replace(account, statement=StatementUse(operation, 0, writes))


def _explain_statement(operation: str, plans: _Plans, writes: str) -> Explanation:
    read, dropped = plans
    listed = read.table.segments()
    segments = len(np.unique(np.searchsorted(listed.block_offsets, read.blocks.ordinals, side="right")))
    counted = explain_plan(read.table, segments, read.blocks, read.zones, read.row_masks, read.explanation.votes)
    return replace(
        read.explanation,
        **{level: getattr(counted, level) for level in ("segments", "blocks", "zones", "rows", "bytes")},
        statement=StatementUse(operation, len(dropped.blocks), writes),
    )
