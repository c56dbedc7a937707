"""A clone that dies at any step leaves nothing for ever, and whoever clones to the same place again gets a clone."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import Store, StoredTable
from fuse_storage.metadata import encoding
from fuse_storage.testing import Crash, FaultMode, FaultyStore, check_invariants
from tests.storage.small import COLUMNS, Aged, Totals, append, ids_of, staged

INDEX = Totals()


class OfOneProcess(FaultyStore):
    """Another store of the process that crashes with ``first``: their writes are counted together."""

    def __init__(self, store: Store, first: FaultyStore) -> None:
        super().__init__(store, 0, first.mode)
        self._due, self._answer = first._due, first._answer


@pytest.fixture
def table(url: str) -> StoredTable:
    made = StoredTable.create(Aged(storage.open_store(url)), COLUMNS, properties={"block_rows": 2, "zone_rows": 1})
    made = made.transaction().add_index("totals", {"key": INDEX.key}).commit()
    return append(made, 1, 2, 3, builders=[INDEX])


def died(table: StoredTable, target: Store, nth: int, mode: FaultMode) -> bool:
    """Clone, and crash at the n-th write, of the source and the target together; whether there were so many."""
    faulty = FaultyStore(table.store, nth, mode)
    try:
        storage.clone_table(StoredTable.open(faulty), OfOneProcess(target, faulty))
    except Crash:
        return True
    return False


def vacuumed_long_after(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.age()
    with monkeypatch.context() as later:
        later.setattr(encoding, "_clock", _in_days(3))
        storage.vacuum_table(store, timedelta(0), force=True)
    storage.process_cache.clear()


def _in_days(days: int) -> Callable[[], datetime]:
    now = encoding.utc_now()
    return lambda: now + timedelta(days=days)


STEPS = range(1, 11)
"""One more than there are."""


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_clone_that_died_is_made_again_and_one_tag_stays(
    table: StoredTable, mode: FaultMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = 0
    for nth in STEPS:
        target = storage.open_store(f"memory://{uuid.uuid4().hex}")
        crashes += died(table, target, nth, mode)
        committed = any(target.list("_refs/branch"))
        made = StoredTable.open(target) if committed else storage.clone_table(StoredTable.open(table.store), target)
        vacuumed_long_after(table.store, monkeypatch)

        held = [tag for tag in storage.list_tags(table.store) if tag.holder == target.url]
        assert [tag.name for tag in held] == [made.snapshot.summary["cloned_from"]["tag"]], nth
        assert held[0].expires is None
        assert ids_of(StoredTable.open(target)) == [1, 2, 3]
        check_invariants(append(made, 4))
    assert crashes == len(STEPS) - 1


@pytest.mark.parametrize("mode", ["before", "after"])
def test_what_a_dead_clone_left_is_recovered_whole_or_not_at_all(
    table: StoredTable, mode: FaultMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovered = []
    for nth in STEPS:
        target = storage.open_store(f"memory://{uuid.uuid4().hex}")
        died(table, target, nth, mode)
        try:
            storage.recover_branches(target)
            recovered.append(nth)
        except storage.NotFound:
            append(StoredTable.create(target, COLUMNS), 7)
    table = table.transaction().overwrite(staged(table, [100])).commit()
    vacuumed_long_after(table.store, monkeypatch)

    held = [tag for tag in storage.list_tags(table.store) if tag.holder]
    assert len(held) == len(recovered) + 1  # where it died right after the tag, and nobody clones there again
    for tag in held[-len(recovered) :]:
        assert ids_of(StoredTable.open(str(tag.holder))) == [1, 2, 3]


def test_leftovers_of_another_source_are_no_hindrance(table: StoredTable, url: str) -> None:
    first = storage.clone_table(table, storage.open_store(f"{url}-first"))
    target = storage.open_store(f"{url}-second")
    assert died(table, target, 6, "after")

    made = storage.clone_table(first, target)

    assert ids_of(append(made, 4)) == [1, 2, 3, 4]
    check_invariants(StoredTable.open(target))


def test_a_lost_table_is_not_cloned_over(table: StoredTable, url: str) -> None:
    target = append(storage.clone_table(table, storage.open_store(f"{url}-copy")), 4).store
    target.delete([found.key for found in target.list("_refs")])

    with pytest.raises(storage.AlreadyExists, match="whose refs are lost"):
        storage.clone_table(table, target)


def test_a_clone_that_takes_too_long_is_given_up(table: StoredTable, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter([0])
    monkeypatch.setattr("fuse_storage.maintenance.clone.utc_now", lambda: _in_days(next(days, 2))())

    with pytest.raises(storage.Expired, match="may take 1 day"):
        storage.clone_table(table, storage.open_store(f"{url}-copy"))
    assert storage.list_tags(table.store) == []
