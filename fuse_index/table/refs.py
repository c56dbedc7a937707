"""Snapshots of a table are named by tags and branches, compared, and restored. No row is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Self

import pyarrow as pa

import fuse_storage as storage
from fuse_index.handle import TableHandle
from fuse_index.table.arguments import parse_time_or_duration
from fuse_index.table.inspection.commits import history_table
from fuse_storage import Snapshot, SnapshotDiff, Tag


class RefsMixin(TableHandle):
    """The part of ``fuse_index.Table`` that names, compares and restores snapshots."""

    def tag(self, name: str, expires: datetime | timedelta | str | None = None) -> Tag:
        """Name the snapshot that this handle reads, for ever or until it expires.

        ``expires``: a time with its zone, a timedelta, or text such as ``"30d"``. Raises AlreadyExists if the name is
        taken, ValueError if it could be taken for a time or a snapshot id, ReadOnly without the tail (``tail=False``).
        """
        self._check_whole()
        until = parse_time_or_duration(expires, "expires") if isinstance(expires, str) else expires
        tag = self.stored.tag(name, datetime.now(UTC) + until if isinstance(until, timedelta) else until)
        self._move_to_snapshot()
        return tag

    def untag(self, name: str) -> None:
        """Forget a tag; the snapshot stays as long as anything else keeps it. Raises NotFound naming near names."""
        storage.drop_tag(self.stored.store, name)

    def branch(self, name: str) -> Self:
        """Begin a new branch at the snapshot that this handle reads, and return a handle that reads and writes it.

        Nothing of the rows is copied. Raises AlreadyExists if there is such a branch, ReadOnly without the tail.
        """
        self._check_whole()
        made = replace(self, stored=storage.create_branch(self.stored, name), pinned=False)
        self._move_to_snapshot()
        return made

    def clone(self, url: str, options: Mapping[str, str] | None = None) -> Self:
        """Make a new table at ``url`` of the snapshot that this handle reads, indexes included; return a handle of it.

        Rows and index payloads are shared and stay where they are: a tag ``clone-…`` in this table keeps them from its
        vacuum, until ``untag`` says that the clone is gone. ``options``: of the new table's store, with which this
        table's files must be readable too. Raises AlreadyExists where there is anything, Conflict or NotFound beside a
        vacuum, ReadOnly without the tail, StorageError.
        """
        self._check_whole()
        cloned = storage.clone_table(self.stored, storage.open_store(url, options))
        self._move_to_snapshot()
        return replace(self, stored=cloned, pinned=False)

    def _move_to_snapshot(self) -> None:
        """Move from a state after hot commits to the snapshot that was just made of it: the same rows."""
        if not self.pinned:
            self.stored = storage.snapshot_of(self.stored)

    def drop_branch(self, name: str) -> None:
        """End a branch; snapshots that tags or other branches hold stay. Raises NotFound, ValueError for ``main``."""
        storage.drop_branch(self.stored.store, name)

    def fast_forward(self, source: str) -> Snapshot:
        """Bring this branch to the head of ``source``, which must hold all its history. Raises Conflict."""
        head = self._writable_head()
        return self._move_on(head, storage.fast_forward_branch(head, self._stored_at(None, branch=source)))

    def restore(self, at: str | datetime) -> Snapshot:
        """Make the table what it was ``at`` a snapshot id, tag or time, as a new snapshot: the history stays.

        Rows, columns, indexes and properties are those of then. Raises NotFound, and Conflict if somebody changed the
        table since this handle's snapshot.
        """
        self._check_writable()
        return self._move_to(storage.restore_snapshot(self.stored, self._stored_at(at)))

    def diff(self, since: str | datetime, until: str | datetime | None = None) -> SnapshotDiff:
        """Compare one snapshot with another, by default with the one that this handle reads.

        The result counts blocks, rows and bytes that came, went and stayed, and what changed of columns and indexes.
        Raises NotFound.
        """
        return storage.diff_snapshots(self._stored_at(since), self.stored if until is None else self._stored_at(until))

    def history(self) -> pa.Table:
        """List the commits of this branch, newest first."""
        return history_table(self.stored)
