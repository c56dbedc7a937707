"""Every pair of changes that can meet: which go together, which do not, and what a conflict says."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from fuse_storage import (
    AlreadyExists,
    Conflict,
    NotFound,
    StoredTable,
)
from fuse_storage.commit.actions import changed_column_names
from fuse_storage.schema.schema import Schema
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, INDEX, append, evolved, ids_of, indexed, known_by, staged, truth


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(StoredTable.create(url, COLUMNS), 1, 2)


# --- overwrite ------------------------------------------------------------------------------------------------


def test_overwriting_replaces_all_rows_and_keeps_the_old_snapshot(table: StoredTable) -> None:
    after = table.transaction().overwrite(staged(table, [9])).commit()

    assert ids_of(after) == [9]
    assert ids_of(after.at(table.snapshot.id)) == [1, 2]
    assert after.snapshot.summary == {
        "added_rows": 1,
        "added_blocks": 1,
        "added_bytes": after.snapshot.bytes,
        "removed_rows": 2,
    }
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


def test_a_field_that_a_struct_got_changes_no_other_column() -> None:
    before = Schema.create(pa.schema([("c", pa.struct([("d", pa.int32())]))]))
    wider = Schema.create(pa.schema([("c", pa.struct([("d", pa.int32()), ("e", pa.string())]))]))
    narrower = Schema.create(pa.schema([("c", pa.int32())]))

    assert changed_column_names(before, wider) == []
    assert changed_column_names(wider, before) == ["e"]
    assert changed_column_names(before, narrower) == ["c", "d"]


def test_rows_of_a_column_that_was_changed_meanwhile_conflict(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    winner = evolved(table, name="number")

    with pytest.raises(Conflict, match="'id' was changed by alter") as raised:
        mine.commit()

    assert raised.value.winner == str(winner.entry)


def test_rows_that_were_written_before_the_base_conflict_without_a_winner(table: StoredTable) -> None:
    rows = staged(table, [3])

    with pytest.raises(Conflict, match="'id' was changed by an earlier commit: write the rows again") as raised:
        evolved(table, name="number").transaction().append(rows).commit()

    assert raised.value.winner is None


def test_rows_go_together_with_a_change_that_does_not_concern_them(table: StoredTable) -> None:
    mine = table.transaction().append(staged(table, [3]))
    evolved(table, comment="what it is")

    assert ids_of(mine.commit()) == [1, 2, 3]
