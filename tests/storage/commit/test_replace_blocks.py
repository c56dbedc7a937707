"""Blocks replaced by others: in their place, beside whatever others do, or not at all."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from fuse_storage import BlockReplacement, Conflict, StorageError, StoredTable, Transaction, add_column
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Totals, append, build_missing, ids_of, known_by, rows, staged, truth

BUILDER = Totals()


@pytest.fixture
def table(url: str) -> StoredTable:
    """Blocks [0 1] [2 3] [4 5] in one segment, [6 7] in another, all of them indexed."""
    table = (
        StoredTable.create(url, COLUMNS, properties={"block_rows": 2})
        .transaction()
        .add_index("one", {"key": BUILDER.key})
        .commit()
    )
    table = append(table, *range(6), builders=[BUILDER])
    return append(table, 6, 7, builders=[BUILDER])


def replacing(
    table: StoredTable, places: Sequence[int], made: dict[int, Sequence[int]], unseen: Callable | None = None
) -> Transaction[StoredTable]:
    """These blocks go; ``made``: what ids come in the place of which."""
    blocks, listed = table.blocks(), table.segments()
    swaps = []
    with table.writer([BUILDER]) as writer:
        for place in places:
            before = writer.block_count
            if made.get(place):
                writer.write(rows(made[place]))
                writer.end_block()
            swaps.append(BlockReplacement((blocks.ids[place],), writer.block_count - before))
        new = writer.finish()
    return table.transaction([BUILDER]).replace_blocks(swaps, new, listed.ids, unseen, "update")


@pytest.mark.parametrize(
    ("places", "made", "after"),
    [
        ([1], {1: [2]}, [0, 1, 2, 4, 5, 6, 7]),
        ([1], {}, [0, 1, 4, 5, 6, 7]),
        ([0, 2], {0: [10], 2: [12, 13]}, [10, 2, 3, 12, 13, 6, 7]),
        ([1, 3], {1: [12], 3: [16]}, [0, 1, 12, 4, 5, 16]),
        ([3], {}, [0, 1, 2, 3, 4, 5]),
        ([0, 1, 2, 3], {}, []),
        ([0], {0: [20, 21, 22, 23, 24]}, [20, 21, 22, 23, 24, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_what_comes_is_in_the_place_of_what_goes_and_is_indexed(
    table: StoredTable, places: list, made: dict, after: list
) -> None:
    before = table.blocks().ids
    changed = replacing(table, places, made).commit()

    assert ids_of(changed) == after
    assert [row_id for row_id in before if row_id in changed.blocks().ids] == [
        row_id for place, row_id in enumerate(before) if place not in places
    ]
    assert known_by(changed, BUILDER.key) == truth(changed)
    assert ids_of(table.at(table.snapshot.id)) == list(range(8))
    check_invariants(changed)


def test_segments_that_hold_none_of_the_blocks_stay_as_they_are(table: StoredTable) -> None:
    changed = replacing(table, [1], {1: [9]}).commit()

    assert changed.segments().ids[1] == table.segments().ids[1]
    assert changed.snapshot.summary["removed_rows"] == 2
    assert changed.snapshot.summary["added_rows"] == 1


def test_blocks_are_combined_over_segments(table: StoredTable) -> None:
    ids = table.blocks().ids
    new = staged(table, [4, 5, 6, 7], [BUILDER], block_rows=4)
    merged = (
        table.transaction([BUILDER])
        .replace_blocks([BlockReplacement((ids[2], ids[3]), 1)], new, table.segments().ids, name="compact")
        .commit()
    )

    assert ids_of(merged) == list(range(8))
    assert known_by(merged, BUILDER.key) == truth(merged)
    assert len(merged.segments()) == 1
    check_invariants(merged)


# --- with others ---


def everything(table: StoredTable) -> Callable:
    return lambda row_id: table.at(row_id).blocks().ids


def nothing(_: str) -> list[str]:
    return []


def test_rows_appended_meanwhile_matter_only_if_they_might_have_been_chosen(table: StoredTable) -> None:
    seeing, blind = (replacing(table, [0], {}, unseen) for unseen in (everything(table), nothing))
    append(table, 8)

    with pytest.raises(Conflict, match="rows that this update has not seen were added by append"):
        seeing.commit()
    assert ids_of(blind.commit()) == [2, 3, 4, 5, 6, 7, 8]


def test_of_two_rewrites_of_a_block_one_wins(table: StoredTable) -> None:
    waiting = replacing(table, [0, 1], {1: [30]}, nothing)
    replacing(table, [1], {1: [31]}).commit()

    with pytest.raises(Conflict, match="rows that this update read were replaced by update"):
        waiting.commit()


def test_rewrites_of_different_blocks_go_together(table: StoredTable) -> None:
    waiting = replacing(table, [0], {0: [30]}, nothing)
    replacing(table, [1, 3], {1: [31]}).commit()

    changed = waiting.commit()
    assert ids_of(changed) == [30, 31, 4, 5]
    assert known_by(changed, BUILDER.key) == truth(changed)
    check_invariants(changed)


def test_a_rewrite_follows_its_blocks_into_a_merged_segment(table: StoredTable) -> None:
    waiting = replacing(table, [1], {1: [30]}, nothing)
    for row_id in range(8, 16):
        table = append(table, row_id, builders=[BUILDER])

    assert "merged_segments" in table.snapshot.summary or len(table.segments()) < 10
    assert ids_of(waiting.commit()) == [0, 1, 30, *range(4, 16)]


def test_an_overwrite_and_a_rewrite_do_not_go_together(table: StoredTable) -> None:
    rewriting, overwriting = (
        replacing(table, [1], {1: [30]}, nothing),
        table.transaction().overwrite(staged(table, [9])),
    )
    table.transaction().overwrite(staged(table, [8])).commit()
    with pytest.raises(Conflict, match="were replaced by overwrite"):
        rewriting.commit()
    with pytest.raises(Conflict):
        overwriting.commit()


def test_an_index_built_meanwhile_keeps_what_it_knows_of_blocks_that_stay(table: StoredTable) -> None:
    other = Totals("70a2")
    table = table.transaction().add_index("other", {"key": other.key}).commit()
    attaching = table.transaction([other]).attach_sidecars(other.key, build_missing(table, other))
    rewriting = replacing(table, [1], {1: [30]}, nothing)
    changed = rewriting.commit()
    assert known_by(changed, other.key) == [(None, None)] * 4

    changed = attaching.commit()
    true = truth(changed)
    assert known_by(changed, other.key) == [true[0], (None, None), *true[2:]]
    check_invariants(changed)


@pytest.mark.parametrize("chosen", [True, False])
def test_columns_changed_meanwhile_matter_where_rows_were_chosen(table: StoredTable, chosen: bool) -> None:
    waiting = replacing(table, [1], {1: [30]}, nothing if chosen else None)
    table.transaction().evolve_schema(lambda shape: add_column(shape, "x", pa.int64())).commit()

    if chosen:
        with pytest.raises(Conflict, match="columns were changed by evolve"):
            waiting.commit()
    else:
        assert ids_of(waiting.commit()) == [0, 1, 30, 4, 5, 6, 7]


def test_an_append_lands_after_a_rewrite(table: StoredTable) -> None:
    waiting = table.transaction([BUILDER]).append(staged(table, [8], [BUILDER]))
    replacing(table, [0, 1, 2, 3], {}).commit()

    assert ids_of(waiting.commit()) == [8]


def test_a_restore_and_a_rewrite_do_not_go_together(table: StoredTable) -> None:
    old = table.at(str(table.snapshot.parent)).snapshot
    rewriting, restoring = replacing(table, [3], {}, nothing), table.transaction().restore(old)
    replacing(table, [0], {}).commit()
    with pytest.raises(Conflict, match="was changed by update"):
        restoring.commit()
    table.refresh().transaction().restore(old).commit()
    with pytest.raises(Conflict, match="were replaced by restore"):
        rewriting.commit()


def test_only_a_commit_that_leaves_all_rows_as_they_were_says_so(table: StoredTable) -> None:
    def swapped(made: Sequence[int], **said: bool) -> Transaction[StoredTable]:
        here = table.refresh()
        with here.writer([BUILDER]) as writer:
            writer.write(rows(made))
            new = writer.finish()
        swap = BlockReplacement(tuple(here.blocks().ids[:2]), sum(segment.block_count for segment in new))
        return here.transaction([BUILDER]).replace_blocks([swap], new, here.segments().ids, name="sort", **said)

    with pytest.raises(StorageError, match="would put 3 rows in the place of 4"):
        swapped([3, 2, 1], same_rows=True).commit()
    assert swapped([3, 2, 1, 0], same_rows=True).commit().snapshot.same_rows
    assert not swapped([3, 2, 1, 0]).commit().snapshot.same_rows
    assert not append(table.refresh(), 8).snapshot.same_rows
    assert not table.refresh().transaction().overwrite([]).commit().snapshot.same_rows
    assert not table.refresh().transaction().restore(table.snapshot).commit().snapshot.same_rows
    named = table.refresh().transaction().add_index("two", {"key": "two"}).commit()
    assert named.snapshot.same_rows
    assert (
        named.transaction()
        .evolve_schema(lambda shape: add_column(shape, "extra", pa.int64()))
        .commit()
        .snapshot.same_rows
    )
    assert named.at(named.snapshot.id).snapshot.same_rows
    mixed = named.refresh().transaction().add_index("three", {"key": "three"})
    assert not mixed.append(staged(named, [9])).commit().snapshot.same_rows
