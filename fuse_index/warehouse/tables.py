"""Tables of a warehouse by their names: opened, listed, renamed, described and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import fuse_storage as storage
from fuse_index.table.table import Table
from fuse_index.warehouse.handle import CatalogHandle, tables_within
from fuse_storage import DropTable, Identifier, InvalidArgument, NotFound, RenameTable, StoredTable, UpdateTable


class TablesMixin(CatalogHandle):
    """The part of ``fuse_index.Catalog`` that is about tables that are there."""

    def load_table(
        self,
        identifier: str | Sequence[str],
        branch: str = "main",
        at: str | int | datetime | None = None,
        *,
        version: int | None = None,
        tail: bool = True,
        read_only: bool = False,
    ) -> Table:
        """Open a table by its name, as ``fuse_index.open_table`` does by its place.

        Args:
            identifier: Its name.
            branch: Which branch.
            at: A snapshot id, a tag, a version or a time; such a handle only reads.
            version: The state of the branch by its number, which may also be said as ``at=3``.
            tail: False leaves out rows that are not tiered yet; such a handle only reads.
            read_only: Whatever would write or delete anything raises ReadOnly.

        Returns:
            A handle of the table.

        Raises:
            NotFound: There is no such table, branch, snapshot or tag; or its files are gone.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-load", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.load_table("orders").count()
            0
        """
        found = self.find_table(identifier)
        store = self._table_store(found)
        try:
            place = storage.ReadOnlyStore(store) if read_only else store
            stored = StoredTable.open(place, branch, at, version=version)
        except NotFound as missing:
            if next(iter(store.list("_refs")), None) is not None:
                raise
            raise NotFound(
                f"table {found.name!r} has a name, and no files at {store.url}: restore them, or drop it"
            ) from missing
        pinned = at is not None or version is not None or not tail
        return self._to_table(stored if tail else stored.without_tail(), found.identifier, pinned, tail)

    def table_url(self, identifier: str | Sequence[str]) -> str:
        """The path or URL of a table, which does not change while it lives.

        Args:
            identifier: Its name.

        Returns:
            The place, as ``fuse_index.open_table`` takes it.

        Raises:
            NotFound: There is no such table.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-url", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.table_url("orders").startswith("memory://catalog-url/")
            True
        """
        return self._table_store(self.find_table(identifier)).url

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Say whether a table has this name.

        Args:
            identifier: The name.

        Returns:
            True if there is one now.

        Raises:
            InvalidArgument: What is no name.
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://catalog-exists", create=True).table_exists("orders")
            False
        """
        with suppress(NotFound):
            self.find_table(identifier)
            return True
        return False

    def list_tables(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """List the tables of a namespace, by name.

        Args:
            namespace: Its name; by default the tables that are in none.

        Returns:
            Names, as tuples of their parts.

        Raises:
            NotFound: There is no such namespace.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-list", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.list_tables()
            [('orders',)]
        """
        within = storage.parse_identifier(namespace) if namespace else ()
        return [table.identifier for table in tables_within(self.warehouse.state(), within)]

    def rename_table(self, from_identifier: str | Sequence[str], to_identifier: str | Sequence[str]) -> None:
        """Give a table another name, in whatever namespace; nothing of it moves, and its folder keeps its own name.

        Args:
            from_identifier: The name that it has.
            to_identifier: The new name.

        Raises:
            NotFound: There is no such table, or no namespace for the new name.
            AlreadyExists: The new name is taken.
            Conflict: Another table has the name by now.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-rename", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.rename_table("orders", "purchases")
            >>> catalog.list_tables()
            [('purchases',)]
        """
        target = storage.parse_identifier(to_identifier)
        self._change(from_identifier, lambda table: RenameTable(table.id, table.identifier, target))

    def drop_table(self, identifier: str | Sequence[str], *, purge: bool = False) -> None:
        """Take a table's name away; its files stay until ``purge_dropped``, and ``undrop_table`` brings it back.

        Args:
            identifier: Its name.
            purge: Delete its files at once.

        Raises:
            NotFound: There is no such table.
            Conflict: Another table has the name by now.
            InvalidArgument: The purge of a registered table, whose files are not the warehouse's.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-drop", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.drop_table("orders")
            >>> catalog.undrop_table("orders").count()
            0
        """
        if purge:
            storage.purge_table(self.warehouse, storage.parse_identifier(identifier))
        else:
            self._change(identifier, lambda table: DropTable(table.id, table.identifier))

    def load_table_properties(self, identifier: str | Sequence[str]) -> dict[str, str]:
        """What the warehouse says of a table: ``comment``, ``owner`` and whatever was set.

        Args:
            identifier: Its name.

        Returns:
            Texts by name; the table's own properties are ``table.snapshot.properties``.

        Raises:
            NotFound: There is no such table.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-properties", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT", properties={"comment": "as they come"})
            >>> catalog.load_table_properties("orders")
            {'comment': 'as they come'}
        """
        return dict(self.find_table(identifier).properties)

    def update_table_properties(
        self,
        identifier: str | Sequence[str],
        removals: Sequence[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Remove and set what the warehouse says of a table, at once.

        Args:
            identifier: Its name.
            removals: Names to remove.
            updates: Texts to set, by name.

        Returns:
            What the warehouse says then.

        Raises:
            NotFound: There is no such table.
            InvalidArgument: A property is the table's own: set it by ``Table.set_properties``.
            Conflict: Another table has the name by now.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-update-properties", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.update_table_properties("orders", updates={"owner": "ann"})
            {'owner': 'ann'}
        """
        new, old = texts_about(updates or {}), tuple(texts_about(dict.fromkeys(removals or (), "")))
        self._change(identifier, lambda table: UpdateTable(table.id, table.identifier, new, old))
        return self.load_table_properties(identifier)


def texts_about(properties: Mapping[str, str]) -> dict[str, str]:
    """What a warehouse says of a table. Raises InvalidArgument for what only the table itself can say."""
    for name in properties:
        if name in storage.KNOWN_PROPERTIES:
            raise InvalidArgument(f"{name!r} is a property of the table itself, and not of its name")
    return dict(properties)
