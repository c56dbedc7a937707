"""Small blocks are joined with their neighbours: the same rows in the same order, indexed, and no more work the next
time.
"""

from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.operations.compact import spans_to_compact
from fuse_storage.testing import check_invariants

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{row_id}" for row_id in ids]})


def ids(table: fuse.Table, where: str | None = None) -> list[int]:
    return table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist()


@pytest.fixture
def table() -> fuse.Table:
    """Twenty appends of one to three rows; blocks of up to ten."""
    made = fuse.create_table(f"memory://compaction-{uuid4().hex}", SCHEMA, properties={"block_rows": 10})
    made.create_index("by_name", "bloom", ["name"])
    at = 0
    for size in [1, 2, 3, 10, 1] * 4:
        made.append(rows(*range(at, at + size)))
        at += size
    return made


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([], []),
        ([1], []),
        ([1, 1], [(0, 2)]),
        ([1, 9, 1], []),
        ([4, 4, 4], [(0, 2)]),
        ([4, 4, 4, 4], [(0, 2), (2, 4)]),
        ([5, 1, 1, 5], [(1, 3)]),
        ([1] * 25, [(0, 10), (10, 20), (20, 25)]),
        ([4, 4, 2, 1], [(0, 3)]),
        ([10, 10], []),
    ],
)
def test_neighbours_that_are_small_and_fit_are_joined(counts, found):
    assert spans_to_compact(counts, 10) == found


def test_blocks_are_joined_in_order_and_indexed(table):
    before = ids(table)
    told: list[tuple[int, int]] = []
    was = table.snapshot
    table.maintenance.compact(lambda done, total: told.append((done, total)))

    assert ids(table) == before
    assert table.inspect.blocks().column("rows").to_pylist() == [6, 10, 7, 10, 7, 10, 7, 10, 1]
    assert table.snapshot.segment_count == 1
    assert told[-1] == (15, 15)
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [9]
    assert ids(table, "name = 'n30'") == [30]
    assert table.explain("name = 'n30'").to_dict()["blocks"]["kept"] == 1
    assert table.diff(was.id).kept.blocks == 5
    check_invariants(table.stored)


def test_what_is_compact_is_left_alone(table):
    done = table.maintenance.compact()

    assert table.maintenance.compact() is done


def test_each_portion_is_committed_and_a_killed_run_goes_on(table, monkeypatch):
    before = ids(table)
    monkeypatch.setattr("fuse_index.operations.compact._COMMIT_INTERVAL_ROWS", 1)
    seen = []

    def dying(done: int, total: int) -> None:
        seen.append(done)
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.maintenance.compact(dying)
    assert table.snapshot.operation == "compact"
    half = table.snapshot.block_count
    assert 9 < half < 20
    check_invariants(table.stored)
    again = fuse.open_table(table.stored.store)
    again.maintenance.compact()
    assert (again.snapshot.block_count, ids(again)) == (9, before)


def test_blocks_that_bytes_limit_are_not_joined_for_ever():
    table = fuse.create_table(
        f"memory://wide-{uuid4().hex}", SCHEMA, properties={"block_rows": 1000, "block_bytes": 100, "zone_rows": 1}
    )
    table.append(rows(*range(40)))
    same = table.snapshot

    assert table.maintenance.compact() is same
    assert ids(table) == list(range(40))


def test_rows_appended_meanwhile_stay_and_rows_deleted_meanwhile_are_a_conflict(table):
    before = ids(table)
    other = fuse.open_table(table.stored.store)

    def append(done: int, _: int) -> None:
        if done == 1:
            other.append(rows(100))

    table.maintenance.compact(append)
    assert ids(table.refresh()) == [*before, 100]

    for row_id in (200, 201):
        table.append(rows(row_id))

    def delete(done: int, _: int) -> None:
        if done == 1:
            other.refresh().delete("id = 200")

    with pytest.raises(fuse.Conflict, match="rows that this compact read were replaced by delete"):
        table.maintenance.compact(delete)
    assert ids(table.refresh()) == [*before, 100, 201]
    check_invariants(table.stored)


def test_many_small_segments_become_one():
    table = fuse.create_table(f"memory://segments-{uuid4().hex}", SCHEMA, properties={"block_rows": 1})
    for row_id in range(7):
        table.append(rows(row_id))
    assert table.snapshot.segment_count == 7

    table.maintenance.compact()
    assert (table.snapshot.segment_count, ids(table)) == (1, list(range(7)))


def test_only_blocks_that_may_hold_rows_of_a_condition_are_joined(table):
    before, blocks = ids(table), table.inspect.blocks().column("block").to_pylist()
    assert ids(table, "id IN (0, 1, 2, 40)") == [0, 1, 2, 40]

    table.maintenance.compact(where="id IN (0, 1, 2, 40)")

    after = table.inspect.blocks().column("block").to_pylist()
    assert blocks[:2] == [block for block in blocks if block not in after]  # nothing is joined across others
    assert ids(table) == before
    assert table.maintenance.compact(where="id = 0") is table.snapshot
    with pytest.raises(fuse.WhereError, match="did you mean"):
        table.maintenance.compact(where="idd = 0")
    with pytest.raises(fuse.OpaqueError, match="did you mean"):
        table.maintenance.compact(where="lowre(name) = 'n0'")
    check_invariants(table.stored)
