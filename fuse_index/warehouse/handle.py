"""What all parts of a catalogue share: the warehouse, the kinds that are installed, and how conditions are meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import fuse_storage as storage
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.table.sources import follow_source
from fuse_index.table.table import Table
from fuse_storage import CatalogState, CatalogTable, Identifier, Namespace

SOURCE_INDEXES = ("_source_indexes",)
"""The namespace of tables for votes alone, which nobody reads by a name, and listings pass over."""


@dataclass(repr=False)
class CatalogHandle:
    """A warehouse. Each call looks at the names as they are then; nothing is remembered that could be out of date."""

    warehouse: storage.Warehouse
    host: Host
    context: Context = field(default_factory=Context)

    @property
    def url(self) -> str:
        """Where the warehouse is."""
        return self.warehouse.store.url

    def find_table(self, identifier: str | Sequence[str]) -> CatalogTable:
        """What the warehouse knows of a table.

        Args:
            identifier: Its name.

        Returns:
            Its id, name, location and properties.

        Raises:
            NotFound: There is no such table; near names are said.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-find", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> catalog.find_table("ORDERS").name
            'orders'
        """
        return self.warehouse.state().find_table(storage.parse_identifier(identifier))

    def _change(self, identifier: str | Sequence[str], decide: Callable[[CatalogTable], Any]) -> CatalogTable:
        """Do something to the table that now has this name, and to no other that gets it meanwhile.

        Raises NotFound, and Conflict if the name is another table's by the time that it would be done.
        """
        table = self.find_table(identifier)
        self.warehouse.commit(lambda state: [decide(storage.same_table(state, table))])
        return table

    def _table_store(self, table: CatalogTable) -> storage.Store:
        store = storage.open_table_store(self.warehouse.store, table.location)
        read_only = isinstance(self.warehouse.store, storage.ReadOnlyStore)
        return storage.ReadOnlyStore(store) if read_only else store

    def _to_table(
        self, stored: storage.StoredTable, name: Identifier, pinned: bool = False, with_tail: bool = True
    ) -> Table:
        table = Table(stored, self.host, self.context, pinned, with_tail, storage.join_identifier(name))
        follow_source(table)
        return table


def tables_within(state: CatalogState, namespace: Identifier) -> list[CatalogTable]:
    """The tables of a namespace in the order of their names. Raises NotFound."""
    state.find_namespace(namespace)
    return sorted(state.tables_in(namespace), key=lambda table: table.identifier)


def namespaces_within(state: CatalogState, namespace: Identifier) -> list[Namespace]:
    """The namespaces within one that people made, in the order of their names. Raises NotFound."""
    state.find_namespace(namespace)
    found = (each for each in state.namespaces_in(namespace) if each.identifier != SOURCE_INDEXES)
    return sorted(found, key=lambda each: each.identifier)
