"""A warehouse does what a few dictionaries do, however its sessions come and go."""

import itertools
import uuid
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import fuse_storage as storage
from fuse_storage import (
    AlreadyExists,
    CachedStore,
    CatalogAction,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    NotEmpty,
    NotFound,
    PurgeTables,
    RenameTable,
    UndropTable,
    Warehouse,
)
from tests.effort import effort

NAMES = st.lists(st.sampled_from(["a", "A", "b"]), min_size=1, max_size=2).map(tuple)
_PLACES = itertools.count()


class Names(RuleBasedStateMachine):
    """Tables by folded names, what was dropped in its order, and namespaces."""

    def __init__(self) -> None:
        super().__init__()
        # small worlds, many checkpoints
        self.patched = patch("fuse_storage.catalog.checkpoint._MIN_ENTRIES", 3)
        self.patched.start()
        self.store = storage.open_store(f"memory://{uuid.uuid4().hex}")
        self.session = Warehouse.open(self.store, create=True)
        self.tables: dict[tuple[str, ...], str] = {}
        self.dropped: list[tuple[tuple[str, ...], str]] = []
        self.namespaces: set[tuple[str, ...]] = {()}

    def teardown(self) -> None:
        self.patched.stop()

    def told(self, *actions: CatalogAction) -> str:
        try:
            self.session.commit(lambda _: actions)
        except (AlreadyExists, NotEmpty, NotFound) as told:
            return type(told).__name__
        return "done"

    @rule()
    def another_session(self) -> None:
        self.session = Warehouse.open(CachedStore(self.store))

    @rule(name=NAMES)
    def create_namespace(self, name: tuple[str, ...]) -> None:
        folded = fold(name)
        fits = folded[:-1] in self.namespaces
        expected = "AlreadyExists" if folded in self.namespaces else "done" if fits else "NotFound"

        assert self.told(CreateNamespace(name)) == expected
        if expected == "done":
            self.namespaces.add(folded)

    @rule(name=NAMES, cascade=st.booleans())
    def drop_namespace(self, name: tuple[str, ...], cascade: bool) -> None:
        folded = fold(name)
        inner = [key for key in self.tables if key[: len(folded)] == folded and len(key) > len(folded)]
        spaces = [key for key in self.namespaces if key[: len(folded)] == folded]
        full = bool(inner) or len(spaces) > 1
        expected = "NotFound" if folded not in self.namespaces else "NotEmpty" if full and not cascade else "done"

        assert self.told(DropNamespace(name, cascade)) == expected
        if expected == "done":
            self.namespaces -= set(spaces)
            self.dropped += [(key, self.tables.pop(key)) for key in inner]

    @rule(name=NAMES)
    def create(self, name: tuple[str, ...]) -> None:
        folded, table_id = fold(name), storage.new_id()
        expected = self.free(folded)

        assert self.told(CreateTable(table_id, name, f"place/{next(_PLACES)}", False)) == expected
        if expected == "done":
            self.tables[folded] = table_id

    @rule(source=NAMES, to=NAMES)
    def rename(self, source: tuple[str, ...], to: tuple[str, ...]) -> None:
        old, new = fold(source), fold(to)
        if old not in self.tables:
            assert self.told(RenameTable("0" * 32, source, to)) == "NotFound"
            return
        table_id = self.tables.pop(old)
        expected = self.free(new)
        self.tables[old] = table_id

        assert self.told(RenameTable(table_id, source, to)) == expected
        if expected == "done":
            self.tables[new] = self.tables.pop(old)

    @rule(name=NAMES)
    def drop(self, name: tuple[str, ...]) -> None:
        folded = fold(name)
        table_id = self.tables.get(folded)
        expected = "NotFound" if table_id is None else "done"

        assert self.told(DropTable(table_id or "0" * 32, name)) == expected
        if table_id is not None:
            self.dropped.append((folded, self.tables.pop(folded)))

    @rule(name=NAMES, number=st.integers(0, 5))
    def undrop(self, name: tuple[str, ...], number: int) -> None:
        if number < len(self.dropped):
            table_id = self.dropped[number][1]
            expected = self.free(fold(name))

            assert self.told(UndropTable(table_id, name)) == expected
            if expected == "done":
                del self.dropped[number]
                self.tables[fold(name)] = table_id

    @rule(number=st.integers(0, 5))
    def purge(self, number: int) -> None:
        if number < len(self.dropped):
            assert self.told(PurgeTables((self.dropped.pop(number)[1],))) == "done"

    @invariant()
    def all_sessions_see_the_same(self) -> None:
        for warehouse in (self.session, Warehouse.open(CachedStore(self.store))):
            state = warehouse.state()
            assert {name: table.id for name, table in state.tables.items()} == self.tables
            assert {fold(table.identifier) for table in state.tables.values()} == set(self.tables)
            assert sorted(state.dropped) == sorted(table_id for _, table_id in self.dropped)
            assert {(), *state.namespaces} == self.namespaces
            assert state.ids == set(self.tables.values()) == set(state.places.values())

    def free(self, folded: tuple[str, ...]) -> str:
        if folded in self.tables:
            return "AlreadyExists"
        return "done" if folded[:-1] in self.namespaces else "NotFound"


def fold(name: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in name)


TestNames = Names.TestCase
TestNames.settings = settings(max_examples=effort(20), stateful_step_count=30, deadline=None)
