"""Clocks that are years ahead or behind, and clocks that stand still: nothing is lost for them, and nothing kept for
years.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import Expired, NotFound, StorageError, StoredTable, meter_requests, vacuum_table
from fuse_storage.commit.head import write_snapshot
from fuse_storage.commit.snapshot_hold import hold_snapshot
from fuse_storage.maintenance import vacuum
from fuse_storage.metadata import encoding
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import Branch
from fuse_storage.testing import check_invariants
from tests.storage.clocks import BEGAN, Clocks
from tests.storage.small import COLUMNS, append, ids_of, rows

DAY, YEARS = timedelta(days=1), timedelta(days=3650)


@pytest.fixture
def clocks(url: str, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks(storage.open_store(url))
    monkeypatch.setattr(encoding, "_clock", made.machine)
    return made


def overwrite(table: StoredTable, row: int) -> StoredTable:
    with table.writer() as writer:
        writer.write(rows([row]))
        return table.transaction().overwrite(writer.finish(), force=True).commit()


def committed_at(table: StoredTable, timestamp: datetime) -> StoredTable:
    """The table after a commit that an older version let a wrong clock make: it has the rows of the one before."""
    before = table.snapshot
    after = replace(before, id=new_id(), sequence=before.sequence + 1, commit_id=new_id(), parent=before.id,
                    timestamp=timestamp)  # fmt: skip
    with pytest.MonkeyPatch.context() as unchecked:
        unchecked.setattr("fuse_storage.commit.head._check_clock", lambda *_: None)
        entry = write_snapshot(table.store, after, table.entry)
    Branch(table.store, "main").create(entry)
    return table.refresh()


def days_of_commits(clocks: Clocks, table: StoredTable, count: int) -> StoredTable:
    for number in range(count):
        clocks.now += DAY
        table = overwrite(table, number)
    return table


def kept(table: StoredTable) -> int:
    return sum(snapshot is not None for _, snapshot in table.snapshots())


def test_a_commit_by_a_clock_that_is_years_ahead_of_the_store_is_refused(clocks: Clocks) -> None:
    table = append(StoredTable.create(clocks, COLUMNS), 1)
    clocks.now += 2 * DAY
    clocks.skew = YEARS

    with pytest.raises(StorageError, match=r"it is 2036-.* by the clock of this machine, and 2026-.*set the clock"):
        append(table, 2)
    with pytest.raises(StorageError, match="set the clock"):
        StoredTable.create(Clocks(storage.open_store(f"{table.store.url}-other")), COLUMNS)
    clocks.skew = timedelta(0)
    assert ids_of(append(table, 3)) == [1, 3]


def test_the_store_is_asked_for_the_time_only_after_a_day_without_commits(clocks: Clocks) -> None:
    table = StoredTable.open(meter_requests(StoredTable.create(clocks, COLUMNS).store))
    lists = []
    for pause in (timedelta(hours=1), 2 * DAY):
        clocks.now += pause
        table.store.reset()
        table = append(table, 1)
        lists.append([key for verb, key, _ in table.store.reads if verb == "list" and key == "_ss"])
    assert lists == [[], ["_ss"]]


@pytest.mark.parametrize("skew", [YEARS, -YEARS, timedelta(0)])
@pytest.mark.parametrize("dates_with_skew", [False, True])
def test_one_commit_by_a_wrong_clock_neither_stops_a_vacuum_nor_shortens_the_retention(
    clocks: Clocks, skew: timedelta, dates_with_skew: bool
) -> None:
    table = days_of_commits(clocks, StoredTable.create(clocks, COLUMNS), 3)
    clocks.now += DAY
    clocks.skew, clocks.dates_with_skew = skew, dates_with_skew
    table = committed_at(table, max(clocks.machine(), table.entry.timestamp + timedelta(microseconds=1)))
    replaced = table.history()[1]
    clocks.skew, clocks.dates_with_skew = timedelta(0), False

    vacuum_table(clocks, 7 * DAY)
    storage.process_cache.clear()
    assert ids_of(table.at(str(replaced.snapshot_id))) == [2]

    table = days_of_commits(clocks, table, 20)
    vacuum_table(clocks, 7 * DAY)
    storage.process_cache.clear()
    assert kept(table) == 9 + (skew == YEARS and dates_with_skew)  # a file dated years ahead is too young to go
    check_invariants(StoredTable.open(clocks))


@pytest.mark.parametrize("skew", [YEARS, -YEARS])
def test_a_vacuum_by_a_wrong_clock_keeps_what_the_retention_says(clocks: Clocks, skew: timedelta) -> None:
    table = days_of_commits(clocks, StoredTable.create(clocks, COLUMNS), 20)
    clocks.skew = skew

    vacuum_table(clocks, 7 * DAY)

    storage.process_cache.clear()
    assert kept(table) == (9 if skew > timedelta(0) else 21)  # who is slow keeps more


def test_a_time_means_what_it_meant_by_the_store_where_a_commit_is_dated_years_ahead(clocks: Clocks) -> None:
    table = days_of_commits(clocks, StoredTable.create(clocks, COLUMNS), 3)
    clocks.now += DAY
    table = committed_at(table, clocks.now + YEARS)
    table = days_of_commits(clocks, table, 5)
    assert table.entry.timestamp > BEGAN + YEARS

    def at(days: float) -> int:
        return StoredTable.open(clocks, at=BEGAN + days * DAY).entry.sequence

    assert [at(days) for days in (0.5, 2.5, 3.5, 4.5, 5.5, 8.5, 9.5)] == [1, 3, 4, 5, 6, 9, 10]
    with pytest.raises(NotFound, match="began at"):
        at(-1)
    assert ids_of(append(storage.create_branch(table, "side"), 7))[-1] == 7
    target = Clocks(storage.open_store(f"{clocks.url}-copy"))
    target.now = clocks.now
    assert ids_of(storage.clone_table(table, target)) == ids_of(table)


@pytest.mark.parametrize("skew", [timedelta(hours=-5), -YEARS])
def test_what_a_slow_clock_holds_for_two_hours_is_held(
    clocks: Clocks, skew: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = days_of_commits(clocks, StoredTable.create(clocks, COLUMNS), 20)
    old = table.at(str(table.history()[16].snapshot_id))
    clocks.skew = skew
    within = hold_snapshot(clocks, "main", old.entry)
    with within:
        clocks.skew = timedelta(0)
        vacuum_table(clocks, 7 * DAY)
        storage.process_cache.clear()
        assert ids_of(table.at(old.snapshot.id)) == [3]
    vacuum_table(clocks, 7 * DAY)
    storage.process_cache.clear()
    with pytest.raises(NotFound):
        table.at(old.snapshot.id)


@pytest.mark.parametrize("clock", range(len(vacuum._Stopwatch()._clocks())))
def test_a_vacuum_that_slept_deletes_nothing_more(clocks: Clocks, clock: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = days_of_commits(clocks, StoredTable.create(clocks, COLUMNS), 20)
    readings: Callable[[Any], list[float]] = vacuum._Stopwatch._clocks
    calls = iter(range(100))

    def asleep(watch: Any) -> list[float]:
        now = readings(watch)
        now[clock] += 3601 * (next(calls) >= 2)
        return now

    monkeypatch.setattr(vacuum._Stopwatch, "_clocks", asleep)
    monkeypatch.setattr(vacuum, "_DELETE_BATCH_KEYS", 1)

    with pytest.raises(Expired, match="run it again"):
        vacuum_table(clocks, 7 * DAY)
    storage.process_cache.clear()
    assert kept(table) == 20
    monkeypatch.undo()
    monkeypatch.setattr(encoding, "_clock", clocks.machine)
    vacuum_table(clocks, 7 * DAY)
    storage.process_cache.clear()
    assert kept(table) == 9
