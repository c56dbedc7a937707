"""The account of changes counts the blocks that are then read, and says what is done with them."""

from collections.abc import Callable
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.errors import InputError
from tests.index.tables import counted, read_blocks

ROWS = [{"id": number, "name": f"n{number % 7}"} for number in range(60)]


def make(**keywords: object) -> fuse.Table:
    return fuse.create_table(
        f"memory://explain-changes-{uuid4().hex}",
        "id BIGINT, name STRING",
        ["id"],
        {"block_rows": 10, "zone_rows": 5},
        **keywords,  # type: ignore[arg-type]
    )


def appended(table: fuse.Table) -> None:
    table.append(ROWS)


def appended_and_compacted(table: fuse.Table) -> None:
    for first in range(0, 12, 3):
        table.append(ROWS[first : first + 3])
    table.maintenance.compact()


def updated(table: fuse.Table) -> None:
    table.append(ROWS)
    table.update("id = 17", {"name": "'x'"})


def marked(table: fuse.Table) -> None:
    table.set_properties({"delete_mode": "merge-on-read"})
    table.append(ROWS)
    table.delete("id = 17")


def nothing(table: fuse.Table) -> None:
    table.tag("here")


WAYS: dict[str, tuple[Callable[[fuse.Table], None], int, str | None]] = {
    "appends": (appended, 1, None),
    "appends of which a condition asks for some": (appended, 1, "id = 33"),
    "appends that were compacted": (appended_and_compacted, 3, None),
    "an update": (updated, 2, None),
    "an update elsewhere": (updated, 2, "id > 40"),
    "deletion vectors": (marked, 3, None),
    "nothing": (nothing, 1, None),
}


@pytest.mark.parametrize("name", WAYS)
def test_changes_read_the_blocks_that_their_account_names(name: str) -> None:
    change, since, where = WAYS[name]
    table = make(key=["id"])
    change(table)

    told = table.explain.changes(since, where=where)
    table, store = counted(table)
    table.changes(since, where=where).to_arrow()

    read = read_blocks(store)
    assert told.blocks.kept == len(read)
    assert told.blocks.kept <= told.blocks.total
    assert told.changes is not None
    assert (told.changes.since, told.changes.until) == (since, table.version)


def test_changes_by_key_are_read_from_hot_commits_alone() -> None:
    table = make(primary_key=["id"])
    table.overwrite(ROWS)
    since = table.version
    table.upsert([{"id": 3, "name": "x"}, {"id": 99, "name": "y"}])

    told = table.explain.changes(since, preimages=False)

    assert (told.blocks.kept, told.rows.kept) == (1, 2)
    assert told.to_dict()["changes"]["how"] == "what hot commits put and deleted is read, and no other block"
    assert "2 blocks came and 1 went from version" in str(table.explain.changes(since))


def test_an_account_of_changes_refuses_what_changes_would() -> None:
    table = make()
    with pytest.raises(InputError, match="primary key"):
        table.explain.changes(1, preimages=False)
    with pytest.raises(InputError, match="where=5"):
        table.explain.changes(1, where=5)  # type: ignore[arg-type]
