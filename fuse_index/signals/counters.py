"""Counts of what happened, as a listener."""

from __future__ import annotations

import threading
from collections import Counter

from fuse_index.signals.events import CommitMade, Event, IndexBuilt, IndexFailed, PlanMade, TaskDone


class Counters:
    """Counts plans, blocks that they left out, commits, builds, faults and tasks of upkeep, while it listens.

    >>> table = fuse.create_table("memory://counters", "id BIGINT", properties={"block_rows": 2})
    >>> with fuse.listen(fuse.Counters()) as counters:
    ...     snapshot = table.append([{"id": number} for number in range(6)])
    ...     rows = table.to_arrow("id = 3")
    >>> counters.to_dict()
    {'commits': 1, 'commits.append': 1, 'plans': 1, 'plans.blocks': 3, 'plans.blocks_read': 1}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def fuse_index_events(self, event: Event) -> None:
        """Count an event."""
        with self._lock:
            self._counts.update(counts_of(event))

    def to_dict(self) -> dict[str, int]:
        """Each count by its name, in the order of names."""
        with self._lock:
            return dict(sorted(self._counts.items()))


def counts_of(event: Event) -> dict[str, int]:
    """What an event adds to which count."""
    match event:
        case PlanMade(explanation=told):
            return {"plans": 1, "plans.blocks": told.blocks.total, "plans.blocks_read": told.blocks.kept}
        case CommitMade(operation=operation):
            return {"commits": 1, f"commits.{operation}": 1}
        case IndexBuilt(blocks=blocks):
            return {"builds": 1, "builds.blocks": blocks}
        case IndexFailed(reason=reason):
            return {"faults": 1, f"faults.{reason}": 1}
        case TaskDone(task=task, outcome=outcome, bytes_written=size):
            return {"tasks": 1, f"tasks.{task}.{outcome}": 1, "tasks.bytes_written": size}
    return {}
