"""What two snapshots differ in, counted in blocks, rows and bytes, and told from metadata alone."""

import pytest

from fuse_storage import Extent, StorageError, Table, create_branch, difference
from tests.storage.small import COLUMNS, append, rows


@pytest.fixture
def table(url: str) -> Table:
    return Table.create(url, COLUMNS, properties={"block_rows": 2})


def test_what_was_appended_is_what_came(table: Table) -> None:
    first = append(table, 1, 2, 3)
    second = append(first, 4, 5)
    found = difference(first, second)

    bytes = second.snapshot.bytes - first.snapshot.bytes
    assert (found.added, found.removed, found.kept) == (
        Extent(1, 2, bytes),
        Extent(),
        Extent(2, 3, first.snapshot.bytes),
    )
    back = difference(second, first)
    assert (back.added, back.removed, back.kept) == (found.removed, found.added, found.kept)
    assert not found.empty


def test_a_snapshot_does_not_differ_from_itself_nor_from_its_branch(table: Table) -> None:
    table = append(table, 1, 2, 3)

    assert difference(table, table).empty
    assert difference(table, create_branch(table, "side")).empty


def test_merged_segments_hold_the_same_blocks(table: Table) -> None:
    before = table
    for id in range(9):
        before, table = table, append(table, id)
    merged = next(t for t in (before, table) if "merged_segments" in t.snapshot.summary)
    parent = table.at(str(merged.snapshot.parent))

    assert (difference(parent, merged).added.blocks, difference(parent, merged).removed.blocks) == (1, 0)


def test_replaced_rows_are_gone_and_come(table: Table) -> None:
    first = append(table, 1, 2, 3)
    with first.writer() as writer:
        writer.write(rows([7]))
        second = first.transaction().overwrite(writer.finish()).commit()
    found = difference(first, second)

    assert (found.added.rows, found.removed.rows, found.kept) == (1, 3, Extent())


def test_definitions_are_told_by_name(table: Table) -> None:
    one = table.transaction().define("one", {"key": "1"}).commit()
    other = one.transaction().undefine("one").define("one", {"key": "2"}).define("other", {"key": "3"}).commit()

    assert difference(table, one).definitions == ("added 'one'",)
    assert difference(one, other).definitions == ("added 'other'", "changed 'one'")
    assert difference(other, table).definitions == ("dropped 'one'", "dropped 'other'")


def test_snapshots_of_two_tables_are_not_compared(table: Table, url: str) -> None:
    with pytest.raises(StorageError, match="two tables"):
        difference(table, Table.create(f"{url}b", COLUMNS))
