"""The catalogue of a warehouse: tables by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.table.arguments import check_arguments, check_public_methods
from fuse_index.table.open import check_url
from fuse_index.warehouse.creation import CreationMixin
from fuse_index.warehouse.dropped import DroppedMixin
from fuse_index.warehouse.handle import SOURCE_INDEXES
from fuse_index.warehouse.namespaces import NamespacesMixin
from fuse_index.warehouse.source_indexes import SourceIndexesMixin
from fuse_index.warehouse.upkeep import UpkeepMixin
from fuse_storage import CatalogTable, StorageError, missing_names, show_card, show_line, value_grid


@check_arguments
def catalog(
    url: Any,
    options: Mapping[str, str] | None = None,
    *,
    create: bool = False,
    host: Host | None = None,
    context: Context | None = None,
) -> Catalog:
    """Open the warehouse at a path or URL: a folder in which tables have names.

    Args:
        url: Where the warehouse is, a path, a URL or an open store.
        options: Of the object store, for the tables too.
        create: Make it where there is none.
        host: Index kinds and functions; by default those that are installed.
        context: How conditions are meant; by default as in a new Spark session.

    Returns:
        The catalogue of the warehouse.

    Raises:
        NotFound: There is no warehouse, and ``create`` is not given.
        InputError: An argument is of a type that is not taken.
        StorageError: The store fails.

    Example:
        >>> catalog = fuse.catalog("memory://warehouse", create=True)
        >>> catalog.create_namespace("shop")
        >>> table = catalog.create_table("shop.orders", "id BIGINT")
        >>> catalog.list_tables("shop")
        [('shop', 'orders')]
    """
    checked = check_url(url)
    store = checked if hasattr(checked, "read_ranges") else storage.open_store(checked, options)
    return Catalog(storage.Warehouse.open(store, create), host or Host.discover(), context or Context())


@check_public_methods
class Catalog(CreationMixin, NamespacesMixin, SourceIndexesMixin, DroppedMixin, UpkeepMixin):
    """The names of a warehouse: its tables and namespaces, for all sessions that open it.

    A name is text with dots, ``"sales.eu.orders"``, or a list of its parts; two that differ only in case are the same.
    Each change is made whole or not at all; of two sessions that change one name at once one wins, and the other gets
    the error that it would have got a moment later, or Conflict if another table has the name by now.
    """

    if not TYPE_CHECKING:  # for who takes the class for the function

        def __new__(cls, warehouse: Any = None, *_: Any, **__: Any) -> Catalog:
            if isinstance(warehouse, str | PathLike):
                raise InputError(f"a warehouse is opened by catalog({str(warehouse)!r})")
            return super().__new__(cls)

        __getattr__ = missing_names(
            dict.fromkeys(("tables", "list", "ls", "show_tables"), "say catalog.list_tables(namespace)")
            | dict.fromkeys(("table", "get_table", "open_table", "get", "read"), "say catalog.load_table(name)")
            | dict.fromkeys(("namespaces", "schemas", "databases"), "say catalog.list_namespaces()")
            | dict.fromkeys(("create_schema", "create_database"), "say catalog.create_namespace(name)")
            | {"set_properties": "say catalog.update_table_properties(name, updates)"}
        )

    def __repr__(self) -> str:
        return show_line("Catalog", {}, self.url)

    def _repr_html_(self) -> str:
        return show_card("Catalog", {"warehouse": self.url}, self._sections())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in ("context", "host", "warehouse")]

    def _sections(self) -> Iterator[str]:
        try:
            state = self.warehouse.state()
        except StorageError as problem:
            yield value_grid(["problem"], [[str(problem)]])
            return
        named = (each for each in state.tables.values() if each.identifier[:1] != SOURCE_INDEXES)
        tables = sorted(named, key=lambda each: each.identifier)
        rows = ([each.name, each.location, each.created] for each in tables)
        yield value_grid(["table", "location", "created"], rows, len(tables), "Tables", "tables")


__all__ = ["Catalog", "CatalogTable", "catalog"]
