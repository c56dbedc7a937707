"""Tags, branches and restored snapshots: cheap names for what was, and no way to lose what is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import AlreadyExists, Conflict, NotFound, StoredTable, meter_requests
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, append, ids_of, staged

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(append(StoredTable.create(url, COLUMNS, properties={"block_rows": 2}), 1, 2, 3), 4)


def keys(table: StoredTable, prefix: str = "") -> set[str]:
    return {found.key for found in table.store.list(prefix)}


# --- tags ---


def test_a_tag_expires_and_its_name_is_free_again(table: StoredTable) -> None:
    made = table.tag("nightly", datetime.now(UTC) + timedelta(hours=1))
    assert made.expires is not None
    assert StoredTable.open(table.store, at="nightly").snapshot == table.snapshot
    expired = storage.Tag("old", BEGAN, table.snapshot.id, made.reference, BEGAN + timedelta(days=1))
    table.store.create("_refs/tag/old.json", expired.encode())

    with pytest.raises(
        NotFound, match=f"tag 'old' expired at 2026-01-02T00:00:00.000000Z; it named snapshot {table.snapshot.id}"
    ):
        StoredTable.open(table.store, at="old")
    assert storage.list_tags(table.store) == [made, expired]
    table.tag("old")
    assert StoredTable.open(table.store, at="old").snapshot == table.snapshot


def test_a_tag_is_not_made_for_the_past_nor_without_a_zone(table: StoredTable) -> None:
    with pytest.raises(ValueError, match="which is past"):
        table.tag("late", BEGAN)
    with pytest.raises(ValueError, match="has no time zone"):
        table.tag("where", datetime(2090, 1, 1))


def test_a_dropped_tag_is_gone_and_unknown_names_are_answered_with_near_ones(table: StoredTable) -> None:
    table.tag("release-1")

    with pytest.raises(NotFound, match=r"no tag 'release1'; did you mean \['release-1'\]"):
        storage.drop_tag(table.store, "release1")
    with pytest.raises(NotFound, match=r"did you mean \['release-1'\]"):
        StoredTable.open(table.store, at="release1")
    storage.drop_tag(table.store, "release-1")
    assert storage.list_tags(table.store) == []


# --- branches ---


def test_a_branch_begins_with_the_rows_of_its_snapshot_and_goes_its_own_way(table: StoredTable) -> None:
    before = keys(table, "_b") | keys(table, "_sg")
    side = storage.create_branch(table, "side")

    assert keys(table, "_b") | keys(table, "_sg") == before
    side = append(side, 5)
    main = append(table, 6)
    assert (ids_of(side), ids_of(main)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])
    assert ids_of(StoredTable.open(table.store, branch="side")) == [1, 2, 3, 4, 5]
    assert ids_of(StoredTable.open(table.store, at=side.snapshot.id)) == [1, 2, 3, 4, 5]
    assert {name: head.snapshot_id for name, head in storage.list_branches(table.store).items()} == {
        "main": main.snapshot.id,
        "side": side.snapshot.id,
    }
    check_invariants(side)
    check_invariants(main)


def test_a_branch_begins_at_any_snapshot(table: StoredTable) -> None:
    old = table.at(str(table.snapshot.parent))

    assert ids_of(storage.create_branch(old, "then")) == [1, 2, 3]


def test_making_dropping_and_restoring_cost_the_same_however_large_the_table(url: str) -> None:
    costs = []
    for name, count in (("small", 2), ("large", 400)):
        made = append(StoredTable.create(f"{url}{name}", COLUMNS, properties={"block_rows": 1}), *range(count))
        store = meter_requests(made.store)
        table = StoredTable(store, made.branch, made.entry, made.snapshot)
        storage.create_branch(table, "side")
        table.tag("v1")
        storage.drop_branch(store, "side")
        assert store.bytes_read < 100_000
        costs.append(store.request_count)
    assert costs[0] == costs[1]


def test_a_dropped_branch_is_refused_and_its_name_begins_anew(table: StoredTable) -> None:
    side = append(storage.create_branch(table, "side"), 5)
    storage.drop_branch(table.store, "side")

    with pytest.raises(NotFound, match=r"branch 'side' was dropped by drop branch .*: open another, or begin it anew"):
        StoredTable.open(table.store, branch="side")
    with pytest.raises(NotFound, match="dropped"):
        append(side, 6)
    with pytest.raises(NotFound, match="no branch 'side'"):
        storage.drop_branch(table.store, "side")
    assert ids_of(table.at(side.snapshot.id)) == [1, 2, 3, 4, 5]
    again = append(storage.create_branch(table, "side"), 7)
    assert ids_of(again) == [1, 2, 3, 4, 7]
    assert [entry.operation for entry in again.history()] == ["append", "branch", "drop branch", "append", "branch"]
    check_invariants(again)


def test_rows_written_for_a_dropped_branch_go_with_the_one_made_since_if_the_columns_are_the_same(
    table: StoredTable,
) -> None:
    side = storage.create_branch(table, "side")
    waiting = side.transaction().append(staged(side, [5]))
    storage.drop_branch(table.store, "side")
    storage.create_branch(table.at(str(table.snapshot.parent)), "side")

    assert ids_of(waiting.commit()) == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda table: storage.create_branch(table, "main"), "already has a branch 'main'"),
        (lambda table: storage.create_branch(table, "a/b"), "is no name for a branch"),
        (lambda table: storage.drop_branch(table.store, "main"), "cannot be dropped"),
        (lambda table: storage.drop_branch(table.store, "mian"), r"did you mean \['main'\]"),
    ],
)
def test_what_no_branch_can_be_is_refused(table: StoredTable, act: Any, says: str) -> None:
    with pytest.raises((AlreadyExists, NotFound, ValueError), match=says):
        act(table)


# --- coming together again ---


def test_a_branch_comes_home_by_a_fast_forward_and_goes_on(table: StoredTable) -> None:
    side = append(storage.create_branch(table, "side"), 5)

    home = storage.fast_forward_branch(table, side)
    assert ids_of(home) == [1, 2, 3, 4, 5]
    assert home.branch == "main"
    side = append(side, 6)
    home = storage.fast_forward_branch(home, side)  # though what main has is a copy
    assert ids_of(home) == [1, 2, 3, 4, 5, 6]
    home = append(home, 7)
    side = storage.fast_forward_branch(side, home)
    assert ids_of(side) == [1, 2, 3, 4, 5, 6, 7]
    check_invariants(home)
    check_invariants(side)


def test_a_fast_forward_to_what_is_there_commits_nothing(table: StoredTable) -> None:
    side = storage.create_branch(table, "side")

    assert storage.fast_forward_branch(table, side) is table
    home = storage.fast_forward_branch(table, append(side, 5))
    assert storage.fast_forward_branch(home, StoredTable.open(table.store, branch="side")) is home


def test_branches_that_parted_are_not_brought_together(table: StoredTable) -> None:
    side = append(storage.create_branch(table, "side"), 5)
    main = append(table, 6)

    with pytest.raises(Conflict, match="both went on since they parted"):
        storage.fast_forward_branch(main, side)


def test_a_fast_forward_is_refused_when_somebody_was_faster(table: StoredTable) -> None:
    side = append(storage.create_branch(table, "side"), 5)
    append(table, 6)

    with pytest.raises(Conflict, match="was changed by append"):
        storage.fast_forward_branch(table, side)


# --- restore ---


def test_restoring_makes_the_table_what_it_was_and_keeps_the_log(table: StoredTable) -> None:
    old = table.at(str(table.snapshot.parent))
    restored = table.transaction().restore(old.snapshot).commit("restore")

    assert ids_of(restored) == [1, 2, 3]
    assert restored.snapshot.next_row_id == table.snapshot.next_row_id
    assert [entry.operation for entry in restored.history()] == ["restore", "append", "append", "create"]
    back = append(restored, 9).transaction().restore(table.snapshot).commit("restore")
    assert ids_of(back) == [1, 2, 3, 4]
    check_invariants(back)


def test_restoring_what_is_there_commits_nothing(table: StoredTable) -> None:
    assert table.transaction().restore(table.snapshot).commit() is table


def test_rows_that_a_restore_has_not_seen_are_not_lost(table: StoredTable) -> None:
    old = table.at(str(table.snapshot.parent))
    append(table, 5)

    with pytest.raises(Conflict, match="was changed by append"):
        table.transaction().restore(old.snapshot).commit()


def test_an_append_lands_on_what_was_restored_meanwhile(table: StoredTable) -> None:
    waiting = table.transaction().append(staged(table, [5]))
    table.transaction().restore(table.at(str(table.snapshot.parent)).snapshot).commit()

    assert ids_of(waiting.commit()) == [1, 2, 3, 5]
