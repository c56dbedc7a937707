"""Committing: once, in time, whoever else commits, and whether or not the store answers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from fuse_storage import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Expired,
    RefEntry,
    SchemaError,
    StagedSegment,
    StorageError,
    Store,
    StoredTable,
    Unsupported,
    meter_requests,
)
from fuse_storage.testing import FaultMode, FaultyStore, check_invariants
from tests.storage.small import COLUMNS, INDEX, Totals, append, evolved, ids_of, staged


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(StoredTable.create(url, COLUMNS), 1, 2)


# --- append ---------------------------------------------------------------------------------------------------


def test_appends_that_met_are_both_there(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    append(table, 4)

    after = mine.commit()

    assert ids_of(after) == [1, 2, 4, 3]
    check_invariants(after)


def test_an_empty_change_commits_nothing(table: StoredTable) -> None:
    assert table.writer().finish() == []
    assert table.transaction().append([]).commit() is table
    assert table.transaction().attach_sidecars("70a1", {}).commit() is table
    assert table.transaction().commit() is table
    assert table.refresh() is table


def test_appending_what_another_table_staged_is_refused(table: StoredTable, url: str) -> None:
    (strange,) = staged(table, [3])
    other = StagedSegment(strange.id, 9, strange.row_count, strange.block_count, strange.started, strange.row)

    with pytest.raises(SchemaError, match="never had the schema 9"):
        table.transaction().append([other]).commit()


def test_what_was_committed_is_not_appended_again(table: StoredTable) -> None:
    parts = staged(table, [3])
    after = table.transaction().append(parts).commit()

    with pytest.raises(AlreadyExists, match="twice"):
        after.transaction().append(parts).commit()
    with pytest.raises(AlreadyExists, match="twice"):
        table.transaction().append(more := staged(table, [4])).append(more).commit()

    assert ids_of(table.refresh()) == [1, 2, 3]


def test_staged_segments_travel_as_json(table: StoredTable) -> None:
    (made,) = staged(table, [3])

    assert StagedSegment.from_json(made.to_json()) == made
    assert ids_of(table.transaction().append([StagedSegment.from_json(made.to_json())]).commit()) == [1, 2, 3]


# --- committing -----------------------------------------------------------------------------------------------


def test_each_version_of_an_application_is_committed_once(table: StoredTable) -> None:
    for version in (1, 2, 2, 1, 3):
        table.refresh().transaction().append(staged(table, [10 + version])).commit(application=("stream", version))
    table.transaction().append(staged(table, [20])).commit(application=("other", 1))

    after = table.refresh()

    assert ids_of(after) == [1, 2, 11, 12, 13, 20]
    assert after.snapshot.applications == {"stream": 3, "other": 1}


def test_of_two_writers_of_one_version_one_commits(table: StoredTable) -> None:
    first, second = (table.transaction().append(staged(table, [3])) for _ in range(2))
    first.commit(application=("stream", 1))

    assert ids_of(second.commit(application=("stream", 1))) == [1, 2, 3]


def test_a_commit_says_what_it_did(table: StoredTable) -> None:
    after = table.transaction().append(staged(table, [3, 4, 5], block_rows=2)).commit("ingest", summary={"files": 3})

    assert after.entry.operation == after.snapshot.operation == "ingest"
    assert after.snapshot.summary == {
        "added_rows": 3,
        "added_blocks": 2,
        "added_bytes": after.snapshot.bytes - table.snapshot.bytes,
        "files": 3,
    }
    assert after.snapshot.parent == table.snapshot.id


def test_several_changes_are_one_commit(table: StoredTable) -> None:
    before = table.snapshot.sequence

    after = table.transaction().append(staged(table, [3])).add_index("totals", INDEX).commit()

    assert (after.snapshot.sequence, after.snapshot.operation) == (before + 1, "append and define")


def test_a_transaction_is_committed_once(table: StoredTable) -> None:
    transaction = table.transaction().append(staged(table, [3]))
    transaction.commit()

    with pytest.raises(StorageError, match="tried before"):
        transaction.commit()


def test_a_writer_that_took_too_long_does_not_commit(url: str) -> None:
    table = StoredTable.create(url, COLUMNS, properties={"max_write_seconds": 60})
    (made,) = staged(table, [1])
    late = StagedSegment(
        made.id, made.schema_id, made.row_count, made.block_count, datetime.now(UTC) - timedelta(seconds=61), made.row
    )

    with pytest.raises(Expired, match="max_write_seconds"):
        table.transaction().append([late]).commit()


def test_a_feature_that_writers_must_know_makes_a_table_read_only(table: StoredTable) -> None:
    closed = StoredTable(table.store, "main", table.entry, replace(table.snapshot, writer_features=("deletes",)))

    with pytest.raises(Unsupported, match="'deletes'"):
        closed.writer()


def test_a_commit_is_later_than_its_parent_though_clocks_differ(table: StoredTable) -> None:
    ahead = evolved(table, comment="a clock one second ahead")

    after = append(ahead, 3)

    assert after.entry.timestamp > ahead.entry.timestamp
    check_invariants(after)


# --- answers that do not come ---------------------------------------------------------------------------------


class Unanswering:
    """A store that, for entries of branches, writes or not, and then does not answer; nor can they be read until it
    recovers.
    """

    def __init__(self, store: Store, writes: bool) -> None:
        self.store, self.writes, self.broken = store, writes, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        if not key.startswith("_refs/branch") or key.endswith("_hint"):
            return self.store.create(key, data, overwrite)
        if self.writes:
            self.store.create(key, data)
        self.broken = True
        raise StorageError("no answer")

    def read(self, key: str) -> bytes:
        if self.broken and key.startswith("_refs/branch"):
            raise StorageError("no answer")
        return self.store.read(key)


@pytest.mark.parametrize("landed", [True, False])
def test_without_any_answer_the_commit_is_unknown_until_asked_about(table: StoredTable, landed: bool) -> None:
    silent = StoredTable.open(Unanswering(table.store, landed))
    transaction = silent.transaction().append(staged(silent, [3]))

    with pytest.raises(CommitUnknown) as raised:
        transaction.commit(timeout=0.05)

    assert raised.value.commit_id == transaction.commit_id
    assert table.was_committed(transaction.commit_id) == landed
    assert ids_of(table.refresh()) == ([1, 2, 3] if landed else [1, 2])
    with pytest.raises(StorageError, match="tried before"):
        transaction.commit()


def test_a_lost_answer_to_the_entry_is_found_by_reading_it_back(table: StoredTable) -> None:
    writes = meter_requests(table.store)
    append(StoredTable.open(writes), 3)
    creates = [key for verb, key, _ in writes.writes if verb == "create"]
    nth = next(number for number, key in enumerate(creates, 1) if key.startswith("_refs/branch"))

    after = append(StoredTable.open(FaultyStore(table.store, nth, "lost")), 4)

    assert ids_of(after) == [1, 2, 3, 4]
    assert len(after.history()) == 4


def test_without_an_answer_somebody_elses_entry_is_not_taken_for_ones_own(table: StoredTable) -> None:
    class OvertakenInSilence:
        """Where somebody else was faster, once, and all that is heard of it is nothing."""

        def __init__(self, store: Store) -> None:
            self.store, self.silent = store, True

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
            if self.silent and key.startswith("_refs/branch"):
                self.silent = False
                append(table, 9)
                raise StorageError("no answer")
            self.store.create(key, data, overwrite)

    mine = StoredTable.open(OvertakenInSilence(table.store))

    after = append(mine, 3)

    assert ids_of(after) == ids_of(table.refresh()) == [1, 2, 9, 3]
    check_invariants(after)


@pytest.mark.parametrize("how", ["before", "after", "lost"])
def test_a_crash_at_any_write_leaves_the_table_as_it_was_or_as_it_should_be(url: str, how: FaultMode) -> None:
    table = StoredTable.create(url, COLUMNS).transaction().add_index("totals", INDEX).commit()
    for row_id in range(7):
        table = append(table, row_id, builders=[Totals()])
    outcomes = set()
    for nth in range(1, 30):
        before = ids_of(table.refresh())
        faulty = FaultyStore(table.store, nth, how)
        try:
            append(StoredTable.open(faulty), 100 + nth, builders=[Totals()])
            done = True
        except BaseException as problem:
            done = None if type(problem).__name__ == "Crash" else False
        if faulty.write_count < nth:
            break

        after = table.refresh()
        check_invariants(after)
        found = ids_of(after)
        outcomes.add(found == before)
        assert found in (
            [before, [*before, 100 + nth]] if done is None else [[*before, 100 + nth]] if done else [before]
        )
    assert outcomes == {True, False}
    assert nth > 6


def test_losing_the_race_until_time_is_up_names_the_last_winner(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Overtaken:
        """A store in which somebody else is always faster, and 25 seconds pass until that is known."""

        def __init__(self, store: Store) -> None:
            self.store, self.others, self.attempts = store, table, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
            if key.startswith("_refs/branch") and not key.endswith("_hint"):
                self.others = append(self.others.refresh(), 9)
                self.attempts += 1
            self.store.create(key, data, overwrite)

    overtaken = Overtaken(table.store)
    mine = StoredTable.open(overtaken)
    clock = SimpleNamespace(monotonic=lambda: 25.0 * overtaken.attempts)
    monkeypatch.setattr("fuse_storage.commit.transaction.time", clock)

    with pytest.raises(Conflict, match="others were faster for 60 s") as raised:
        mine.transaction().append(staged(mine, [3])).commit(timeout=60)

    assert overtaken.attempts == 3
    assert overtaken.others.snapshot.commit_id in (raised.value.winner or "")
    assert 3 not in ids_of(table.refresh())


def test_an_entry_is_told_in_words(table: StoredTable) -> None:
    entry: RefEntry = table.entry

    assert str(entry) == f"append (commit {entry.commit_id}, number 2, {entry.timestamp:%Y-%m-%dT%H:%M:%S.%f}Z)"
