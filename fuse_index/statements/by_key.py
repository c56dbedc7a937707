"""The statements of a table with a primary key that are about keys, and how each statement begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.hot.append import Committed
from fuse_index.statements.heap_rows import HeapRows
from fuse_index.statements.jobs import StatementJobsMixin
from fuse_index.statements.keyed_rows import KeyedRows
from fuse_storage import Snapshot


class ByKeyMixin(StatementJobsMixin):
    """The part of ``fuse_index.Table`` that puts, deletes and finds rows by their primary key."""

    @property
    def row_store(self) -> HeapRows | KeyedRows:
        """How the snapshot that this handle reads keeps its rows: by a primary key, or without one."""
        return KeyedRows(self) if storage.is_keyed(self.snapshot) else HeapRows(self)

    def upsert(self, data: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Put rows: each takes the place of the row of its key, or comes. One hot commit, whatever their number.

        Args:
            data: As for ``append``; of several rows of one key the last counts. Rows that lack columns set those that
                they have: the others stay, and of a new key they are their defaults or NULL.
            application: As for ``append``.

        Returns:
            The snapshot that has the rows.

        Raises:
            InputError: The table has no primary key, or dicts differ in their columns.
            SchemaError: A column does not fit.
            TailFull: As for ``append``.
            Conflict: Columns were changed meanwhile.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://upsert", "id BIGINT, n INT", primary_key=["id"])
            >>> snapshot = table.upsert([{"id": 1, "n": 1}])
            >>> snapshot = table.upsert([{"id": 1, "n": 2}])
            >>> table.to_arrow().to_pylist()
            [{'id': 1, 'n': 2}]
        """
        return self._finish(self._keyed_rows("upsert").upsert(data, application))

    def delete_keys(self, keys: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Delete the rows of these keys, where there are such. One hot commit, and nothing is read.

        Args:
            keys: Rows with the columns of the key, in any form that ``append`` takes, or a list of values if it is one
                column.
            application: As for ``append``.

        Returns:
            The snapshot without these rows.

        Raises:
            InputError: The table has no primary key, or the keys are none.
            SchemaError: The keys' columns are others than the primary key's.
            TailFull: As for ``append``.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://delete_keys", "id BIGINT", primary_key=["id"])
            >>> snapshot = table.upsert([{"id": 1}, {"id": 2}])
            >>> snapshot = table.delete_keys([1])
            >>> table.to_arrow().to_pylist()
            [{'id': 2}]
        """
        return self._finish(self._keyed_rows("delete_keys").delete_keys(keys, application))

    def apply(self, changes: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Do what the rows of another table's ``changes`` say, in one hot commit.

        Args:
            changes: Rows with a column ``_change_type``: ``insert`` and ``update_postimage`` (and NULL) put a row,
                ``delete`` deletes that of its key, ``update_preimage`` is passed over. They are done in the order of
                ``_commit_version``, if there is such a column; of several of one key the last counts.
            application: As for ``append``.

        Returns:
            The snapshot after them.

        Raises:
            InputError: As for ``upsert``, and for a change of another type.
            SchemaError: A column does not fit.
            TailFull: As for ``append``.
            Conflict: Columns were changed meanwhile.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://apply", "id BIGINT", primary_key=["id"])
            >>> snapshot = table.upsert([{"id": 1}])
            >>> snapshot = table.apply([{"id": 1, "_change_type": "delete"}, {"id": 2, "_change_type": "insert"}])
            >>> table.to_arrow().to_pylist()
            [{'id': 2}]
        """
        return self._finish(self._keyed_rows("apply").apply(changes, application))

    def lookup(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """Find the rows of these keys, in the order of the keys; keys that have no row are left out.

        Args:
            keys: As for ``delete_keys``.
            columns: Names of the columns wanted; by default all.

        Returns:
            At most one row for each key.

        Raises:
            InputError: The table has no primary key, or the keys are none.
            SchemaError: A column is unknown, or the keys' columns are others than the primary key's.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://lookup", "id BIGINT, n INT", primary_key=["id"])
            >>> snapshot = table.upsert([{"id": 1, "n": 5}, {"id": 2, "n": 6}])
            >>> table.lookup([2, 1, 3]).to_pylist()
            [{'id': 2, 'n': 6}, {'id': 1, 'n': 5}]
        """
        rows = self.row_store.by_key("lookup")
        return rows.lookup(keys, tuple(self.schema.names) if columns is None else self._column_names(columns))

    def _keyed_rows(self, method: str) -> KeyedRows:
        """The rows by their primary key, to be changed. Raises InputError where there is none, ReadOnly."""
        rows = self.row_store.by_key(method)
        self._check_writable()
        return rows

    def _finish(self, committed: Committed) -> Snapshot:
        """Move to where a statement ended; give the snapshot that it made, or that is read if it made none."""
        self.stored = committed.head
        return committed.state.snapshot
