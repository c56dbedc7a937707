"""The names of a warehouse at one time: what its log adds up to, and what forbids a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from fuse_storage.card import Shown
from fuse_storage.catalog.actions import (
    CatalogAction,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    ForgetTables,
    PurgeTables,
    RenameTable,
    UndropTable,
    UpdateNamespace,
    UpdateTable,
)
from fuse_storage.catalog.log import CatalogEntry
from fuse_storage.catalog.names import Identifier, fold_identifier, join_identifier
from fuse_storage.errors import Advice, AlreadyExists, NotEmpty, NotFound
from fuse_storage.metadata.tags import did_you_mean


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, as it is spelled, and its properties."""

    identifier: Identifier
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class CatalogTable(Shown):
    """A table of a warehouse: its id, its name, and where it is.

    ``location``: the key of its folder in the warehouse, or the URL or absolute path of another place. ``managed``:
    the warehouse made it. ``created``: when it got its first name here.
    """

    _shown = "name location managed created properties id"

    id: str
    identifier: Identifier
    location: str
    managed: bool
    properties: Mapping[str, str]
    created: datetime

    @property
    def name(self) -> str:
        """The name as text."""
        return join_identifier(self.identifier)


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that has no name any more. ``sequence``: the number of the entry that dropped it."""

    table: CatalogTable
    timestamp: datetime
    sequence: int


@dataclass(slots=True)
class CatalogState:
    """All names after one entry of the log; before the first one there are none. Never changed but by ``after``.

    ``namespaces`` and ``tables`` are by folded names, ``dropped`` by ids, ``purging`` locations by ids. ``ids``: of
    ``tables``; ``places``: ids by the locations that no other table may have.
    """

    sequence: int = 0
    commit_id: str | None = None
    timestamp: datetime | None = None
    namespaces: dict[Identifier, Namespace] = field(default_factory=dict)
    tables: dict[Identifier, CatalogTable] = field(default_factory=dict)
    dropped: dict[str, DroppedTable] = field(default_factory=dict)
    purging: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    def after(self, entries: Iterable[CatalogEntry]) -> CatalogState:
        """The state after these entries as well. Raises what forbids the first of them that cannot be."""
        state = replace(
            self,
            namespaces=dict(self.namespaces),
            tables=dict(self.tables),
            dropped=dict(self.dropped),
            purging=dict(self.purging),
            places=dict(self.places),
            ids=set(self.ids),
        )
        for entry in entries:
            state.sequence, state.commit_id, state.timestamp = entry.sequence, entry.commit_id, entry.timestamp
            for action in entry.actions:
                state.apply(action, entry)
        return state

    def find_table(self, identifier: Identifier) -> CatalogTable:
        """Raises NotFound, which names near names, or that it was dropped."""
        if (table := self.tables.get(fold_identifier(identifier))) is not None:
            return table
        self.find_namespace(identifier[:-1])
        name = join_identifier(identifier)
        if self.dropped_as(identifier):
            raise NotFound(f"there is no table {name!r}: it was dropped; undrop it, or create it anew")
        names = [table.identifier[-1] for table in self.tables_in(identifier[:-1])]
        if fold_identifier(identifier) in self.namespaces:
            inside = sorted(join_identifier(table.identifier) for table in self.tables_in(identifier))[:10]
            raise NotFound(f"there is no table {name!r}, which is a namespace: it has {inside or 'no tables'}")
        elsewhere = [join_identifier(each.identifier) for each in self.tables.values() if _ends_alike(each, identifier)]
        hint = f"; did you mean {sorted(elsewhere)}?" if elsewhere else did_you_mean(identifier[-1], names)
        raise NotFound(f"there is no table {name!r}{hint}")

    def find_namespace(self, identifier: Identifier) -> Namespace:
        """The namespace, of which the outermost has no name and is always there. Raises NotFound naming near names."""
        if not identifier:
            return Namespace(())
        if (namespace := self.namespaces.get(fold_identifier(identifier))) is not None:
            return namespace
        shown = (each.identifier for each in self.namespaces.values() if not each.identifier[0].startswith("_"))
        near = [join_identifier(each) for each in shown]
        name = join_identifier(identifier)
        raise NotFound(f"there is no namespace {name!r}{did_you_mean(name, near)}")

    def tables_in(self, namespace: Identifier) -> Iterator[CatalogTable]:
        """The tables of a namespace, not of those within it."""
        folded = fold_identifier(namespace)
        return (table for key, table in self.tables.items() if key[:-1] == folded)

    def namespaces_in(self, namespace: Identifier) -> Iterator[Namespace]:
        """The namespaces of a namespace, not of those within them."""
        folded = fold_identifier(namespace)
        return (found for key, found in self.namespaces.items() if key[:-1] == folded)

    def dropped_as(self, identifier: Identifier) -> list[DroppedTable]:
        """The tables that were dropped under this name, the latest first."""
        folded = fold_identifier(identifier)
        found = [each for each in self.dropped.values() if fold_identifier(each.table.identifier) == folded]
        return sorted(found, key=lambda each: each.sequence, reverse=True)

    def apply(self, action: CatalogAction, entry: CatalogEntry) -> None:
        """Do one thing that an entry does, to this very state. Raises what forbids it."""
        match action:
            case CreateNamespace():
                self._create_namespace(action)
            case UpdateNamespace(namespace=identifier):
                old = self.find_namespace(identifier)
                properties = _updated(old.properties, action)
                self.namespaces[fold_identifier(identifier)] = replace(old, properties=properties)
            case DropNamespace():
                self._drop_namespace(action, entry)
            case CreateTable():
                self._create_table(action, entry)
            case UpdateTable(identifier=identifier):
                table = self._table_with_id(action.id, identifier)
                properties = _updated(table.properties, action)
                self.tables[fold_identifier(identifier)] = replace(table, properties=properties)
            case RenameTable():
                table = self._table_with_id(action.id, action.source)
                del self.tables[fold_identifier(action.source)]
                self._name(replace(table, identifier=action.target))
            case DropTable():
                self._drop_table(self._table_with_id(action.id, action.identifier), entry, action.purge)
            case UndropTable():
                self._undrop(action)
            case PurgeTables():
                for each in action.ids:
                    self._purge(self._dropped_with_id(each).table)
            case ForgetTables():
                for each in action.ids:
                    self.places.pop(self.purging.pop(each, ""), None)

    def _create_namespace(self, action: CreateNamespace) -> None:
        if (there := self.namespaces.get(fold_identifier(action.namespace))) is not None:
            raise AlreadyExists(f"there is a namespace {join_identifier(there.identifier)!r} already")
        above = self._within(action.namespace)
        self.namespaces[fold_identifier(action.namespace)] = Namespace(above, dict(action.properties))

    def _drop_namespace(self, action: DropNamespace, entry: CatalogEntry) -> None:
        namespace, folded = self.find_namespace(action.namespace), fold_identifier(action.namespace)
        tables = [
            table for key, table in self.tables.items() if key[: len(folded)] == folded and len(key) > len(folded)
        ]
        inner = [key for key in self.namespaces if key[: len(folded)] == folded and key != folded]
        if (tables or inner) and not action.cascade:
            what = f"table {tables[0].name!r}" if tables else f"namespace {join_identifier(inner[0])!r}"
            name = join_identifier(namespace.identifier)
            raise NotEmpty(
                f"namespace {name!r} holds {what}: drop what it holds first, or all at once with "
                + Advice.argument("drop_namespace", cascade=True)
            )
        for table in tables:
            self._drop_table(table, entry, purge=False)
        for key in [*inner, folded]:
            del self.namespaces[key]

    def _create_table(self, action: CreateTable, entry: CatalogEntry) -> None:
        if action.id in self.dropped or action.id in self.purging or action.id in self.ids:
            raise AlreadyExists(f"there is a table with the id {action.id} already")
        self._name(
            CatalogTable(
                action.id,
                action.identifier,
                action.location,
                action.managed,
                dict(action.properties),
                entry.timestamp,
            )
        )

    def _name(self, table: CatalogTable) -> None:
        """Give a table its name, spelled within its namespace as that is."""
        folded = fold_identifier(table.identifier)
        if (there := self.tables.get(folded)) is not None:
            raise AlreadyExists(f"there is a table {there.name!r} already: choose another name, or drop it first")
        identifier = self._within(table.identifier)
        self._occupy(table)
        self.ids.add(table.id)
        self.tables[folded] = replace(table, identifier=identifier)

    def _occupy(self, table: CatalogTable) -> None:
        """Raise AlreadyExists for a place that another table has, or that is within another's."""
        parts = table.location.split("/")
        for end in range(len(parts), 0, -1):
            other = self.places.get("/".join(parts[:end]), table.id)
            if other != table.id:
                raise AlreadyExists(f"{table.location} is the place of {self._describe(other)}")
        self.places[table.location] = table.id

    def _describe(self, table_id: str) -> str:
        names = [table.name for table in self.tables.values() if table.id == table_id]
        if names:
            return f"table {names[0]!r} already"
        if (dropped := self.dropped.get(table_id)) is not None:
            return f"table {dropped.table.name!r}, which was dropped: undrop it"
        return f"table {table_id}, which is being purged"

    def _within(self, identifier: Identifier) -> Identifier:
        return (*self.find_namespace(identifier[:-1]).identifier, identifier[-1])

    def _table_with_id(self, table_id: str, identifier: Identifier) -> CatalogTable:
        table = self.find_table(identifier)
        if table.id != table_id:
            raise NotFound(f"table {join_identifier(identifier)!r} is {table.id}, and no longer {table_id}")
        return table

    def _drop_table(self, table: CatalogTable, entry: CatalogEntry, purge: bool) -> None:
        del self.tables[fold_identifier(table.identifier)]
        self.ids.discard(table.id)
        if purge:
            self._purge(table)
            return
        self.dropped[table.id] = DroppedTable(table, entry.timestamp, entry.sequence)
        if not table.managed:
            del self.places[table.location]

    def _undrop(self, action: UndropTable) -> None:
        dropped = self._dropped_with_id(action.id)
        self._name(replace(dropped.table, identifier=action.identifier))
        del self.dropped[action.id]

    def _purge(self, table: CatalogTable) -> None:
        self.dropped.pop(table.id, None)
        if table.managed:
            self.purging[table.id] = table.location
        else:  # its files are not the warehouse's
            self.places.pop(table.location, None)

    def _dropped_with_id(self, table_id: str) -> DroppedTable:
        if (dropped := self.dropped.get(table_id)) is None:
            raise NotFound(
                f"no table {table_id} was dropped that can come back: look at " + Advice.call("list_dropped")
            )
        return dropped


def _updated(properties: Mapping[str, str], action: UpdateNamespace | UpdateTable) -> dict[str, str]:
    kept = {name: value for name, value in properties.items() if name not in action.removals}
    return {**kept, **action.updates}


def _ends_alike(table: CatalogTable, identifier: Identifier) -> bool:
    """Whether a table has that name, in some namespace."""
    return fold_identifier(table.identifier[-1:]) == fold_identifier(identifier[-1:])
