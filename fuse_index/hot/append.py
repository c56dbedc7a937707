"""Appends of few rows are hot commits, where a table or its user allows it; what waits to be tiered is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

import fuse_storage as storage
from fuse_index.after_commit import after_commit, follow_commit, tell_commit
from fuse_index.hot.tier import tier_table
from fuse_index.indexes.registry import Host
from fuse_storage import SchemaChange, Snapshot, StagedPuts, StoredTable, TableUrl, WholeBlocks

_FULL_FACTOR = 2
"""How many times what a tail should have it may have, where a job tiers: beyond, hot commits are refused."""


class Committed(NamedTuple):
    """Where a statement ended; the state that it began at, if it committed nothing."""

    state: StoredTable
    """The table as the commit left it."""
    head: StoredTable
    """The table after tiering, if that was due, and after a step of upkeep."""


def hot_limit(snapshot: Snapshot, name: str) -> int:
    """One of the whole numbers that bound hot commits: the table's property, or its default."""
    return int(snapshot.properties.get(name, storage.HOT_PROPERTIES[name]))


def hot_row_limit(snapshot: Snapshot, hot: bool | None) -> int:
    """How many rows an append may have to be hot; 0 for none. ``hot``: what its user says of it."""
    return {None: hot_limit(snapshot, "hot_rows"), True: hot_limit(snapshot, "tail_rows"), False: 0}[hot]


def take_rows(
    batches: Iterable[pa.RecordBatch | pa.Table], limit: int, snapshot: Snapshot
) -> tuple[pa.Table | None, Iterator[Any]]:
    """All rows, if there are at most ``limit`` and at least one, in the columns of the snapshot; else None.

    And the batches, which were read only as far as it takes to tell. Raises SchemaError.
    """
    remaining, taken, count = iter(batches), list[pa.RecordBatch | pa.Table](), 0
    for batch in remaining:
        taken.append(batch)
        count += batch.num_rows
        if count > limit:
            return None, chain(taken, remaining)
    if not count:
        return None, iter(taken)
    return pa.concat_tables([storage.conform_rows(batch, snapshot.schema) for batch in taken]), iter(())


def commit_hot(table: StoredTable, host: Host, rows: pa.Table, application: tuple[str, int] | None = None) -> Committed:
    """Add rows by a hot commit, and tier if that is for a writer to do, and due.

    Raises TailFull where a job is to tier and does not keep up, and as ``append_hot``. The rows are visible before any
    tiering, so whatever stands in its way is left to the next. What ``application`` has committed is never refused.
    """
    if (head := _head_that_has(table, application)) is not None:
        return Committed(head, head)
    return _tier_if_due(storage.append_hot(table, rows, application), host)


def commit_by_key(
    table: StoredTable,
    host: Host,
    rows: pa.Table,
    deleted_keys: pa.Table,
    application: tuple[str, int] | None = None,
    still_holds: Callable[[StoredTable], bool] | None = None,
) -> Committed:
    """Put rows and delete keys, as ``put_rows``, and tier as ``commit_hot`` does."""
    if (head := _head_that_has(table, application)) is not None:
        return Committed(head, head)
    operation = "upsert" if len(rows) else "delete keys"
    return _tier_if_due(storage.put_rows(table, rows, deleted_keys, application, operation, still_holds), host)


def commit_staged_by_key(
    table: StoredTable,
    host: Host,
    staged: Sequence[StagedPuts],
    application: tuple[str, int] | None = None,
    still_holds: Callable[[StoredTable], bool] | None = None,
    schema_change: SchemaChange | None = None,
) -> StoredTable:
    """Commit what several processes wrote by one hot commit, as ``commit_puts``, and tier; the table before that."""
    if (head := _head_that_has(table, application)) is not None:
        return head
    operation = "upsert" if any(part.row_count for part in staged) else "delete keys"
    committed = storage.commit_puts(table, staged, application, operation, still_holds, schema_change)
    return _tier_if_due(committed, host)[0]


def commit_with_blocks(
    table: StoredTable,
    host: Host,
    blocks: WholeBlocks,
    deleted_keys: pa.Table,
    still_holds: Callable[[StoredTable], bool],
) -> Committed:
    """Take whole blocks of the base away and delete keys, as ``delete_blocks``, and tier as ``commit_hot`` does.

    A tail that is full refuses keys, and not that blocks go.
    """
    if len(deleted_keys):
        _head_that_has(table, None)
    committed = _tier_if_due(storage.delete_blocks(table, blocks, deleted_keys, still_holds), host)
    if committed.head is committed.state:
        return Committed(committed.state, follow_commit(committed.state, host))
    return committed


def _head_that_has(table: StoredTable, application: tuple[str, int] | None) -> StoredTable | None:
    """The newest state, where the tail waits for a job and ``application`` has been committed; else None.

    Raises TailFull where it has not, and the tail is full.
    """
    if not _waits_for_job(table.snapshot):
        return None
    head = table.refresh()
    if application is not None and was_committed(head.snapshot, *application):
        return head
    raise_if_full(head)
    return None


def _tier_if_due(committed: StoredTable, host: Host) -> Committed:
    tell_commit(committed)
    snapshot = committed.snapshot
    if snapshot.properties.get("tiering", "writer") == "writer" and _exceeds(snapshot, 1):
        with suppress(storage.StorageError):
            return Committed(committed, after_commit(tier_table(committed, host), host=host))
    return Committed(committed, committed)


def raise_if_full(head: StoredTable) -> None:
    """Raise TailFull for a table whose tail a job should have tiered long ago."""
    if _waits_for_job(head.snapshot) and (tail := head.snapshot.tail) is not None:
        raise storage.TailFull(
            TableUrl(head.store.url)
            + f" has {tail.rows:,} rows of {tail.commits:,} hot commits that are not tiered: tier it "
            f"(table.maintenance.tier(), or fuse-index tier --every 30s) and try again"
        )


def was_committed(snapshot: Snapshot, application: str, version: int) -> bool:
    """Whether an application has committed this version, or a later one."""
    return snapshot.applications.get(application, version - 1) >= version


def _waits_for_job(snapshot: Snapshot) -> bool:
    return snapshot.properties.get("tiering", "writer") == "job" and _exceeds(snapshot, _FULL_FACTOR)


def _exceeds(snapshot: Snapshot, times: int) -> bool:
    if (tail := snapshot.tail) is None:
        return False
    limits = (hot_limit(snapshot, "tail_rows"), hot_limit(snapshot, "tail_commits"))
    return tail.rows > times * limits[0] or tail.commits > times * limits[1]
