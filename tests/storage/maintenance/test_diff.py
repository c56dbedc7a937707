"""What two snapshots differ in, counted in blocks, rows and bytes, and told from metadata alone."""

import pytest

from fuse_storage import BlockTotals, StorageError, StoredTable, create_branch, diff_snapshots
from tests.storage.small import COLUMNS, append, rows


@pytest.fixture
def table(url: str) -> StoredTable:
    return StoredTable.create(url, COLUMNS, properties={"block_rows": 2})


def test_what_was_appended_is_what_came(table: StoredTable) -> None:
    first = append(table, 1, 2, 3)
    second = append(first, 4, 5)
    found = diff_snapshots(first, second)

    size = second.snapshot.bytes - first.snapshot.bytes
    assert (found.added, found.removed, found.kept) == (
        BlockTotals(1, 2, size),
        BlockTotals(),
        BlockTotals(2, 3, first.snapshot.bytes),
    )
    back = diff_snapshots(second, first)
    assert (back.added, back.removed, back.kept) == (found.removed, found.added, found.kept)
    assert not found.empty


def test_a_snapshot_does_not_differ_from_itself_nor_from_its_branch(table: StoredTable) -> None:
    table = append(table, 1, 2, 3)

    assert diff_snapshots(table, table).empty
    assert diff_snapshots(table, create_branch(table, "side")).empty


def test_merged_segments_hold_the_same_blocks(table: StoredTable) -> None:
    before = table
    for row_id in range(9):
        before, table = table, append(table, row_id)
    merged = next(t for t in (before, table) if "merged_segments" in t.snapshot.summary)
    parent = table.at(str(merged.snapshot.parent))

    assert (diff_snapshots(parent, merged).added.blocks, diff_snapshots(parent, merged).removed.blocks) == (1, 0)


def test_replaced_rows_are_gone_and_come(table: StoredTable) -> None:
    first = append(table, 1, 2, 3)
    with first.writer() as writer:
        writer.write(rows([7]))
        second = first.transaction().overwrite(writer.finish()).commit()
    found = diff_snapshots(first, second)

    assert (found.added.rows, found.removed.rows, found.kept) == (1, 3, BlockTotals())


def test_definitions_are_told_by_name(table: StoredTable) -> None:
    one = table.transaction().add_index("one", {"key": "1"}).commit()
    other = one.transaction().drop_index("one").add_index("one", {"key": "2"}).add_index("other", {"key": "3"}).commit()

    assert diff_snapshots(table, one).definitions == ("added 'one'",)
    assert diff_snapshots(one, other).definitions == ("added 'other'", "changed 'one'")
    assert diff_snapshots(other, table).definitions == ("dropped 'one'", "dropped 'other'")


def test_snapshots_of_two_tables_are_not_compared(table: StoredTable, url: str) -> None:
    with pytest.raises(StorageError, match="two tables"):
        diff_snapshots(table, StoredTable.create(f"{url}b", COLUMNS))
