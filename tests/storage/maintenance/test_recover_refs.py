"""A table without refs is what its snapshots say; what no file tells is asked for, never guessed."""

from datetime import timedelta

import pytest

import fuse_storage as storage
from fuse_storage import AlreadyExists, InvalidArgument, NotFound, StoredTable
from fuse_storage.metadata.refs import Branch
from fuse_storage.testing import Crash, FaultMode, FaultyStore, check_invariants
from tests.storage.small import COLUMNS, Aged, append, ids_of


@pytest.fixture
def table(url: str) -> StoredTable:
    made = append(StoredTable.create(url, COLUMNS, properties={"block_rows": 2}), 1, 2, 3)
    append(storage.create_branch(made, "side"), 50)
    return append(append(made, 4), 5)


def refs(table: StoredTable) -> dict[str, bytes]:
    return {one.key: table.store.read(one.key) for one in table.store.list("_refs/branch") if one.key.endswith(".json")}


def lose(table: StoredTable, *keys: str) -> None:
    storage.process_cache.clear()
    found = [one.key for one in table.store.list("_refs")]
    table.store.delete([key for key in found if not keys or key in keys or key.endswith("_hint")])


def entry_key(sequence: int, branch: str = "main") -> str:
    return f"_refs/branch/{branch}/{sequence:020}.json"


def test_all_refs_are_made_as_they_were(table: StoredTable) -> None:
    before = refs(table)
    lose(table)
    with pytest.raises(NotFound, match="is a table whose refs are lost: recover it"):
        StoredTable.open(table.store)

    found = storage.recover_branches(table.store)

    assert refs(table) == before
    numbers = {name: [entry.sequence for entry in entries] for name, entries in found.entries.items()}
    assert numbers == {"main": [4, 3, 2, 1], "side": [2, 1]}
    assert found.to_dict()["branches"][0]["newest"] == table.snapshot.id
    assert ids_of(StoredTable.open(table.store, branch="side")) == [1, 2, 3, 50]
    check_invariants(StoredTable.open(table.store))
    assert storage.recover_branches(table.store).entries == {}


@pytest.mark.parametrize("lost", [(1,), (2,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3)])
def test_entries_in_the_midst_are_made_as_they_were(table: StoredTable, lost: tuple[int, ...]) -> None:
    before = refs(table)
    lose(table, *map(entry_key, lost))

    storage.recover_branches(table.store)

    assert refs(table) == before


def test_nothing_is_written_by_a_dry_run_or_where_nothing_is_missing(table: StoredTable) -> None:
    before = refs(table)
    assert storage.recover_branches(table.store).entries == {}
    lose(table)

    assert not storage.recover_branches(table.store, dry_run=True).done
    assert refs(table) == {}
    assert before


def test_rows_are_not_built_over(table: StoredTable) -> None:
    lose(table)

    with pytest.raises(AlreadyExists, match="whose refs are lost"):
        StoredTable.create(table.store, COLUMNS)


def prepared(table: StoredTable, *ids: int) -> str:
    """The id of a snapshot after this one that was never committed: its writer died, or lost the race."""
    made = append(table, *ids)
    lose(made, entry_key(made.snapshot.sequence))
    return made.snapshot.id


def test_a_snapshot_that_lost_the_race_is_told_apart_by_what_came_after(table: StoredTable) -> None:
    prepared(table, 66)
    table = append(append(table, 6), 7)
    before = refs(table)
    lose(table)

    storage.recover_branches(table.store)

    assert refs(table) == before


def test_a_doubt_about_the_newest_is_asked_about(table: StoredTable) -> None:
    loser = prepared(table, 66)
    table = append(table, 6)
    before, right = refs(table), table.snapshot.id
    lose(table)

    with pytest.raises(
        InvalidArgument, match=f"(?=.*{loser})(?=.*{right}).*is the newest snapshot of branch 'main': say which"
    ):
        storage.recover_branches(table.store)
    assert refs(table) == {}
    storage.recover_branches(table.store, {"main": right})
    assert refs(table) == before


def test_what_was_prepared_after_the_newest_entry_is_not_committed_unless_asked_for(table: StoredTable) -> None:
    late = prepared(table, 66)
    found = storage.recover_branches(table.store)
    assert (found.entries, found.later, found.to_dict()["later"]) == ({}, {"main": [late]}, {"main": [late]})

    assert storage.recover_branches(table.store, {"main": late}).later == {}

    assert storage.recover_branches(table.store).later == {}
    assert ids_of(StoredTable.open(table.store)) == [1, 2, 3, 4, 5, 66]


@pytest.mark.parametrize("heads", [{"mian": "x"}, {"main": "0" * 32}, {"main": "side's"}])
def test_a_head_that_cannot_be_is_refused(table: StoredTable, heads: dict[str, str]) -> None:
    lose(table)
    with pytest.raises(InvalidArgument):
        storage.recover_branches(table.store, heads)
    assert refs(table) == {}


def test_collected_snapshots_leave_entries_that_say_so(table: StoredTable) -> None:
    storage.drop_branch(table.store, "side")
    store = Aged(table.store)
    store.age()
    storage.vacuum_table(store, timedelta(0), force=True)
    lose(table)

    found = storage.recover_branches(table.store)

    again = StoredTable.open(table.store)
    assert ids_of(again) == [1, 2, 3, 4, 5]
    assert [entry.kind for entry in again.history()] == ["snapshot", "tombstone", "tombstone", "tombstone"]
    assert found.to_dict()["branches"][0]["lost"] == 3
    assert ids_of(append(again, 6)) == [1, 2, 3, 4, 5, 6]
    check_invariants(StoredTable.open(table.store))


def test_a_branch_that_was_dropped_comes_back(table: StoredTable) -> None:
    storage.drop_branch(table.store, "side")
    lose(table)
    storage.recover_branches(table.store)

    assert set(storage.list_branches(table.store)) == {"main", "side"}


@pytest.mark.parametrize("nth", range(1, 7))
@pytest.mark.parametrize("how", ["before", "after"])
def test_a_recovery_that_dies_is_done_by_the_next(table: StoredTable, nth: int, how: FaultMode) -> None:
    before = refs(table)
    lose(table)
    with pytest.raises(Crash):
        storage.recover_branches(FaultyStore(table.store, nth, how))
    half = {key.split("/")[2] for key in refs(table) if int(key[-25:-5]) == 1}
    for branch in half:
        assert {key for key in refs(table) if f"/{branch}/" in key} == {key for key in before if f"/{branch}/" in key}

    storage.recover_branches(table.store)

    assert refs(table) == before
    assert Branch(table.store, "main").head().sequence == 4


def test_a_damaged_snapshot_is_named_and_the_others_are_recovered(table: StoredTable) -> None:
    oldest = table.history()[-1].snapshot_id
    data = table.store.read(f"_ss/{oldest}.json")
    lose(table)
    table.store.delete([f"_ss/{oldest}.json"])
    table.store.create(f"_ss/{oldest}.json", data[:100])

    found = storage.recover_branches(table.store)

    assert list(found.unreadable) == [f"_ss/{oldest}.json"]
    assert ids_of(StoredTable.open(table.store)) == [1, 2, 3, 4, 5]


def test_where_nothing_is_there_is_nothing_to_recover(url: str) -> None:
    with pytest.raises(NotFound, match="holds no snapshot that can be read: there is nothing"):
        storage.recover_branches(storage.open_store(url))
