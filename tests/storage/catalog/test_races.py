"""Of two sessions that change names at once, it is as if one had come after the other; whoever is too late is told."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import (
    CachedStore,
    CommitUnknown,
    Conflict,
    CreateNamespace,
    NotFound,
    StorageError,
    Store,
    Warehouse,
    process_cache,
)
from fuse_storage.testing import FaultyStore
from tests.storage.catalog.world import STEPS, Step, copy_of, drop, make_table, rename, small_warehouse, undrop, view

CHANGES = [step for step in STEPS if step.name not in ("create with rows", "register")] + [
    Step("rename to the dropped name", lambda w: rename(w, "a.one", "a.gone")),
    Step("rename another to it", lambda w: rename(w, "a.b.two", "empty.ONE")),
    Step("undrop what else has the name", lambda w: undrop(w, "a.gone")),
    Step("drop the same", lambda w: drop(w, "a.one")),
]


class Interrupted:
    """A store at the n-th request of which somebody else does something."""

    def __init__(self, store: Store, nth: int, other: Callable[[], object]) -> None:
        self.store, self.nth, self.other, self.count = store, nth, other, 0

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.store, name)
        if name not in ("read", "read_at_most", "list", "list_keys_after", "create", "delete"):
            return member

        def ask(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count == self.nth:
                self.other()
            return member(*arguments, **named)

        return ask


@pytest.fixture(scope="module")
def small() -> Store:
    """A warehouse that is copied, and not changed."""
    return small_warehouse(storage.open_store(f"memory://{uuid.uuid4().hex}")).store


def outcome(step: Step, warehouse: Store) -> str:
    """What a session is told."""
    try:
        step.do(Warehouse.open(CachedStore(warehouse)))  # which knows nothing of what others have read
    except StorageError as told:
        return type(told).__name__
    return "done"


@pytest.mark.parametrize("first", CHANGES, ids=lambda step: step.name)
def test_one_after_the_other(small: Store, first: Step) -> None:
    raced = 0
    for second in CHANGES:
        expected = []
        for order in ((0, 1), (1, 0)):
            store, told = copy_of(small, f"memory://{uuid.uuid4().hex}"), ["", ""]
            for which in order:
                told[which] = outcome((first, second)[which], store)
            expected.append((*told, view(store, files=False)))
        nth = 0
        while True:
            nth += 1
            store, told_second = copy_of(small, f"memory://{uuid.uuid4().hex}"), list[str]()
            interrupted = Interrupted(store, nth, lambda: told_second.append(outcome(second, store)))  # noqa: B023
            told_first = outcome(first, interrupted)  # type: ignore[arg-type]
            if not told_second:
                break
            raced += 1
            seen = (told_first, told_second[0], view(store, files=False))
            if told_first == "Conflict":  # its table lost the name meanwhile, and another one has it
                assert second.name == "replace"
                alone = copy_of(small, f"memory://{uuid.uuid4().hex}")
                assert (outcome(second, alone), view(alone, files=False)) == seen[1:]
            else:
                assert seen in expected, (second.name, nth)
    assert raced > 4 * len(CHANGES)


def test_a_name_that_is_another_table_s_by_now_is_not_dropped_by_who_meant_the_first(small: Store, url: str) -> None:
    store = copy_of(small, url)

    def replace() -> None:
        process_cache.clear()
        make_table(Warehouse.open(store), "a.one", replace=True)

    told = []
    for nth in range(1, 12):
        other = copy_of(small, f"{url}-{nth}")
        store = other
        try:
            process_cache.clear()
            drop(Warehouse.open(Interrupted(other, nth, replace)), "a.one")  # type: ignore[arg-type]
        except Conflict as conflict:
            told.append(str(conflict))
            assert "a.one" in [".".join(name) for name in view(other)["tables"]]
    assert told
    assert "somebody else just gave the name 'a.one' to another table" in told[0]


def test_many_sessions_of_many_names_lose_nothing(url: str) -> None:
    Warehouse.open(storage.open_store(url), create=True)

    def work(session: int) -> None:
        for number in range(20):
            warehouse = Warehouse.open(storage.open_store(url))
            name = (f"s{session}n{number}",)
            warehouse.commit(lambda _, name=name: [CreateNamespace(name)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    process_cache.clear()
    assert len(Warehouse.open(storage.open_store(url)).state().namespaces) == 160


def test_a_change_of_which_nothing_is_known_can_be_asked_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuse_storage.catalog.warehouse.COMMIT_TIMEOUT_SECONDS", 0.0)
    store = storage.open_store(url)
    Warehouse.open(store, create=True)

    class Silent(FaultyStore):
        """Neither writes an entry nor says so."""

        def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
            raise StorageError("no answer")

    with pytest.raises(CommitUnknown, match=r"ask catalog\.was_committed\('") as told:
        Warehouse.open(Silent(store, 0, "lost")).commit(lambda _: [CreateNamespace(("a",))])
    warehouse = Warehouse.open(store)
    assert not warehouse.was_committed(told.value.commit_id)
    entry = warehouse.commit(lambda _: [CreateNamespace(("a",))])
    assert entry is not None
    assert warehouse.was_committed(entry.commit_id)
    with pytest.raises(NotFound):
        warehouse.state().find_namespace(("b",))
