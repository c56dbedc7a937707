"""The catalogue of a warehouse: tables by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.ingest import arrow_input
from fuse_index.predicate import Context
from fuse_index.table.arguments import check_arguments, check_public_methods, table_key
from fuse_index.table.open import attach, check_url
from fuse_index.table.table import Table
from fuse_index.warehouse.dropped import DroppedMixin
from fuse_index.warehouse.handle import tables_within
from fuse_index.warehouse.namespaces import NamespacesMixin
from fuse_index.warehouse.replacement import Replacement, begin_replacement
from fuse_storage import (
    CatalogTable,
    CommitUnknown,
    CreateTable,
    DropTable,
    Identifier,
    InvalidArgument,
    NewTable,
    NotFound,
    RenameTable,
    StoredTable,
    UpdateTable,
)

_WAREHOUSE_PROPERTIES = ("comment", "owner")
"""Properties of a new table that the warehouse keeps; all others are the table's own."""


@check_arguments
def catalog(
    url: Any,
    options: Mapping[str, str] | None = None,
    *,
    create: bool = False,
    host: Host | None = None,
    context: Context | None = None,
) -> Catalog:
    """Open the warehouse at a path or URL. Raises NotFound where there is none, unless ``create`` is to make it.

    ``options``: of the object store, for the tables too.
    """
    checked = check_url(url)
    store = checked if hasattr(checked, "read_ranges") else storage.open_store(checked, options)
    return Catalog(storage.Warehouse.open(store, create), host or Host.discover(), context or Context())


@check_public_methods
class Catalog(NamespacesMixin, DroppedMixin):
    """The names of a warehouse: its tables and namespaces, for all sessions that open it.

    A name is text with dots, ``"sales.eu.orders"``, or a list of its parts; two that differ only in case are the same.
    Each change is made whole or not at all; of two sessions that change one name at once one wins, and the other gets
    the error that it would have got a moment later, or Conflict if another table has the name by now.
    """

    def __repr__(self) -> str:
        return f"Catalog({self.url!r})"

    def create_table(
        self,
        identifier: str | Sequence[str],
        schema: Any,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        replace: bool = False,
    ) -> Table:
        """Create an empty table in a folder of its own. What is given is as in ``fuse_index.create_table``.

        Of ``properties``, ``comment`` and ``owner`` are kept by the warehouse. ``replace``: a table of this name
        becomes this one, and keeps its versions and tags; if it has another primary key, other partition columns or
        somebody else's files, it is dropped in the same moment instead. Raises AlreadyExists, NotFound for its
        namespace, and as ``create_table`` does.
        """
        keys: dict[str, Any] = {"key": key, "partition_by": partition_by, "primary_key": primary_key}
        staged = self.stage_table(identifier, schema, cluster_by, properties, replace=replace, **keys)
        staged.commit()
        return staged.table

    def create_table_if_not_exists(
        self,
        identifier: str | Sequence[str],
        schema: Any,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        primary_key: Sequence[str] = (),
    ) -> Table:
        """Load the table of this name as it is, or create it if there is none. Raises as these do otherwise."""
        if not self.table_exists(identifier):
            with suppress(storage.AlreadyExists):  # somebody else was just first
                keys: dict[str, Any] = {"key": key, "partition_by": partition_by, "primary_key": primary_key}
                return self.create_table(identifier, schema, cluster_by, properties, **keys)
        return self.load_table(identifier)

    def stage_table(
        self,
        identifier: str | Sequence[str],
        schema: Any,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        replace: bool = False,
    ) -> NewTable[Table] | Replacement:
        """Make a table that nobody sees before ``commit()``: rows can be written to its ``table`` until then.

        ``abort()`` removes it. It has a day. Raises as ``create_table`` does, as far as can be told before.
        """
        about, own = _split_properties(properties or {})
        arrow_schema, identity = arrow_input.resolve_arrow_schema(schema), table_key(key, primary_key)
        if replace:
            fresh = storage.first_snapshot(arrow_schema, cluster_by, own, identity, partition_by)
            if (replacement := begin_replacement(self, identifier, fresh, about)) is not None:
                return replacement

        def make(store: storage.Store) -> Table:
            layout = (tuple(cluster_by), own, None, identity, tuple(partition_by))
            return self._to_table(StoredTable.create(store, arrow_schema, *layout))

        return storage.stage_table(self.warehouse, storage.parse_identifier(identifier), make, about, replace)

    def clone_table(self, identifier: str | Sequence[str], source: Any) -> Table:
        """Make a table of the snapshot that ``source``, an open table, reads; both share its files, as ``Table.clone``.

        Raises AlreadyExists, NotFound for its namespace, and as ``Table.clone`` does.
        """
        if not isinstance(source, Table):
            raise InputError(f"source={source!r}: give an open table, such as load_table gives")
        staged = storage.stage_table(
            self.warehouse,
            storage.parse_identifier(identifier),
            lambda store: source.clone(store.url, getattr(store, "options", None)),
        )
        try:
            staged.commit()
        except CommitUnknown:
            raise
        except storage.StorageError:  # its files are gone again, and need nothing of the source
            source.untag(staged.table.snapshot.summary["cloned_from"]["tag"])
            raise
        return staged.table

    def attach_table(
        self,
        identifier: str | Sequence[str],
        source: str | Path,
        format: str = "parquet",  # noqa: A002  # promised
    ) -> Table:
        """Make a table over the files of another, as ``fuse_index.attach``, under a name.

        Raises AlreadyExists, NotFound for its namespace, and as ``attach`` does.
        """
        staged = storage.stage_table(
            self.warehouse,
            storage.parse_identifier(identifier),
            lambda store: attach(source, store.url, format, options=getattr(store, "options", None), host=self.host),
        )
        staged.commit()
        return staged.table

    def register_table(
        self, identifier: str | Sequence[str], location: Any, properties: Mapping[str, str] | None = None
    ) -> Table:
        """Give a table that is there a name; nothing of it moves, and nothing that is done to the name deletes it.

        ``properties``: what the warehouse is to say of it, such as ``comment`` and ``owner``.
        ``location``: its path or URL; on another store than the warehouse's, the user has to name the place by the
        option ``shared_places``, now and whenever the table is loaded. Raises NotFound where there is no table,
        AlreadyExists if the name is taken, or the table has one.
        """
        name, store = storage.parse_identifier(identifier), self.warehouse.store
        place = storage.location_of(store, _table_url(location, store))
        stored = StoredTable.open(storage.open_table_store(store, place))
        action = CreateTable(storage.new_id(), name, place, False, _texts_about(properties or {}))
        self.warehouse.commit(lambda state: [action])
        return self._to_table(stored)

    def load_table(
        self,
        identifier: str | Sequence[str],
        branch: str = "main",
        at: str | datetime | None = None,
        *,
        read_only: bool = False,
    ) -> Table:
        """Open a table by its name, as ``fuse_index.open_table`` does by its place. Raises NotFound."""
        found = self.find_table(identifier)
        store = self._table_store(found)
        try:
            stored = StoredTable.open(storage.ReadOnlyStore(store) if read_only else store, branch, at)
        except NotFound as missing:
            if next(iter(store.list("_refs")), None) is not None:
                raise
            raise NotFound(
                f"table {found.name!r} has a name, and no files at {store.url}: restore them, or drop it"
            ) from missing
        return self._to_table(stored, pinned=at is not None)

    def table_url(self, identifier: str | Sequence[str]) -> str:
        """The path or URL of a table, which does not change while it lives. Raises NotFound, StorageError."""
        return self._table_store(self.find_table(identifier)).url

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        """Whether a table has this name."""
        with suppress(NotFound):
            self.find_table(identifier)
            return True
        return False

    def list_tables(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """The tables of a namespace, by default those that are in none, as tuples, by name. Raises NotFound."""
        within = storage.parse_identifier(namespace) if namespace else ()
        return [table.identifier for table in tables_within(self.warehouse.state(), within)]

    def rename_table(self, from_identifier: str | Sequence[str], to_identifier: str | Sequence[str]) -> None:
        """Give a table another name, in whatever namespace; nothing of it moves, and its folder keeps its own name.

        Raises NotFound, AlreadyExists, Conflict.
        """
        target = storage.parse_identifier(to_identifier)
        self._change(from_identifier, lambda table: RenameTable(table.id, table.identifier, target))

    def drop_table(self, identifier: str | Sequence[str], *, purge: bool = False) -> None:
        """Take a table's name away; its files stay until ``purge_dropped``, and ``undrop_table`` brings it back.

        ``purge``: its files are deleted at once. Raises NotFound, Conflict; InvalidArgument for the purge of a
        registered table, whose files are not the warehouse's.
        """
        if purge:
            storage.purge_table(self.warehouse, storage.parse_identifier(identifier))
        else:
            self._change(identifier, lambda table: DropTable(table.id, table.identifier))

    def load_table_properties(self, identifier: str | Sequence[str]) -> dict[str, str]:
        """What the warehouse says of a table: ``comment``, ``owner`` and whatever was set. Raises NotFound."""
        return dict(self.find_table(identifier).properties)

    def update_table_properties(
        self,
        identifier: str | Sequence[str],
        removals: Sequence[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Remove and set what the warehouse says of a table, and return what it is then. Raises NotFound, Conflict."""
        new, old = _texts_about(updates or {}), tuple(_texts_about(dict.fromkeys(removals or (), "")))
        self._change(identifier, lambda table: UpdateTable(table.id, table.identifier, new, old))
        return self.load_table_properties(identifier)


def _texts_about(properties: Mapping[str, str]) -> dict[str, str]:
    """What a warehouse says of a table. Raises InvalidArgument for what only the table itself can say."""
    for name in properties:
        if name in storage.KNOWN_PROPERTIES:
            raise InvalidArgument(f"{name!r} is a property of the table itself, and not of its name")
    return dict(properties)


def _split_properties(properties: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """What the warehouse keeps, and what is the table's own."""
    about = {name: value for name, value in properties.items() if name in _WAREHOUSE_PROPERTIES}
    for name, value in about.items():
        if not isinstance(value, str):
            raise InvalidArgument(f"property {name} = {value!r}: give a text")
    return about, {name: value for name, value in properties.items() if name not in about}


def _table_url(location: Any, warehouse: storage.Store) -> str:
    """The whole URL of a place; a path may be relative to the working folder."""
    checked = check_url(location)
    if hasattr(checked, "read_ranges"):
        return str(checked.url)
    return storage.open_store(checked, dict(getattr(warehouse, "options", None) or {})).url


__all__ = ["Catalog", "CatalogTable", "catalog"]
