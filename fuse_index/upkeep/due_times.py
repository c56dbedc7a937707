"""Tasks that are due since time went by, or since a source went on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import numpy as np

from fuse_index.sources.formats import open_source
from fuse_index.upkeep.task import DueTask, Finder, UpkeepContext
from fuse_storage import (
    HOT_PROPERTIES,
    MAIN_BRANCH,
    SourceVersion,
    StoredTable,
    first_commit_time,
    tail_times,
    upkeep_record,
)

VERIFIED_BLOCKS = 16
"""Blocks of each index whose rows a verification reads."""


def _due_tiering(context: UpkeepContext) -> Iterator[DueTask]:
    snapshot, limit = context.table.snapshot, context.policy.tail_age
    if (tail := snapshot.tail) is None or not tail.blocks:
        return
    oldest = min(tail_times(context.table.store, snapshot))
    age = context.now - oldest
    limits = {name: int(snapshot.properties.get(name, default)) for name, default in HOT_PROPERTIES.items()}
    # halves, so that it is done before writers have to wait for it
    fullness = max(tail.rows * 2 / max(limits["tail_rows"], 1), tail.commits * 2 / max(limits["tail_commits"], 1))
    excess = max(fullness, abs(age) / limit if limit else 1.0)  # of a time to come a clock was wrong
    if excess >= 1:
        why = f"{tail.rows:,} rows of {tail.commits:,} hot commits wait, the oldest for {describe_age(age)}"
        yield DueTask("tier", why, tail.bytes, "lookups find them by indexes", excess, since=oldest + limit)


def _due_sync(context: UpkeepContext) -> Iterator[DueTask]:
    snapshot = context.table.snapshot
    if snapshot.source is None or (version := SourceVersion.of(snapshot)).adopted:
        return
    options = dict(getattr(context.table.store, "options", None) or {})
    newest = open_source(version.format, version.url, options).state().version
    if newest != version.version:
        why = f"{version.url} is at version {newest}, and the table at {version.version}"
        yield DueTask("sync", why, 0, "queries see the source's newest rows", 2.0)


def _due_vacuum(context: UpkeepContext) -> Iterator[DueTask]:
    table, retention = context.table, context.policy.retention
    if table.branch != MAIN_BRANCH or table.snapshot.version == 1 or table.snapshot.operation == "vacuum":
        return
    last = recorded_time(table, "vacuum")
    since = first_commit_time(table) if last is None else last
    if (age := context.now - since) >= retention:
        why = f"{'the last vacuum' if last else 'the first commit'} was {describe_age(age)} ago"
        gain = f"files go that nothing has needed for {describe_age(retention)}"
        yield DueTask("vacuum", why, 0, gain, age / retention, since=since + retention)


def _due_verification(context: UpkeepContext) -> Iterator[DueTask]:
    table, period = context.table, context.policy.verify_every
    if not period or not context.definitions or not table.segments().base_block_count:
        return
    last = recorded_time(table, "verify")
    since = first_commit_time(table) if last is None else last
    if (age := context.now - since) >= period:
        why = f"{'the last verification' if last else 'the first commit'} was {describe_age(age)} ago"
        sizes = table.blocks().sizes
        sample = int(np.sort(sizes)[-VERIFIED_BLOCKS:].sum()) * len(context.definitions)
        gain = "damage is found before a query meets it"
        yield DueTask("verify", why, sample, gain, age / period, since=since + period)


def recorded_time(table: StoredTable, name: str) -> datetime | None:
    """When a task was recorded last (UTC); None if it never was."""
    seconds = upkeep_record(table.snapshot, name)
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def describe_age(age: timedelta) -> str:
    """Say a duration in its largest unit.

    >>> describe_age(timedelta(hours=50)), describe_age(timedelta(seconds=90))
    ('2 days', '1 minute')
    """
    seconds = max(int(age.total_seconds()), 0)
    unit, size = next((pair for pair in _UNITS if seconds >= pair[1]), _UNITS[-1])
    count = seconds // size
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))

TIME_FINDERS: Mapping[str, Finder] = {
    "tier": _due_tiering,
    "sync": _due_sync,
    "vacuum": _due_vacuum,
    "verify": _due_verification,
}
