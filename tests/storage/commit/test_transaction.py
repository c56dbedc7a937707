"""Every pair of changes that can meet: which go together, which do not, and what a conflict says."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from fuse_storage import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Expired,
    NotFound,
    RefEntry,
    SchemaError,
    StagedSegment,
    StorageError,
    Store,
    StoredTable,
    Unsupported,
    meter_requests,
    open_store,
)
from fuse_storage.commit.actions import changed_column_names
from fuse_storage.commit.head import write_snapshot
from fuse_storage.metadata.refs import Branch
from fuse_storage.schema.schema import Schema
from fuse_storage.testing import FaultMode, FaultyStore, check_invariants
from tests.storage.small import COLUMNS, Totals, append, build_missing, ids_of, known_by, staged, truth

INDEX = {"key": "70a1", "kind": "totals"}


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(StoredTable.create(url, COLUMNS), 1, 2)


def indexed(table: StoredTable) -> StoredTable:
    return (
        table.transaction([Totals()])
        .add_index("totals", INDEX)
        .attach_sidecars("70a1", build_missing(table, Totals()))
        .commit()
    )


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


# --- overwrite ------------------------------------------------------------------------------------------------


def test_overwriting_replaces_all_rows_and_keeps_the_old_snapshot(table: StoredTable) -> None:
    after = table.transaction().overwrite(staged(table, [9])).commit()

    assert ids_of(after) == [9]
    assert ids_of(after.at(table.snapshot.id)) == [1, 2]
    assert after.snapshot.summary == {"added_rows": 1, "added_blocks": 1, "removed_rows": 2}
    check_invariants(after)


def test_overwriting_with_nothing_empties_the_table_once(table: StoredTable) -> None:
    after = table.transaction().overwrite([]).commit()

    assert ids_of(after) == []
    assert after.transaction().overwrite([]).commit() is after


def test_overwriting_rows_that_were_added_meanwhile_is_a_conflict_that_names_the_winner(table: StoredTable) -> None:
    mine = table.transaction().overwrite(staged(table, [9]))
    winner = append(table, 3)
    append(winner, 4)

    with pytest.raises(Conflict, match="append") as raised:
        mine.commit()

    assert winner.snapshot.commit_id in str(raised.value)
    assert raised.value.winner == str(winner.entry)
    assert ids_of(table.refresh()) == [1, 2, 3, 4]


def test_overwriting_goes_together_with_indexing(table: StoredTable) -> None:
    mine = table.transaction().overwrite(staged(table, [9]))
    indexed(table)

    after = mine.commit()

    assert ids_of(after) == [9]
    assert after.snapshot.definitions == {"totals": INDEX}
    assert known_by(after, "70a1") == [(None, None)]


def test_forced_overwriting_replaces_what_it_has_not_seen(table: StoredTable) -> None:
    mine = table.transaction().overwrite(staged(table, [9]), force=True)
    append(table, 3)

    assert ids_of(mine.commit()) == [9]


def test_an_append_follows_an_overwrite(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    table.transaction().overwrite(staged(table, [9])).commit()

    assert ids_of(mine.commit()) == [9, 3]


# --- definitions ----------------------------------------------------------------------------------------------


def test_two_definitions_of_one_name_conflict(table: StoredTable) -> None:
    mine = table.transaction().add_index("totals", {"key": "other"})
    winner = table.transaction().add_index("totals", INDEX).commit()

    with pytest.raises(Conflict, match="totals") as raised:
        mine.commit()

    assert raised.value.winner == str(winner.entry)
    with pytest.raises(AlreadyExists, match="drop it first"):
        winner.transaction().add_index("totals", INDEX).commit()


def test_definitions_of_two_names_go_together(table: StoredTable) -> None:
    mine = table.transaction().add_index("b", {"key": "bb"})
    table.transaction().add_index("a", {"key": "aa"}).commit()

    assert list(mine.commit().snapshot.definitions) == ["a", "b"]


def test_a_definition_without_a_key_is_refused(table: StoredTable) -> None:
    with pytest.raises(ValueError, match="key"):
        table.transaction().add_index("totals", {})


def test_dropping_a_definition_drops_what_it_knows(table: StoredTable) -> None:
    table = indexed(table)

    after = table.transaction().drop_index("totals").commit()

    assert after.snapshot.definitions == {}
    assert after.blocks().sidecars("70a1") is None
    assert known_by(table, "70a1") == truth(table)


def test_a_definition_that_shares_its_key_keeps_what_is_known(table: StoredTable) -> None:
    table = indexed(table).transaction().add_index("again", INDEX).commit()

    after = table.transaction().drop_index("totals").commit()

    assert known_by(after, "70a1") == truth(after)


def test_dropping_what_is_not_there_is_refused(table: StoredTable) -> None:
    with pytest.raises(NotFound, match="no definition 'totals'"):
        table.transaction().drop_index("totals").commit()


def test_dropping_what_somebody_else_dropped_changes_nothing(table: StoredTable) -> None:
    table = indexed(table)
    winner = table.transaction().drop_index("totals").commit()

    assert table.transaction().drop_index("totals").commit().snapshot == winner.snapshot


def test_dropping_what_somebody_else_replaced_is_a_conflict(table: StoredTable) -> None:
    table = indexed(table)
    winner = table.transaction().drop_index("totals").add_index("totals", {"key": "new"}).commit()

    with pytest.raises(Conflict, match="replaced") as raised:
        table.transaction().drop_index("totals").commit()

    assert raised.value.winner == str(winner.entry)


# --- sidecars -------------------------------------------------------------------------------------------------


def test_what_an_index_knows_stands_beside_its_blocks(table: StoredTable) -> None:
    table = indexed(append(table, 3, 4, 5, block_rows=2))

    assert known_by(table, "70a1") == truth(table) == [(3, b"[1, 2]"), (7, b"[3, 4]"), (5, b"[5]")]
    assert table.segments().roll_ups("70a1").to_pylist() == [3, 12]
    assert table.segments().indexed_block_counts("70a1").tolist() == [1, 2]
    assert (table.segments().sidecar_bytes("70a1") > 0).all()
    check_invariants(table)


def test_rows_are_indexed_as_they_are_written(table: StoredTable) -> None:
    table = indexed(table)

    after = append(table, 3, 4, 5, builders=[Totals()], block_rows=2)

    assert known_by(after, "70a1") == truth(after)
    check_invariants(after)


def test_what_was_indexed_for_a_definition_that_is_gone_is_left_out(table: StoredTable) -> None:
    table = indexed(table)
    mine = table.transaction([Totals()]).append(staged(table, [3], [Totals()]))
    table.transaction().drop_index("totals").commit()

    after = mine.commit()

    assert ids_of(after) == [1, 2, 3]
    assert after.blocks().sidecars("70a1") is None


def test_a_refresh_follows_blocks_into_merged_segments(url: str) -> None:
    table = StoredTable.create(url, COLUMNS).transaction().add_index("totals", INDEX).commit()
    for id in range(5):
        table = append(table, id)
    refresh = table.transaction([Totals()]).attach_sidecars("70a1", build_missing(table, Totals()))
    for id in range(5, 12):
        append(table, id)
    merged = table.refresh()
    assert merged.snapshot.segment_count < 12

    after = refresh.commit()

    assert known_by(after, "70a1") == [*truth(after)[:5], *[(None, None)] * 7]
    check_invariants(after)


def test_a_refresh_drops_what_it_built_for_blocks_that_are_gone(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", INDEX).commit()
    refresh = table.transaction().attach_sidecars("70a1", build_missing(table, Totals()))
    winner = table.transaction().overwrite(staged(table, [9])).commit()

    after = refresh.commit()

    assert after.snapshot == winner.snapshot
    assert known_by(after, "70a1") == [(None, None)]


def test_dropping_wins_over_a_refresh(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", INDEX).commit()
    refresh = table.transaction().attach_sidecars("70a1", build_missing(table, Totals()))
    winner = table.transaction().drop_index("totals").commit()

    assert refresh.commit().snapshot == winner.snapshot


def test_two_refreshes_of_different_blocks_complete_each_other(table: StoredTable) -> None:
    table = append(table, 3, 4, 5, block_rows=1).transaction().add_index("totals", INDEX).commit()
    one, other = Totals(unable=frozenset({3})), Totals(unable=frozenset({5}))
    mine = table.transaction().attach_sidecars("70a1", build_missing(table, one))
    table.transaction().attach_sidecars("70a1", build_missing(table, other)).commit()

    after = mine.commit()

    assert known_by(after, "70a1") == truth(after)
    check_invariants(after)


def test_a_second_refresh_builds_only_what_is_missing(table: StoredTable) -> None:
    table = append(table, 3, 4, 5, block_rows=1).transaction().add_index("totals", INDEX).commit()
    half = table.transaction().attach_sidecars("70a1", build_missing(table, Totals(unable=frozenset({4})))).commit()
    assert known_by(half, "70a1")[2] == (None, None)

    counted = meter_requests(open_store(half.store.url))
    after = StoredTable.open(counted)
    after = after.transaction([Totals()]).attach_sidecars("70a1", build_missing(after, Totals())).commit()

    assert len({key for _, key, _ in counted.reads if key.startswith("_b/")}) == 1
    assert known_by(after, "70a1") == truth(after)
    assert after.segments().roll_ups("70a1").to_pylist() == [3, 12]


def test_sidecars_of_a_segment_that_the_base_lacks_are_refused(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", INDEX).commit()
    later = append(table, 3)
    built = build_missing(later, Totals())

    with pytest.raises(NotFound, match="is not in snapshot"):
        table.transaction().attach_sidecars("70a1", built).commit()


def test_what_is_known_is_joined_when_segments_merge(url: str) -> None:
    table = StoredTable.create(url, COLUMNS).transaction().add_index("totals", INDEX).commit()
    for id in range(20):
        table = append(table, id, builders=[Totals()] if id % 3 else [])

    assert table.snapshot.segment_count == 6
    expected = [known if id % 3 else (None, None) for id, known in enumerate(truth(table))]
    assert known_by(table, "70a1") == expected
    after = table.transaction([Totals()]).attach_sidecars("70a1", build_missing(table, Totals())).commit()
    assert known_by(after, "70a1") == truth(after)
    assert after.segments().roll_ups("70a1").to_pylist() == [28, 92, 16, 17, 18, 19]
    check_invariants(after)


# --- columns --------------------------------------------------------------------------------------------------


def test_a_changed_column_is_named() -> None:
    before = Schema.create(pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.int32())]))]))

    def after(**changes: Any) -> Schema:
        fields = [replace(field, **changes) if field.name == "a" else field for field in before.fields]
        return Schema(1, tuple(fields))

    assert changed_column_names(before, Schema(1, before.fields)) == []
    assert changed_column_names(before, after(comment="other")) == []
    assert changed_column_names(before, after(type=pa.int64())) == ["a"]
    assert changed_column_names(before, after(name="z")) == ["a"]
    assert changed_column_names(before, after(nullable=False)) == ["a"]
    assert changed_column_names(before, Schema(1, before.fields[1:])) == ["a"]
    assert changed_column_names(Schema(1, before.fields[1:]), before) == []
    assert changed_column_names(Schema(1, before.fields[1:]), after(nullable=False)) == ["a"]


def evolved(table: StoredTable, **changes: Any) -> StoredTable:
    """The table after a commit that changed its first column, as later versions will make them."""
    now = table.snapshot
    fields = (replace(now.schema.fields[0], **changes), *now.schema.fields[1:])
    later = now.timestamp + timedelta(seconds=1)
    after = replace(
        now,
        id="e" * 32,
        sequence=now.sequence + 1,
        commit_id="f" * 32,
        parent=now.id,
        timestamp=later,
        operation="alter",
        schema_id=1,
        schemas={0: now.schema, 1: Schema(1, fields)},
    )
    entry = write_snapshot(table.store, after, table.entry)
    Branch(table.store, "main").create(entry)
    return table.refresh()


def test_rows_of_a_column_that_was_changed_meanwhile_conflict(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    winner = evolved(table, name="number")

    with pytest.raises(Conflict, match="'id' was changed by alter") as raised:
        mine.commit()

    assert raised.value.winner == str(winner.entry)


def test_rows_go_together_with_a_change_that_does_not_concern_them(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    evolved(table, comment="what it is")

    assert ids_of(mine.commit()) == [1, 2, 3]


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
    assert after.snapshot.summary == {"added_rows": 3, "added_blocks": 2, "files": 3}
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
    for id in range(7):
        table = append(table, id, builders=[Totals()])
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


def test_losing_the_race_until_time_is_up_names_the_last_winner(table: StoredTable) -> None:
    class Overtaken:
        """A store in which somebody else is always faster."""

        def __init__(self, store: Store) -> None:
            self.store, self.others = store, table

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
            if key.startswith("_refs/branch") and not key.endswith("_hint"):
                self.others = append(self.others.refresh(), 9)
            self.store.create(key, data, overwrite)

    overtaken = Overtaken(table.store)
    mine = StoredTable.open(overtaken)
    began = time.monotonic()

    with pytest.raises(Conflict, match="others were faster") as raised:
        mine.transaction().append(staged(mine, [3])).commit(timeout=0.2)

    assert time.monotonic() - began < 30
    assert overtaken.others.snapshot.commit_id in (raised.value.winner or "")
    assert 3 not in ids_of(table.refresh())


def test_an_entry_is_told_in_words(table: StoredTable) -> None:
    entry: RefEntry = table.entry

    assert str(entry) == f"append (commit {entry.commit_id}, number 2, {entry.timestamp:%Y-%m-%dT%H:%M:%S.%f}Z)"
