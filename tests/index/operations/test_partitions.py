"""A partitioned table is as any other with its rows, whatever is done to it; and its conditions take whole blocks."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import fuse_index as fuse
from fuse_storage import InvalidArgument, MeteredStore, PartitionSpec, meter_requests, open_store
from fuse_storage.testing import check_invariants
from tests.effort import effort

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
LONG = "x" * 200


def row(number: int) -> dict[str, Any]:
    day = None if number % 7 == 6 else date(2025, 12, 30 + number % 2) if number % 3 else date(2026, 1, 1 + number % 4)
    return {"id": number, "day": day, "name": [LONG + "a", LONG + "b", None, ""][number % 4]}


def created(partitions: list[str], **more: Any) -> fuse.Table:
    return fuse.create_table(f"memory://partitions-{uuid4().hex}", SCHEMA, partition_by=partitions, **more)


def metered(table: fuse.Table) -> tuple[fuse.Table, MeteredStore]:
    """The same table, whose requests are counted, with its metadata in memory."""
    store = meter_requests(open_store(table.stored.store.url))
    same = fuse.open_table(store)
    same.scan("id = -1").count()
    store.reset()
    return same, store


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


CONDITIONS: dict[str, tuple[list[str], str, Callable[[dict[str, Any]], bool]]] = {
    "range": (["day"], "day < '2026-01-01'", lambda row: row["day"] is not None and row["day"] < date(2026, 1, 1)),
    "null": (["day"], "day IS NULL", lambda row: row["day"] is None),
    "in": (["day"], "day IN ('2026-01-02', '2026-01-03')", lambda row: str(row["day"]) in ("2026-01-02", "2026-01-03")),
    "long text": (["name"], f"name = '{LONG}b'", lambda row: row["name"] == LONG + "b"),
    "below a long text": (["name"], f"name < '{LONG}b'", lambda row: row["name"] in (LONG + "a", "")),
    "many texts": (
        ["name"],
        f"name IN ({', '.join(repr(LONG + c) for c in 'bcdefghijklmn')})",
        lambda row: row["name"] == LONG + "b",
    ),
    "two columns": (
        ["name", "day"],
        "name IS NULL AND day = '2025-12-30'",
        lambda row: row["name"] is None and row["day"] == date(2025, 12, 30),
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_delete_by_partitions_opens_and_rewrites_nothing(name: str) -> None:
    partitions, condition, goes = CONDITIONS[name]
    made, rows = created(partitions, cluster_by=["id"]), [row(number) for number in range(60)]
    made.append(rows)
    table, store = metered(made)
    before = set(table.stored.blocks().ids)
    table.delete(condition)

    touched = {key for _, key, _ in [*store.reads, *store.writes] if key.startswith(("_b/", "_i/", "_h/", "_d/"))}
    assert touched == set()
    assert set(table.stored.blocks().ids) < before
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order([row for row in rows if not goes(row)])


@pytest.mark.parametrize("name", CONDITIONS)
def test_blocks_with_deletion_vectors_go_as_whole_ones_do(name: str) -> None:
    """What was deleted does not matter: neither rows on which the condition is not true, nor zones without a row."""
    partitions, condition, goes = CONDITIONS[name]
    made = created(partitions, cluster_by=["id"], properties={"delete_mode": "merge-on-read", "zone_rows": 2})
    rows = [row(number) for number in range(60)]
    made.append(rows)
    made.delete("id IN (0, 1, 2, 3, 7, 14, 15)")
    rows = [each for each in rows if each["id"] not in (0, 1, 2, 3, 7, 14, 15)]
    assert not made.stored.blocks().has_all_rows.all()
    table, store = metered(made)
    table.delete(condition)

    touched = {key for _, key, _ in [*store.reads, *store.writes] if key.startswith(("_b/", "_i/", "_h/"))}
    assert touched == set()
    assert table.snapshot.summary["deleted_rows"] == sum(map(goes, rows))
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order([row for row in rows if not goes(row)])
    check_invariants(table.stored)


def test_a_block_is_whole_where_an_index_and_a_vector_leave_the_same_rows() -> None:
    """Some rows of each zone hold the word: where all others were deleted, the block goes, and else is rewritten."""
    properties = {"delete_mode": "merge-on-read", "block_rows": 12, "zone_rows": 4}
    made = fuse.create_table(f"memory://whole-{uuid4().hex}", "id BIGINT, text STRING", properties=properties)
    made.create_index("words", "full_text", ["text"])
    made.append([{"id": number, "text": "out" if number in (1, 9, 14, 20) else "in"} for number in range(24)])
    made.delete("id IN (1, 9, 14, 20)")
    made.append([{"id": number, "text": "out" if number in (25, 33) else "in"} for number in range(24, 36)])
    made.delete("id = 25")
    table, store = metered(made)
    before = table.stored.blocks()
    assert before.live_row_counts.tolist() == [10, 10, 11]
    table.delete("match(text, 'in')")

    assert {key for _, key, _ in store.reads if key.startswith("_b/")} == {before.locations[2]}
    assert table.to_arrow().to_pylist() == [{"id": 33, "text": "out"}]
    assert table.snapshot.summary["deleted_rows"] == 30


def test_an_overwrite_by_a_partition_reads_none_of_it() -> None:
    made, rows = created(["day"]), [row(number) for number in range(60)]
    made.append(rows)
    table, store = metered(made)
    before = set(table.stored.blocks().ids)
    new = [{"id": 1000 + number, "day": date(2026, 1, 1), "name": "n"} for number in range(3)]
    table.overwrite(new, "day = '2026-01-01'")

    assert {key for _, key, _ in store.reads if key.startswith("_b/")} == set()
    assert len(before - set(table.stored.blocks().ids)) == 1
    kept = [each for each in rows if each["day"] != date(2026, 1, 1)]
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(kept + new)
    check_invariants(table.stored)


def test_partitions_are_listed_in_order_and_hot_rows_are_of_none() -> None:
    table = created(["day", "name"])
    table.append([row(number) for number in (1, 2, 3, 6, 6)])
    table.append([row(1)])
    table.append([row(5)], hot=True)
    listed = table.inspect.partitions()

    assert listed.schema.names == ["partition", "blocks", "rows", "bytes"]
    assert [(*each["partition"].values(), each["blocks"], each["rows"]) for each in listed.to_pylist()] == [
        (date(2025, 12, 30), None, 1, 1),
        (date(2025, 12, 31), LONG + "b", 2, 2),
        (date(2026, 1, 4), "", 1, 1),
        (None, None, 1, 2),
    ]
    assert sum(listed.column("bytes").to_pylist()) + table.tail.bytes == table.snapshot.bytes
    table.maintenance.tier()
    assert sum(table.inspect.partitions().column("rows").to_pylist()) == table.snapshot.row_count == 7
    assert created([]).inspect.partitions().num_rows == created(["day"]).inspect.partitions().num_rows == 0


def test_tiering_makes_a_block_for_each_partition_and_takes_over_what_is_as_it_would_write_it() -> None:
    table = created(["day"])
    table.append([row(1), row(3), row(7)], hot=True)
    table.append([row(6), row(13)], hot=True)
    hot = table.stored.blocks().locations
    table.maintenance.tier()

    assert table.tail.rows == 0
    assert [each["blocks"] for each in table.inspect.partitions().to_pylist()] == [1, 1, 1]
    assert set(hot) & set(table.stored.blocks().locations) == {hot[1]}
    check_invariants(table.stored)


def test_compaction_joins_blocks_of_a_partition_wherever_they_lie() -> None:
    """Neighbours are of five partitions each, and to join four of those would make as many blocks again."""
    table = created(["day"], properties={"block_rows": 8})
    for start in range(4):
        table.append([{"id": start, "day": date(2026, 1, 1 + number % 5)} for number in range(10)])
    assert table.snapshot.block_count == 20
    table.maintenance.compact()

    assert [each["blocks"] for each in table.inspect.partitions().to_pylist()] == [1] * 5
    check_invariants(table.stored)


@pytest.mark.parametrize("method", ["linear", "zorder"])
def test_rows_are_sorted_within_partitions_and_reclustering_keeps_to_them(method: str) -> None:
    properties = {"block_rows": 10, "cluster_method": method}
    table = created(["day"], cluster_by=["id", "name"], properties=properties)
    table.append(first := [row(number) for number in range(0, 90, 3)])
    counts = Counter(each["day"] for each in first).values()
    assert table.snapshot.block_count == sum(-(-count // 10) for count in counts)
    for start in (1, 2):
        table.append([row(number) for number in range(start, 90, 3)])
    table.maintenance.recluster(depth=1)

    assert in_order(table.scan().to_arrow().to_pylist()) == in_order([row(number) for number in range(90)])
    check_invariants(table.stored)
    if method == "linear":
        blocks = table.stored.blocks()
        by_partition: dict[str | None, list[tuple[int, int]]] = {}
        ids = blocks.statistics(1)
        assert ids is not None
        for partition, low, high in zip(blocks.partitions, ids.min.to_pylist(), ids.max.to_pylist(), strict=True):
            by_partition.setdefault(partition, []).append((low, high))
        for spans in by_partition.values():
            ordered = sorted(spans)
            assert all(before[1] < after[0] for before, after in pairwise(ordered))


def test_statements_may_touch_as_many_partitions_as_there_are_and_make_a_bounded_number() -> None:
    table = created(["id"], properties={"max_partitions": 5})
    for start in range(0, 20, 5):
        table.append([row(number) for number in range(start, start + 5)])
    table.update(None, {"name": "'n'"})
    assert table.inspect.partitions().num_rows == 20
    table.maintenance.compact()

    with pytest.raises(InvalidArgument, match="more than 5 partitions"):
        table.append([row(number) for number in range(6)])
    table = created(["id"], properties={"max_partitions": 5, "block_rows": 100})
    table.append([{"id": 1, "name": str(number)} for number in range(50)])
    with pytest.raises(InvalidArgument, match="more than 6 partitions"):
        table.update(None, {"id": lambda rows: pa.array(range(len(rows)))})
    assert table.inspect.partitions().num_rows == 1


def test_a_tail_of_more_partitions_than_a_write_may_have_is_tiered() -> None:
    table = created(["id"], properties={"max_partitions": 5})
    table.append([row(number) for number in range(12)], hot=True)
    table.maintenance.tier()

    assert (table.tail.rows, table.inspect.partitions().num_rows) == (0, 12)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "hot",
                "tier",
                "compact",
                "recluster",
                "delete",
                "update",
                "merge",
                "overwrite",
                "move",
                "restore",
            ]
        ),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=effort(12), deadline=None)
@given(
    partitions=st.sampled_from([["day"], ["name"], ["day", "name"]]),
    key=st.sampled_from([[], ["id"], ["name", "id"]]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
    steps=STEPS,
)
def test_a_table_is_what_a_list_of_rows_is(partitions: list[str], key: list[str], mode: str, steps: Any) -> None:
    table = created(partitions, cluster_by=key, properties={"block_rows": 8, "segment_blocks": 6, "delete_mode": mode})
    rows: list[dict[str, Any]] = []
    states = {table.snapshot.id: rows}
    for step, number in steps:
        some = [row(number + each) for each in range(number % 11)]
        match step:
            case "append" | "hot":
                table.append(some, hot=step == "hot" and bool(some))
                rows = rows + some
            case "tier" | "compact":
                getattr(table.maintenance, step)()
            case "recluster" if key:
                table.maintenance.recluster(depth=1)
            case "delete":
                table.delete(f"id >= {number} AND id < {number + 5}")
                rows = [each for each in rows if not number <= each["id"] < number + 5]
            case "update":
                table.update(f"id IN ({number}, {number + 3})", {"name": "'renamed'"})
                rows = [each | {"name": "renamed"} if each["id"] in (number, number + 3) else each for each in rows]
            case "move":
                table.update(f"id > {number}", {"day": date(2026, 5, 1)})
                rows = [each | {"day": date(2026, 5, 1)} if each["id"] > number else each for each in rows]
            case "merge":
                table.merge(some, on=["id"])
                new = {each["id"]: each for each in some}
                known = {each["id"] for each in rows}
                rows = [new.get(each["id"], each) for each in rows] + [each for each in some if each["id"] not in known]
            case "overwrite":
                chosen = [each | {"day": date(2026, 1, 1)} for each in some]
                table.overwrite(chosen, "day = '2026-01-01'")
                rows = [each for each in rows if each["day"] != date(2026, 1, 1)] + chosen
            case "restore":
                snapshot = list(states)[number % len(states)]
                table.restore(snapshot)
                rows = states[snapshot]
        states[table.snapshot.id] = rows
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(rows)
    check_invariants(table.stored)
    spec = PartitionSpec.from_snapshot(table.snapshot)
    assert spec is not None
    wanted = {tuple(each[name] for name in partitions) for each in rows}
    if not table.tail.rows and mode == "copy-on-write":
        assert {tuple(each["partition"].values()) for each in table.inspect.partitions().to_pylist()} == wanted
