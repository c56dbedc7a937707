"""A small warehouse, what can be done to it, and what can be seen of it, for tests that break things on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import (
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    RenameTable,
    Store,
    StoredTable,
    UndropTable,
    UpdateNamespace,
    UpdateTable,
    Warehouse,
    process_cache,
)
from fuse_storage.catalog import checkpoint, new_table
from fuse_storage.testing import FaultyStore
from tests.storage.small import COLUMNS, append


class OfOneProcess(FaultyStore):
    """Another store of the process that crashes with ``first``: their writes are counted together."""

    def __init__(self, store: Store, first: FaultyStore) -> None:
        super().__init__(store, 0, first.mode)
        self._due, self._answer = first._due, first._answer


@contextmanager
def tables_in_one_process(faulty: FaultyStore) -> Iterator[None]:
    """The stores of new tables fail with the warehouse's."""
    opened = new_table.open_table_store
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_table, "open_table_store", lambda store, place: OfOneProcess(opened(store, place), faulty))
        yield


def make_table(warehouse: Warehouse, name: str, *ids: int, replace: bool = False) -> None:
    staged = storage.stage_table(
        warehouse, storage.parse_identifier(name), lambda store: StoredTable.create(store, COLUMNS), {}, replace
    )
    if ids:
        append(staged.table, *ids)
    staged.commit()


def small_warehouse(store: Store) -> Warehouse:
    """Namespaces a, a.b and empty; tables a.one (1), a.b.two (2); dropped: a.gone (3) and outside (4)."""
    warehouse = Warehouse.open(store, create=True)
    for name in (("a",), ("a", "b"), ("empty",)):
        warehouse.commit(lambda _, name=name: [CreateNamespace(name)])
    for number, name in enumerate(("a.one", "a.b.two", "a.gone", "outside"), 1):
        make_table(warehouse, name, number)
    for name in ("a.gone", "outside"):
        drop(warehouse, name)
    state = warehouse.state()
    store.create(checkpoint._key(state.sequence), checkpoint._encode(state))
    return warehouse


def copy_of(warehouse: Store, url: str, options: dict[str, str] | None = None) -> Store:
    """The same warehouse elsewhere."""
    copy = storage.open_store(url, options)
    for found in warehouse.list():
        copy.create(found.key, warehouse.read(found.key))
    return copy


def drop(warehouse: Warehouse, name: str) -> None:
    table = find(warehouse, name)
    warehouse.commit(lambda state: [DropTable(storage.same_table(state, table).id, table.identifier)])


def rename(warehouse: Warehouse, source: str, target: str) -> None:
    table, to = find(warehouse, source), storage.parse_identifier(target)
    warehouse.commit(lambda state: [RenameTable(storage.same_table(state, table).id, table.identifier, to)])


def undrop(warehouse: Warehouse, name: str) -> None:
    identifier = storage.parse_identifier(name)
    dropped = warehouse.state().dropped_as(identifier)
    if not dropped:
        raise storage.NotFound(f"no table {name!r} was dropped")
    warehouse.commit(lambda _: [UndropTable(dropped[0].table.id, identifier)])


def register(warehouse: Warehouse, name: str, location: str) -> None:
    action = CreateTable(storage.new_id(), storage.parse_identifier(name), location, False)
    warehouse.commit(lambda _: [action])


def update(warehouse: Warehouse, name: str) -> None:
    table = find(warehouse, name)
    new = {"comment": "new"}
    warehouse.commit(lambda state: [UpdateTable(storage.same_table(state, table).id, table.identifier, new)])


def find(warehouse: Warehouse, name: str) -> storage.CatalogTable:
    return warehouse.state().find_table(storage.parse_identifier(name))


@dataclass(frozen=True)
class Step:
    """Something that is done to a small warehouse."""

    name: str
    do: Callable[[Warehouse], object]


STEPS = [
    Step("create namespace", lambda w: w.commit(lambda _: [CreateNamespace(("a", "c"), {"comment": "x"})])),
    Step("update namespace", lambda w: w.commit(lambda _: [UpdateNamespace(("a",), {"owner": "ann"})])),
    Step("drop namespace", lambda w: w.commit(lambda _: [DropNamespace(("empty",))])),
    Step("drop all of a namespace", lambda w: w.commit(lambda _: [DropNamespace(("a",), cascade=True)])),
    Step("create", lambda w: make_table(w, "a.new")),
    Step("create with rows", lambda w: make_table(w, "a.new", 7)),
    Step("replace", lambda w: make_table(w, "a.one", 7, replace=True)),
    Step("register", lambda w: register(w, "a.registered", "somewhere/else")),
    Step("update", lambda w: update(w, "a.one")),
    Step("rename", lambda w: rename(w, "a.one", "empty.One")),
    Step("drop", lambda w: drop(w, "a.b.two")),
    Step("undrop", lambda w: undrop(w, "outside")),
    Step("drop and purge", lambda w: storage.purge_table(w, ("a", "one"))),
    Step("purge what was dropped", lambda w: storage.purge_dropped(w, timedelta(0))),
]


def view(store: Store, files: bool = True) -> dict[str, Any]:
    """What a session sees that begins now: names, what is said of them, and with ``files`` what each table has."""
    process_cache.clear()
    warehouse = Warehouse.open(store)
    state, rows = warehouse.state(), _rows if files else lambda *_: (0, 0, 0)
    return {
        "namespaces": {each.identifier: dict(each.properties) for each in state.namespaces.values()},
        "tables": {each.identifier: (rows(warehouse, each), dict(each.properties)) for each in state.tables.values()},
        "dropped": sorted((each.table.name, rows(warehouse, each.table)) for each in state.dropped.values()),
    }


def _rows(warehouse: Warehouse, table: storage.CatalogTable) -> tuple[int, int, int]:
    """How many commits a table has, and how many files of rows and of their statistics are there."""
    if not table.managed:
        return 0, 0, 0
    store = storage.open_table_store(warehouse.store, table.location)
    return StoredTable.open(store).snapshot.sequence, len(list(store.list("_b"))), len(list(store.list("_sg")))


def unnamed_folders(store: Store) -> set[str]:
    """Folders that nothing refers to, which a warehouse would keep for ever."""
    named = {place.partition("/")[0] for place in Warehouse.open(store).state().places}
    return {found.key.partition("/")[0] for found in store.list()} - named - {"_catalog"}
