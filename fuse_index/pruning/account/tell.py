"""Telling of a plan that was made: to the log of plans, and to whoever listens."""

from __future__ import annotations

from dataclasses import replace

from fuse_index.pruning.explanation import Explanation
from fuse_index.reasons import FAULTS
from fuse_index.signals.events import IndexFailed, PlanMade
from fuse_index.signals.listeners import emit, is_heard, is_unheard
from fuse_index.signals.plans import LOG_PROPERTY, log_plan
from fuse_storage import MeteredStore, StoredTable


def tell_plan(table: StoredTable, told: Explanation) -> None:
    """Log a plan and tell listeners of it, and of each index that failed. Accounts that nobody acts on are not told."""
    if isinstance(table.store, MeteredStore) or is_unheard():
        return
    if table.snapshot.properties.get(LOG_PROPERTY) != "off":
        log_plan(replace(told, map=None))  # of many blocks a map is large
    if not is_heard():
        return
    emit(lambda: PlanMade(table=told.table, seconds=told.seconds, explanation=told))
    for vote in told.votes:
        if vote.reason in FAULTS:
            failed = IndexFailed(
                table=told.table, index=vote.index, kind=vote.kind, reason=vote.reason.value, detail=vote.detail
            )
            emit(lambda failed=failed: failed)  # type: ignore[misc]
