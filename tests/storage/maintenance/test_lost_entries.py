"""Entries that are missing, from a partial copy or a restored backup: no table is shorter for it without a word, and no
commit that was acknowledged is lost.

Every subset of a chain of six, with every state of the hint.
"""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import combinations

import pytest

import fuse_storage as storage
from fuse_storage import Corrupt, NotFound, Store, StoredTable, meter_requests
from fuse_storage.metadata.refs import Branch
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Aged, append, ids_of

LENGTH = 6
HINTS = {"good": b"6", "none": None, "stale": b"2", "ahead": b"9", "garbage": b"\xffwhat?"}
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def whole() -> Files:
    """All files of a table of six commits, the n-th of which but the first added the row n."""
    table = StoredTable.create(f"memory://{uuid.uuid4().hex}", COLUMNS)
    for number in range(2, LENGTH + 1):
        table = append(table, number)
    return {found.key: table.store.read(found.key) for found in table.store.list()}


def key(number: int) -> str:
    return f"_refs/branch/main/{number:020}.json"


def subsets() -> Iterator[frozenset[int]]:
    for count in range(LENGTH + 1):
        yield from map(frozenset, combinations(range(1, LENGTH + 1), count))


def damaged(whole: Files, present: frozenset[int], hint: bytes | None) -> Store:
    """A copy of the table with these entries alone."""
    store = storage.open_store(f"memory://{uuid.uuid4().hex}")
    files = {name: data for name, data in whole.items() if not name.startswith("_refs/")}
    files |= {key(number): whole[key(number)] for number in present}
    for name, data in (files | ({"_refs/branch/main/_hint": hint} if hint else {})).items():
        store.create(name, data)
    return store


def expected_end(present: frozenset[int], hint: str) -> int | None:
    """The number of the head, or None where something tells that an entry is missing."""
    hinted = {"good": 6, "stale": 2, "ahead": 9}.get(hint, 0)
    newest = max(present, default=0)
    begin = hinted if hint in ("good", "stale") else 1
    complete = newest >= max(hinted, 1) and present.issuperset(range(begin, newest + 1))
    return newest if complete else None


def rows_until(number: int) -> list[int]:
    return list(range(2, number + 1))


def refused(store: Store, act: Callable[[], object]) -> None:
    """Refused in words that name an entry and the way out; nothing is written or deleted."""
    before = {found.key for found in store.list()}
    with pytest.raises((Corrupt, NotFound), match="recover"):
        act()
    assert {found.key for found in store.list()} == before


@pytest.mark.parametrize("hint", HINTS)
def test_no_table_is_shorter_without_a_word_and_no_commit_is_lost(whole: Files, hint: str) -> None:
    for present in subsets():
        store, end = damaged(whole, present, HINTS[hint]), expected_end(present, hint)
        if end is None:
            refused(store, lambda store=store: StoredTable.open(store))
            refused(store, lambda store=store: storage.create_branch(StoredTable.open(store), "side"))
            continue
        table = StoredTable.open(store)
        assert ids_of(table) == rows_until(end) == rows_until(max(present))
        if present.issuperset(range(1, end + 1)):
            assert [entry.sequence for entry in table.history()] == list(range(end, 0, -1))
        else:
            refused(store, table.history)
        append(table, 100)

        again = StoredTable.open(store)

        assert again.entry.sequence == end + 1
        assert ids_of(again) == [*rows_until(end), 100]


def test_a_commit_through_an_old_handle_never_lands_in_a_hole(whole: Files) -> None:
    for present in subsets():
        for number in {min(present), max(present)} if present else ():
            store = damaged(whole, present, None)
            entry = storage.RefEntry.decode(whole[key(number)], key(number))
            snapshot = storage.Snapshot.decode(store.read(f"_ss/{entry.snapshot_id}.json"), "there")
            handle = StoredTable(store, "main", entry, snapshot)
            if present.issuperset(range(number, max(present) + 1)):
                assert append(handle, 100).entry.sequence == max(present) + 1
            else:
                with pytest.raises(Corrupt, match=r"\.json is missing, and number .* recover"):
                    append(handle, 100)
                assert Branch(store, "main").sequences() == sorted(present)


@pytest.mark.parametrize("lost", [2, 4, 5])
def test_an_entry_that_is_lost_while_a_handle_knows_the_end_is_not_committed_anew(whole: Files, lost: int) -> None:
    store = damaged(whole, frozenset(range(1, lost)), b"1")
    handle = StoredTable.open(store)
    for number in range(lost, LENGTH + 1):
        store.create(key(number), whole[key(number)])
    store.delete([key(lost)])

    with pytest.raises(Corrupt, match=rf"{lost:020}\.json is missing, and number .* recover"):
        append(handle, 100)


@pytest.mark.parametrize("hint", HINTS)
def test_a_vacuum_of_a_table_with_a_hole_deletes_nothing(whole: Files, hint: str) -> None:
    for present in subsets():
        store = Aged(damaged(whole, present, HINTS[hint]))
        store.age()
        end = expected_end(present, hint)
        if end is not None and present == frozenset(range(1, end + 1)):
            storage.vacuum_table(store, timedelta(0), force=True)
            assert ids_of(StoredTable.open(store)) == rows_until(end)
        elif present or hint in ("good", "stale", "ahead"):
            before = {found.key for found in store.list()}
            with pytest.raises(Corrupt, match="recover"):
                storage.vacuum_table(store, timedelta(0), force=True)
            assert {found.key for found in store.list()} == before


@pytest.mark.parametrize("hint", HINTS)
def test_a_recovery_brings_back_all_that_anything_tells_of(whole: Files, hint: str) -> None:
    for present in subsets():
        store = damaged(whole, present, HINTS[hint])

        found = storage.recover_branches(store)

        end = LENGTH if not present or hint == "good" else max(max(present), 2 if hint == "stale" else 0)
        table = StoredTable.open(store)
        assert ids_of(table) == rows_until(end)
        assert {number: store.read(key(number)) for number in range(1, end + 1)} == {
            number: whole[key(number)] for number in range(1, end + 1)
        }
        assert len(found.later.get("main", ())) == (LENGTH - end)
        assert [entry.sequence for entry in table.history()] == list(range(end, 0, -1))


def test_a_hint_that_names_more_than_there_is_is_set_right_by_a_recovery(whole: Files) -> None:
    store = damaged(whole, frozenset(range(1, LENGTH + 1)), b"9")
    storage.recover_branches(store, dry_run=True)
    refused(store, lambda: StoredTable.open(store))

    assert storage.recover_branches(store).entries == {}

    check_invariants(append(StoredTable.open(store)))
    assert ids_of(StoredTable.open(store)) == rows_until(LENGTH)


@pytest.mark.parametrize("lost", range(1, LENGTH + 1))
def test_a_table_or_branch_is_not_begun_where_entries_are_left(whole: Files, lost: int) -> None:
    store = damaged(whole, frozenset(range(1, LENGTH + 1)) - {lost}, None)

    with pytest.raises(storage.AlreadyExists):
        StoredTable.create(store, COLUMNS)
    if lost < LENGTH:
        with pytest.raises(Corrupt, match="recover"):
            storage.list_branches(store)


def test_an_open_asks_for_no_more_than_the_hint_the_end_the_entry_and_the_snapshot(whole: Files) -> None:
    counted = meter_requests(damaged(whole, frozenset(range(1, LENGTH + 1)), b"6"))

    StoredTable.open(counted)

    assert [(verb, name.split("/")[0]) for verb, name, _ in counted.reads] == [
        ("read", "_refs"),
        ("list", "_refs"),
        ("read", "_refs"),
        ("read", "_ss"),
    ]
    assert Branch(counted, "main").head().sequence == LENGTH
