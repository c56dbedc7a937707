"""Tables come into a warehouse: created, staged, cloned and registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.ingest import arrow_input
from fuse_index.table.arguments import table_key
from fuse_index.table.open import check_url
from fuse_index.table.table import Table
from fuse_index.warehouse.attaching import AttachingMixin
from fuse_index.warehouse.replacement import Replacement, begin_replacement
from fuse_index.warehouse.tables import texts_about
from fuse_storage import CommitUnknown, CreateTable, InvalidArgument, NewTable, StoredTable

_WAREHOUSE_PROPERTIES = ("comment", "owner")
"""Properties of a new table that the warehouse keeps; all others are the table's own."""


class CreationMixin(AttachingMixin):
    """The part of ``fuse_index.Catalog`` that makes tables, and names those that are there."""

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
        """Create an empty table in a folder of its own.

        Args:
            identifier: Its name, such as ``"shop.orders"`` or ``["shop", "orders"]``.
            schema: As for ``fuse_index.create_table``.
            cluster_by: As for ``fuse_index.create_table``.
            properties: As for ``fuse_index.create_table``; ``comment`` and ``owner`` are kept by the warehouse.
            key: As for ``fuse_index.create_table``.
            partition_by: As for ``fuse_index.create_table``.
            primary_key: As for ``fuse_index.create_table``.
            replace: A table of this name becomes this one, and keeps its versions and tags; if it has another primary
                key, other partition columns or somebody else's files, it is dropped in the same moment instead.

        Returns:
            The table, open at its first snapshot.

        Raises:
            AlreadyExists: The name is taken.
            NotFound: There is no such namespace.
            InputError: What cannot be, or SchemaError, InvalidArgument, as ``fuse_index.create_table`` raises.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-create", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT", properties={"owner": "ann"})
            >>> catalog.load_table_properties("orders")
            {'owner': 'ann'}
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
        """Load the table of this name as it is, or create it if there is none.

        Args:
            identifier: Its name.
            schema: As for ``create_table``.
            cluster_by: As for ``create_table``.
            properties: As for ``create_table``.
            key: As for ``create_table``.
            partition_by: As for ``create_table``.
            primary_key: As for ``create_table``.

        Returns:
            The table.

        Raises:
            NotFound: There is no such namespace.
            InputError: What cannot be, or SchemaError, InvalidArgument, as ``create_table`` raises.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-if-not-exists", create=True)
            >>> snapshot = catalog.create_table_if_not_exists("orders", "id BIGINT").append([{"id": 1}])
            >>> catalog.create_table_if_not_exists("orders", "id BIGINT").count()
            1
        """
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
        """Make a table that nobody sees before it is committed: rows can be written to it until then. It has a day.

        Args:
            identifier: Its name.
            schema: As for ``create_table``.
            cluster_by: As for ``create_table``.
            properties: As for ``create_table``.
            key: As for ``create_table``.
            partition_by: As for ``create_table``.
            primary_key: As for ``create_table``.
            replace: As for ``create_table``.

        Returns:
            Its ``table``, which takes rows; ``commit()`` shows it, ``abort()`` removes it.

        Raises:
            AlreadyExists: The name is taken, as far as can be told before.
            NotFound: There is no such namespace.
            InputError: What cannot be, or SchemaError, InvalidArgument, as ``create_table`` raises.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-stage", create=True)
            >>> staged = catalog.stage_table("orders", "id BIGINT")
            >>> snapshot = staged.table.append([{"id": 1}])
            >>> catalog.table_exists("orders")
            False
            >>> staged.commit()
            >>> catalog.load_table("orders").count()
            1
        """
        about, own = _split_properties(properties or {})
        arrow_schema, identity = arrow_input.resolve_arrow_schema(schema), table_key(key, primary_key)
        if replace:
            fresh = storage.first_snapshot(arrow_schema, cluster_by, own, identity, partition_by)
            if (replacement := begin_replacement(self, identifier, fresh, about)) is not None:
                return replacement

        def make(store: storage.Store) -> Table:
            layout = (tuple(cluster_by), own, identity, tuple(partition_by))
            return self._to_table(StoredTable.create(store, arrow_schema, *layout), name)

        name = storage.parse_identifier(identifier)
        return storage.stage_table(self.warehouse, name, make, about, replace)

    def clone_table(self, identifier: str | Sequence[str], source: Any) -> Table:
        """Make a table of the snapshot that another reads; both share its files, as with ``Table.clone``.

        Args:
            identifier: The name of the new table.
            source: An open table.

        Returns:
            The new table.

        Raises:
            AlreadyExists: The name is taken.
            NotFound: There is no such namespace.
            InputError: ``source`` is no open table.
            Conflict: A vacuum of the source ran at the same time.
            ReadOnly: The source is without its tail.
            StorageError: A store fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-clone", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> catalog.clone_table("trial", table).count()
            1
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

    def register_table(
        self, identifier: str | Sequence[str], location: Any, properties: Mapping[str, str] | None = None
    ) -> Table:
        """Give a table that is there a name; nothing of it moves, and nothing that is done to the name deletes it.

        Args:
            identifier: The name.
            location: Its path or URL; on another store than the warehouse's, the user has to name the place by the
                option ``shared_places``, now and whenever the table is loaded.
            properties: What the warehouse is to say of it, such as ``comment`` and ``owner``.

        Returns:
            The table.

        Raises:
            NotFound: There is no table, or no such namespace.
            AlreadyExists: The name is taken, or the table has one.
            InvalidArgument: A property is the table's own.
            StorageError: A store fails.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> snapshot = fuse.create_table(f"{folder}/elsewhere", "id BIGINT").append([{"id": 1}])
            >>> catalog = fuse.catalog(f"{folder}/warehouse", create=True)
            >>> catalog.register_table("orders", f"{folder}/elsewhere").count()
            1
        """
        name, store = storage.parse_identifier(identifier), self.warehouse.store
        place = storage.location_of(store, _table_url(location, store))
        stored = StoredTable.open(storage.open_table_store(store, place))
        action = CreateTable(storage.new_id(), name, place, False, texts_about(properties or {}))
        self.warehouse.commit(lambda state: [action])
        return self._to_table(stored, name)


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
