"""Two handles of one table: what a program saw is what it changes, whatever another did meanwhile.

Pairs of operations, one after the other through handles that were opened together: the second leaves what it would
leave had it come after the first and seen what that did, or it is refused with a Conflict and changes nothing.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_index as fuse
from fuse_storage import open_store, process_cache
from tests.storage.small import Aged

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": row_id, "v": 0} for row_id in ids]


def incremented(table: fuse.Table, where: str | None = None) -> pa.Table:
    """Read, and compute: rows as this handle sees them, each with a value that is higher by one."""
    found = table.scan(where).to_arrow()
    return found.set_column(1, found.column_names[1], pc.add(found.column(1), 1))


def merge_rows(table: fuse.Table) -> list[dict[str, int]]:
    return [{"id": row_id, table.schema.names[1]: 7} for row_id in (1, 9)]


def rename(table: fuse.Table) -> None:
    table.rename_column(table.schema.names[1], table.schema.names[1] + "w")


OPERATIONS: dict[str, Callable[[fuse.Table], Any]] = {
    "append 9": lambda table: table.append([{"id": 9, table.schema.names[1]: 0}]),
    "delete 0": lambda table: table.delete("id = 0"),
    "delete 9": lambda table: table.delete("id = 9"),
    "delete > 1": lambda table: table.delete("id > 1"),
    "update < 2": lambda table: table.update("id < 2", {"id": "id - 10"}),
    "overwrite": lambda table: table.overwrite(incremented(table)),
    "overwrite > 1": lambda table: table.overwrite(incremented(table, "id > 1"), "id > 1"),
    "merge": lambda table: table.merge(merge_rows(table), ["id"]),
    "sync": lambda table: table.merge([{"id": 1}], ["id"], None, None, "delete"),
    "compact": lambda table: table.maintenance.compact(),
    "create index": lambda table: table.create_index("y", "bloom", ["id"]),
    "drop index": lambda table: table.drop_index("x"),
    "rename": rename,
    "key": lambda table: table.key_by(["id"]),
    "cluster": lambda table: table.cluster_by(["id"]),
    "restore": lambda table: table.restore("start"),
}
"""On blocks of the rows [0], [1] and [2, 3], of which there is only the first at the tag ``start``."""

CONFLICTS = {
    "append 9": {"delete 9", "delete > 1", "overwrite", "overwrite > 1", "merge", "sync", "restore"},
    "delete 0": {"delete 0", "update < 2", "overwrite", "sync", "restore"},
    "update < 2": {"delete 0", "update < 2", "overwrite", "merge", "sync", "restore"},
    "compact": set(),
    "drop index": {"restore"},
    "rename": {name for name in OPERATIONS if name not in ("compact", "create index", "drop index")},
    "restore": {"delete > 1", "update < 2", "overwrite", "overwrite > 1", "merge", "sync", "restore"},
}
"""By what another did first: what is refused then, through a handle that has not seen it; all else goes together."""


@pytest.fixture(scope="module")
def table() -> fuse.Table:
    made = fuse.create_table(f"memory://two-{uuid4().hex}", SCHEMA, properties={"block_rows": 4})
    made.create_index("x", "bloom", ["id"])
    made.append(rows(0))
    made.tag("start")
    made.append(rows(1))
    made.append(rows(2, 3))
    return made


@pytest.fixture
def branch(table: fuse.Table) -> Iterator[Callable[[], fuse.Table]]:
    """What makes a branch of that table, and opens it."""
    return lambda: table.branch(f"b{uuid4().hex}")


def opened_again(table: fuse.Table) -> fuse.Table:
    return fuse.open_table(table.stored.store, branch=table.stored.branch, host=table.host)


def state(table: fuse.Table) -> tuple[Any, ...]:
    """What a program can see of a table: rows in any order, columns, indexes, keys."""
    found, snapshot = table.scan().to_arrow(), table.snapshot
    content = sorted(tuple(row.values()) for row in found.to_pylist())
    return content, found.column_names, sorted(snapshot.definitions), snapshot.key, snapshot.cluster_ids


@pytest.mark.parametrize("first", CONFLICTS)
def test_a_change_goes_together_with_what_it_has_not_seen_or_is_refused(branch, first):
    after_first = branch()
    OPERATIONS[first](after_first)
    refused = set()
    for second, change in OPERATIONS.items():
        if second == "drop index" and first == "drop index":
            continue
        one = branch()
        other = opened_again(one)
        OPERATIONS[first](one)
        try:
            change(other)
        except fuse.Conflict:
            refused.add(second)
            assert state(one.refresh()) == state(after_first), f"{second} was refused, and changed something"
        else:
            in_turn = after_first.branch(f"b{uuid4().hex}")
            change(in_turn)
            assert state(one.refresh()) == state(in_turn), f"{second} did not see {first}"
    assert refused == CONFLICTS[first]


def test_rows_that_were_read_and_computed_do_not_replace_rows_that_came_since(branch):
    table = branch()
    other = opened_again(table)
    computed = incremented(table)
    other.append(rows(9))

    with pytest.raises(fuse.Conflict, match="rows that this overwrite has not seen were added by append"):
        table.overwrite(computed)

    table.refresh().overwrite(incremented(table))
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, 9]


def test_a_handle_moves_by_its_own_commits_and_by_refresh_alone(branch):
    table = branch()
    other, seen = opened_again(table), table.snapshot
    other.append(rows(9))

    for nothing_to_do in (table.maintenance.refresh_index, lambda: table.delete("id = 77"), lambda: table.append([])):
        assert nothing_to_do() is seen
    table.maintenance.compact()
    assert table.scan("id = 9").count() == 1  # it joined what there was
    compacted = table.snapshot
    other.refresh().delete("id = 9")
    assert table.maintenance.compact() is compacted

    table.append(rows(8))
    assert table.snapshot.sequence == other.snapshot.sequence + 1
    assert table.snapshot is table.refresh().snapshot


def test_an_index_that_was_replaced_by_another_of_its_name_is_not_dropped(branch):
    table = branch()
    other = opened_again(table)
    other.drop_index("x")
    other.create_index("x", "bloom", ["v"])
    with pytest.raises(fuse.Conflict, match="'x' was replaced"):
        table.drop_index("x")

    other.create_index("later", "bloom", ["v"])
    table.drop_index("later")  # which its handle knows nothing of
    assert table.snapshot.definitions.keys() == {"x"}


def test_a_handle_whose_next_snapshots_were_collected_goes_on():
    """What came between is known by the snapshots that are left, down to the newest."""
    store = Aged(open_store(f"memory://collected-{uuid4().hex}"))
    table = fuse.create_table(store, SCHEMA, properties={"block_rows": 4})
    table.append(rows(0, 1, 2, 3))
    table.tag("kept")
    stale = [fuse.open_table(store) for _ in range(4)]
    for row_id in (20, 30, 40):
        table.append(rows(row_id))
    store.age()
    assert table.maintenance.vacuum(timedelta(0), force=True, dry_run=False).files["snapshots"]
    process_cache.clear()

    stale[0].delete("id = 0")
    with pytest.raises(fuse.Conflict, match="were added by append"):
        stale[1].delete("id = 30")
    with pytest.raises(fuse.Conflict, match="changed by"):
        stale[2].restore("kept")
    table.refresh().rename_column("v", "w")
    with pytest.raises(fuse.Conflict, match="columns were changed by rename column"):
        stale[3].delete("id = 1")
