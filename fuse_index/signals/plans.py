"""The plans of late, of this process: a bounded log, of which what-if and suggestions learn what is asked."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fuse_index.signals.accounts import PlanAccount

MAX_PLANS = 256
"""Plans that are kept; each takes what its account does, some kilobytes."""
MAX_TEXT = 10_000
"""Characters of leaves beyond which a condition, which may hold a million values, is not kept."""
LOG_PROPERTY = "plan_log"
"""The property of a table by which its plans are kept, or not (``off``)."""


@dataclass(frozen=True, slots=True)
class LoggedPlan:
    """A plan, and when it was made, in seconds since 1970."""

    made: float
    account: PlanAccount


_PLANS: deque[LoggedPlan] = deque(maxlen=MAX_PLANS)


def log_plan(account: PlanAccount) -> None:
    """Keep a plan, in the place of the oldest if there are many; not one of a condition as large as data."""
    if sum(len(vote.leaf) for vote in account.votes) <= MAX_TEXT:
        _PLANS.append(LoggedPlan(time.time(), account))


def recent_plans(table: str | None = None) -> list[LoggedPlan]:
    """The plans that are kept, the oldest first; of one table, by its URL, if it is given."""
    return [plan for plan in list(_PLANS) if table in (None, plan.account.table)]


def forget_plans(table: str | None = None) -> None:
    """Keep none of a table's plans any more, or of all."""
    kept = [plan for plan in list(_PLANS) if table not in (None, plan.account.table)]
    _PLANS.clear()
    _PLANS.extend(kept)


def plan_row(plan: LoggedPlan) -> dict[str, Any]:
    """A plan as a row: when, of what, how much was read, and which indexes removed how many blocks."""
    told = plan.account.to_dict()
    removed: dict[str, int] = {}
    for vote in plan.account.votes:
        if vote.blocks_removed:
            removed[vote.index] = removed.get(vote.index, 0) + vote.blocks_removed
    return {
        "made": datetime.fromtimestamp(plan.made, UTC),
        "snapshot": told["snapshot"],
        "where": told["where"],
        "blocks": told["blocks"]["total"],
        "blocks_read": told["blocks"]["kept"],
        "rows_read": told["rows"]["kept"],
        "bytes_read": told["bytes"]["kept"],
        "seconds": told["seconds"],
        "removed": list(removed.items()),
    }
