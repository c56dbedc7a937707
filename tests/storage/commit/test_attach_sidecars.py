"""What indexes know reaches the blocks it is of, wherever these are by then."""

import pytest

from fuse_storage import (
    NotFound,
    StoredTable,
    meter_requests,
    open_store,
)
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, INDEX, Totals, append, build_missing, ids_of, indexed, known_by, staged, truth


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(StoredTable.create(url, COLUMNS), 1, 2)


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
    for row_id in range(5):
        table = append(table, row_id)
    refresh = table.transaction([Totals()]).attach_sidecars("70a1", build_missing(table, Totals()))
    for row_id in range(5, 12):
        append(table, row_id)
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
    for row_id in range(20):
        table = append(table, row_id, builders=[Totals()] if row_id % 3 else [])

    assert table.snapshot.segment_count == 6
    expected = [known if row_id % 3 else (None, None) for row_id, known in enumerate(truth(table))]
    assert known_by(table, "70a1") == expected
    after = table.transaction([Totals()]).attach_sidecars("70a1", build_missing(table, Totals())).commit()
    assert known_by(after, "70a1") == truth(after)
    assert after.segments().roll_ups("70a1").to_pylist() == [28, 92, 16, 17, 18, 19]
    check_invariants(after)
