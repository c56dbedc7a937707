"""The part of a table that tells which rows changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fuse_index.changes.changes import Changes, check_is_ancestor
from fuse_index.handle import TableHandle, resolve_column_names, resolve_predicate
from fuse_index.predicate import Predicate


class ChangesMixin(TableHandle):
    """The part of ``fuse_index.Table`` that says which rows changed."""

    def changes(
        self,
        since: str | int | datetime,
        until: str | int | datetime | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        key: Sequence[str] | None = None,
        preimages: bool = True,
    ) -> Changes:
        """Find the rows inserted and deleted since a snapshot, up to a later one.

        Changes are net: rows that were copied, or came and went, are none.

        Args:
            since: A snapshot id, a tag or a time.
            until: A later one; by default the snapshot of this handle.
            columns: Columns of the later snapshot; by default all.
            where: Only of the rows on which it is true, so that a row that comes to match is inserted.
            key: The columns that identify a row: what was deleted and inserted under one key is a pair of
                ``update_preimage`` and ``update_postimage``. By default the table's own (see ``key_by``); [] for no
                pairs.
            preimages: False, for tables with a primary key, looks nothing up: of each key that was put or deleted the
                last row is an ``update_postimage``, equal to the one before or not, or a ``delete`` that has the key,
                and NULL elsewhere. So there is no ``where``, and no other ``key``.

        Returns:
            The changes, which are read when asked for: the columns, and ``_change_type``, ``insert`` or ``delete`` or
            as above.

        Raises:
            NotFound: A snapshot was never there, or was collected.
            InvalidArgument: The one snapshot did not lead to the other.
            SchemaError: A column is unknown, or rows of then do not fit the columns of now.
            InputError: A key cannot be one, or what is asked for without preimages.
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://changes", "id BIGINT")
            >>> empty = table.snapshot
            >>> snapshot = table.append([{"id": 1}])
            >>> table.changes(empty.id).to_arrow().to_pylist()
            [{'id': 1, '_change_type': 'insert'}]
        """
        self.snapshot.check_rows()
        before, after = self._stored_at(since), self.stored if until is None else self._stored_at(until)
        check_is_ancestor(before, after)
        later = after.snapshot
        names = tuple(later.schema.names) if columns is None else resolve_column_names(columns, later, self.context)
        key_names = later.key if key is None else resolve_column_names(key, later, self.context)
        predicate = resolve_predicate(where, later, self.engine)
        tail = self.with_tail
        return Changes(before, after, after, names, key_names, predicate, self.engine, tail, preimages, True).validate()
