"""What upkeep did: by a run as it goes, and by the commits of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from fuse_index.signals.events import TaskDone
from fuse_storage import RefEntry, Snapshot, StoredTable

DONE_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("task", pa.string()),
        ("index", pa.string()),
        ("why", pa.string()),
        ("outcome", pa.string()),
        ("seconds", pa.float64()),
        ("bytes_read", pa.int64()),
        ("bytes_written", pa.int64()),
        ("problem", pa.string()),
    ]
)

MAINTENANCE_SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("task", pa.string()),
        ("index", pa.string()),
        ("why", pa.string()),
        ("seconds", pa.float64()),
        ("bytes_read", pa.int64()),
        ("bytes_written", pa.int64()),
        ("bytes_ingested", pa.int64()),
    ]
)
DAY = timedelta(days=1)
UPKEEP_OPERATIONS = ("tier", "compact", "recluster", "build index", "vacuum", "verify")
"""Operations that are upkeep, whoever made them."""


@dataclass(frozen=True, slots=True)
class DoneTask:
    """What became of one task.

    ``outcome``: ``done``; ``due``, of a dry run; ``no gain``, which is on record; ``lost``, to others, who were faster;
    ``told``, of what is not done by itself; or ``failed``, and ``problem`` says why.
    """

    table: str
    task: str
    why: str
    outcome: str
    index: str | None = None
    seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The task as a row of ``DONE_SCHEMA``."""
        return {name: getattr(self, name) for name in DONE_SCHEMA.names}


def task_event(done: DoneTask) -> TaskDone:
    """A task as an event."""
    return TaskDone(
        table=done.table,
        seconds=done.seconds,
        task=done.task,
        why=done.why,
        outcome=done.outcome,
        bytes_written=done.bytes_written,
        problem=done.problem,
    )


MaintenanceCallback = Callable[[DoneTask], None]
"""Told of each task once it is done, lost or failed."""


def done_table(done: Iterable[DoneTask]) -> pa.Table:
    """Tasks as rows of ``DONE_SCHEMA``."""
    return pa.Table.from_pylist([each.to_dict() for each in done], DONE_SCHEMA)


def maintenance_table(table: StoredTable, limit: int | None) -> pa.Table:
    """List the commits of upkeep, newest first; see ``MAINTENANCE_SCHEMA``.

    ``bytes_ingested``: what other commits brought between the commit of upkeep before and this one.
    """
    rows: list[dict[str, Any]] = []
    ingested = 0
    for entry, snapshot, before in _oldest_first(table):
        if entry.operation not in UPKEEP_OPERATIONS and "maintained" not in (snapshot.summary if snapshot else {}):
            ingested += _ingested_bytes(snapshot, before)
            continue
        rows.append(_maintenance_row(entry, snapshot) | {"bytes_ingested": ingested})
        ingested = 0
    return pa.Table.from_pylist(rows[::-1][:limit], MAINTENANCE_SCHEMA)


def rewritten_since(table: StoredTable, since: datetime) -> int:
    """Bytes that compaction and reclustering wrote since a time, by the commits that are kept."""
    limit, commits = 32, table.snapshots(32)
    while len(commits) == limit and commits[-1][0].timestamp >= since:
        limit *= 2
        commits = table.snapshots(limit)
    return sum(
        int(snapshot.summary.get("added_bytes", 0))
        for entry, snapshot in commits
        if snapshot is not None and entry.timestamp >= since and entry.operation in ("compact", "recluster")
    )


def _oldest_first(table: StoredTable) -> Iterator[tuple[RefEntry, Snapshot | None, Snapshot | None]]:
    before = None
    for entry, snapshot in reversed(table.snapshots()):
        yield entry, snapshot, before
        before = snapshot


def _ingested_bytes(snapshot: Snapshot | None, before: Snapshot | None) -> int:
    if snapshot is None or snapshot.same_rows:
        return 0
    if "added_bytes" in snapshot.summary:
        return int(snapshot.summary["added_bytes"])
    return max(snapshot.bytes - before.bytes, 0) if before is not None else 0  # a hot commit, or an older writer's


def _maintenance_row(entry: RefEntry, snapshot: Snapshot | None) -> dict[str, Any]:
    row: dict[str, Any] = {"sequence": entry.version, "timestamp": entry.timestamp, "operation": entry.operation}
    if snapshot is None:
        return row
    summary = snapshot.summary
    told = summary.get("maintained", {})
    row |= {name: told.get(name) for name in ("task", "index", "why", "seconds")}
    row["index"] = row["index"] or summary.get("index")
    return row | {
        "bytes_read": summary.get("removed_bytes", told.get("bytes")),
        "bytes_written": summary.get("added_bytes", 0),
    }
