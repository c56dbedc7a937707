"""Snapshots of a table are named by tags and branches, compared, and restored. No row is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
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

        Args:
            name: Of the tag.
            expires: A time with its zone, a timedelta, or text such as ``"30d"``; by default never.

        Returns:
            The tag: its name, snapshot, time and expiry.

        Raises:
            AlreadyExists: The name is taken, by a tag or a branch.
            InvalidArgument: The name could be taken for a version, a time or a snapshot id.
            InputError: ``expires`` is neither a duration nor a time.
            ReadOnly: The handle is without the tail (``tail=False``), or of a store that is only read.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://tag", "id BIGINT")
            >>> tag = table.tag("before-the-change", expires="30d")
            >>> tag.snapshot_id == table.snapshot.id
            True
        """
        self._check_whole()
        until = parse_time_or_duration(expires, "expires") if isinstance(expires, str | timedelta) else expires
        tag = self.stored.tag(name, datetime.now(UTC) + until if isinstance(until, timedelta) else until)
        self._move_to_snapshot()
        return tag

    def untag(self, name: str) -> None:
        """Forget a tag; the snapshot stays as long as anything else keeps it.

        Args:
            name: Of the tag.

        Raises:
            NotFound: There is no such tag; near names are said.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://untag", "id BIGINT")
            >>> tag = table.tag("done")
            >>> table.untag("done")
        """
        storage.drop_tag(self.stored.store, name)

    def branch(self, name: str) -> Self:
        """Begin a new branch at the snapshot that this handle reads. Nothing of the rows is copied.

        Args:
            name: Of the branch.

        Returns:
            A handle that reads and writes the branch.

        Raises:
            AlreadyExists: There is such a branch, or a tag of this name.
            InvalidArgument: The name could be taken for a version, a time or a snapshot id.
            ReadOnly: The handle is without the tail (``tail=False``), or of a store that is only read.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://branch", "id BIGINT")
            >>> trial = table.branch("trial")
            >>> snapshot = trial.append([{"id": 1}])
            >>> trial.count(), table.refresh().count()
            (1, 0)
        """
        self._check_whole()
        made = replace(self, stored=storage.create_branch(self.stored, name), pinned=False)
        self._move_to_snapshot()
        return made

    def clone(self, url: str | PathLike[str], options: Mapping[str, str] | None = None) -> Self:
        """Make a new table of the snapshot that this handle reads, indexes included.

        Rows and index payloads are shared and stay where they are: a tag ``clone-…`` in this table keeps them from its
        vacuum, until ``untag`` says that the clone is gone.

        Args:
            url: Where the new table is to be.
            options: Of the new table's store, with which this table's files must be readable too.

        Returns:
            A handle of the new table.

        Raises:
            AlreadyExists: There is anything at ``url``.
            Conflict: A vacuum ran at the same time; or NotFound.
            ReadOnly: The handle is without the tail (``tail=False``).
            StorageError: A store fails.

        Example:
            >>> table = fuse.create_table("memory://clone", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.clone("memory://clone-of-it").count()
            1
        """
        self._check_whole()
        cloned = storage.clone_table(self.stored, storage.open_store(fspath(url), options))
        self._move_to_snapshot()
        return replace(self, stored=cloned, pinned=False)

    def _move_to_snapshot(self) -> None:
        """Move from a state after hot commits to the snapshot that was just made of it: the same rows."""
        if not self.pinned:
            self.stored = storage.snapshot_of(self.stored)

    def drop_branch(self, name: str) -> None:
        """End a branch; snapshots that tags or other branches hold stay.

        Args:
            name: Of the branch.

        Raises:
            NotFound: There is no such branch.
            InvalidArgument: It is ``main``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://drop-branch", "id BIGINT")
            >>> trial = table.branch("trial")
            >>> table.drop_branch("trial")
        """
        storage.drop_branch(self.stored.store, name)

    def fast_forward(self, source: str) -> Snapshot:
        """Bring this branch to the head of another, which must hold all its history.

        Args:
            source: Name of the other branch.

        Returns:
            The snapshot that the table reads then.

        Raises:
            Conflict: This branch has commits that the other lacks.
            NotFound: There is no such branch.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://fast-forward", "id BIGINT")
            >>> snapshot = table.branch("trial").append([{"id": 1}])
            >>> table.fast_forward("trial").row_count
            1
        """
        head = self._writable_head()
        return self._move_on(head, storage.fast_forward_branch(head, self._stored_at(None, branch=source)))

    def restore(self, at: str | int | datetime) -> Snapshot:
        """Make the table what it was, as a new snapshot: the history stays.

        Rows, columns, indexes and properties are those of then.

        Args:
            at: A snapshot id, a tag, a version such as ``3``, or a time.

        Returns:
            The new snapshot.

        Raises:
            NotFound: There is no such snapshot.
            Conflict: Somebody changed the table since this handle's snapshot.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://restore", "id BIGINT")
            >>> empty = table.snapshot
            >>> snapshot = table.append([{"id": 1}])
            >>> table.restore(empty.id).row_count
            0
        """
        self._check_writable()
        return self._move_to(storage.restore_snapshot(self.stored, self._stored_at(at)))

    def diff(self, since: str | int | datetime, until: str | int | datetime | None = None) -> SnapshotDiff:
        """Compare one snapshot with another: blocks, rows and bytes that came, went and stayed, columns and indexes.

        Args:
            since: A snapshot id, a tag or a time.
            until: The other; by default the snapshot that this handle reads.

        Returns:
            The counts, and what changed of columns and indexes; ``changes`` tells the rows.

        Raises:
            NotFound: There is no such snapshot.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://diff", "id BIGINT")
            >>> empty = table.snapshot
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.diff(empty.id).added.rows
            2
        """
        return storage.diff_snapshots(self._stored_at(since), self.stored if until is None else self._stored_at(until))

    def history(self) -> pa.Table:
        """List the commits of this branch, newest first.

        Returns:
            A row for each: ``sequence``, ``timestamp``, ``operation``, ``snapshot``, ``commit`` and ``parent``.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://history", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.history().column("operation").to_pylist()
            ['append', 'create']
        """
        return history_table(self.stored)
