"""What was done to a name, and how dropped tables come back or go for ever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

import fuse_storage as storage
from fuse_index.table.arguments import parse_duration
from fuse_index.table.table import Table
from fuse_index.warehouse.handle import CatalogHandle
from fuse_storage import Advice, DroppedTable, NotFound, UndropTable

NAME_HISTORY_SCHEMA = pa.schema(
    [
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("table_id", pa.string()),
        ("detail", pa.string()),
        ("commit", pa.string()),
    ]
)
DROPPED_TABLES_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("table_id", pa.string()),
        ("dropped", pa.timestamp("us", "UTC")),
        ("managed", pa.bool_()),
        ("location", pa.string()),
    ]
)
PURGED_SCHEMA = pa.schema([("name", pa.string()), ("table_id", pa.string()), ("kept_because", pa.string())])


class DroppedMixin(CatalogHandle):
    """The part of ``fuse_index.Catalog`` that is about the past."""

    def history(self, identifier: str | Sequence[str]) -> pa.Table:
        """What was done to a name, oldest first, whichever tables and namespaces had it. Reads the whole log.

        Args:
            identifier: The name.

        Returns:
            A row for each: ``timestamp``, ``operation``, ``table_id``, ``detail`` (the other name of a rename, the
            place of a registered table, the properties that changed) and ``commit``.

        Raises:
            InvalidArgument: What is no name.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-history", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.history("orders").column("operation").to_pylist()
            ['create']
        """
        entries = list(self.warehouse.entries())[::-1]
        rows = [
            {
                "timestamp": event.timestamp,
                "operation": event.operation,
                "table_id": event.table_id,
                "detail": event.detail,
                "commit": event.commit_id,
            }
            for event in storage.name_history(entries, storage.parse_identifier(identifier))
        ]
        return pa.Table.from_pylist(rows, NAME_HISTORY_SCHEMA)

    def list_dropped(self) -> pa.Table:
        """List the tables that can be undropped, the latest first.

        Returns:
            A row for each: ``name``, ``table_id``, ``dropped`` (when), ``managed`` and ``location``.

        Raises:
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-dropped", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.drop_table("orders")
            >>> catalog.list_dropped().column("name").to_pylist()
            ['orders']
        """
        found = sorted(self.warehouse.state().dropped.values(), key=lambda each: each.sequence, reverse=True)
        rows = [
            {
                "name": each.table.name,
                "table_id": each.table.id,
                "dropped": each.timestamp,
                "managed": each.table.managed,
                "location": each.table.location,
            }
            for each in found
        ]
        return pa.Table.from_pylist(rows, DROPPED_TABLES_SCHEMA)

    def undrop_table(
        self, identifier: str | Sequence[str], table_id: str | None = None, to: str | Sequence[str] | None = None
    ) -> Table:
        """Give a dropped table its name back, or another.

        Args:
            identifier: The name that it had; of several, the one that was dropped last comes back.
            table_id: Another one of them, as ``list_dropped`` tells.
            to: The name that it gets.

        Returns:
            The table.

        Raises:
            NotFound: No such table was dropped, or it was purged.
            AlreadyExists: The name is taken.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-undrop", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.drop_table("orders")
            >>> table = catalog.undrop_table("orders", to="purchases")
            >>> catalog.list_tables()
            [('purchases',)]
        """
        name = storage.parse_identifier(identifier)
        target = name if to is None else storage.parse_identifier(to)

        found = _choose(self.warehouse.state().dropped_as(name), name, table_id).table
        stored = storage.StoredTable.open(self._table_store(found))
        self.warehouse.commit(lambda state: [UndropTable(found.id, target)])
        return self._to_table(stored, target)

    def purge_dropped(self, older_than: timedelta | str = timedelta(days=7), *, dry_run: bool = False) -> pa.Table:
        """Delete the files of tables that were dropped long ago; they cannot be undropped any more.

        Files of registered tables are never deleted. What creations and purges left that died goes, too.

        Args:
            older_than: How long ago: a timedelta, or text such as ``"12h"``, ``"30d"``.
            dry_run: Delete nothing.

        Returns:
            A row for each: ``name``, ``table_id`` and ``kept_because``, which says why a table stays whose files a
            clone shares.

        Raises:
            InputError: ``older_than`` is no duration.
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://catalog-purge", create=True).purge_dropped("30d").num_rows
            0
        """
        age = parse_duration(older_than, "older_than")
        rows = [
            {"name": each.name, "table_id": each.table_id, "kept_because": each.reason}
            for each in storage.purge_dropped(self.warehouse, age, dry_run)
        ]
        return pa.Table.from_pylist(rows, PURGED_SCHEMA)

    def was_committed(self, commit_id: str) -> bool:
        """Say whether a change, of which CommitUnknown told, was made. Reads the whole log if it was not.

        Args:
            commit_id: The id that the error has.

        Returns:
            True if it was.

        Raises:
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://catalog-was-committed", create=True).was_committed("none")
            False
        """
        return self.warehouse.was_committed(commit_id)


def _choose(dropped: Sequence[DroppedTable], name: storage.Identifier, table_id: str | None) -> DroppedTable:
    shown = storage.join_identifier(name)
    if not dropped:
        raise NotFound(f"no table {shown!r} was dropped, or it was purged: look at " + Advice.call("list_dropped"))
    found = [each for each in dropped if table_id in (None, each.table.id)]
    if not found:
        ids = [each.table.id for each in dropped]
        raise NotFound(f"no table {shown!r} with the id {table_id!r} was dropped: there is {ids}")
    return found[0]
