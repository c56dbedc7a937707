"""What upkeep leaves on record in a table: when a task was done last, or that there is nothing to gain by it.

A record is a number by which a task is known, kept where the versions of applications are: every writer carries those
along, whatever its version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fuse_storage.commit.draft import Draft
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store.cache import cache_of
from fuse_storage.table import StoredTable

_PREFIX = "maintenance:"


@dataclass(frozen=True, slots=True)
class _Record:
    """Makes a commit of what changes nothing of the table."""

    name: str

    def apply(self, draft: Draft) -> None:
        draft.changed = True


def record_upkeep(
    table: StoredTable, operation: str, name: str, number: int, summary: Mapping[str, Any] | None = None
) -> StoredTable:
    """Commit a record, unless the same or a higher number is recorded. Raises Conflict, StorageError."""
    transaction = table.transaction().stage(_Record(operation))
    return transaction.commit(operation, (_PREFIX + name, number), summary=summary)


def upkeep_record(snapshot: Snapshot, name: str) -> int | None:
    """The highest number that was recorded by this name; None if none was."""
    return snapshot.applications.get(_PREFIX + name)


def first_commit_time(table: StoredTable) -> datetime:
    """When the branch began (UTC). Raises StorageError if its first entry cannot be read."""
    store, chain = table.store, Branch(table.store, table.branch)
    key = ("first commit", store.url, table.branch)
    return cache_of(store).get_or_load(key, lambda: chain.entry(1).timestamp, lambda _: 100)
