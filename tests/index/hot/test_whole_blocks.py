"""Deletes from tables with a primary key take blocks of the base as they are, and say what a dict by key says."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.statements.delete_by_key import KeyedDelete
from fuse_index.table.tier import start_tiering
from fuse_storage import BlockReplacement, Conflict, InvalidArgument, MeteredStore, meter_requests, process_cache
from fuse_storage.testing import check_invariants

Row = dict[str, Any]
Model = dict[tuple[int, int], Row]
DAYS = 4


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def row(number: int, n: int = 0, day: int | None = None) -> Row:
    return {"id": number, "day": number % DAYS if day is None else day, "n": n}


def key_of(each: Row) -> tuple[int, int]:
    return each["id"], each["day"]


def days(url: str, rows: int = 80, **properties: Any) -> fuse.Table:
    """A table of some days, two tiered blocks of each."""
    properties = {"block_rows": 10, "zone_rows": 5, "delete_mode": "merge-on-read", **properties}
    table = fuse.create_table(
        url, "id INT, day INT, n INT", primary_key=["id", "day"], partition_by=["day"], properties=properties
    )
    table.create_index("numbers", "bloom", ["n"])
    table.upsert([row(number) for number in range(rows)])
    table.maintenance.tier()
    return table


def as_model(table: fuse.Table) -> Model:
    found = {key_of(each): each for each in table.to_arrow().to_pylist()}
    assert len(found) == table.count()
    return found


def counted(table: fuse.Table) -> tuple[fuse.Table, MeteredStore]:
    """Open the table with its requests counted, and nothing in memory but its metadata."""
    process_cache.clear()
    store = meter_requests(table.stored.store)
    same = fuse.open_table(store)
    blocks = same.stored.without_tail().blocks()
    assert (len(blocks.ids), len(blocks.row_counts)) == (len(blocks), len(blocks))
    store.reset()
    return same, store


def touched(store: MeteredStore, *folders: str) -> list[str]:
    return sorted({key for _, key, _ in [*store.reads, *store.writes] if key.startswith(folders)})


# --- what is read


def test_a_delete_by_partitions_touches_no_row_and_no_key(url: str) -> None:
    made = days(url)
    gone = made.stored.blocks().take(np.flatnonzero(np.array(made.stored.blocks().partitions) == "[2]"))
    table, store = counted(made)
    table.delete("day = 2")

    assert touched(store, "_b/", "_i/", "_h/", "_d/") == []
    assert set(made.stored.blocks().ids) - set(table.stored.blocks().ids) == set(gone.ids)
    assert as_model(table) == {key_of(each): each for each in map(row, range(80)) if each["day"] != 2}
    assert (table.snapshot.operation, table.tail.blocks) == ("delete", 0)
    summary = table.snapshot.summary
    assert (summary["removed_blocks"], summary["removed_rows"], summary["deleted_rows"]) == (2, 20, 20)
    assert table.snapshot.row_count == table.count() == 60
    check_invariants(table.stored)


def test_a_delete_of_all_rows_reads_none(url: str) -> None:
    table, store = counted(days(url))
    table.delete("true")

    assert touched(store, "_b/", "_i/", "_h/", "_d/") == []
    assert (table.count(), table.snapshot.block_count, table.snapshot.summary["deleted_rows"]) == (0, 0, 80)
    table.upsert([row(3)])
    table.maintenance.tier()
    assert as_model(table) == {(3, 3): row(3)}


def test_bounds_of_other_columns_take_blocks_and_the_rest_by_key(url: str) -> None:
    made = fuse.create_table(url, "id INT, n INT", primary_key=["id"], properties={"block_rows": 10})
    made.upsert([{"id": number, "n": number // 5} for number in range(60)])
    made.maintenance.tier()
    before = made.stored.blocks()
    table, store = counted(made)
    table.delete("n BETWEEN 1 AND 6")  # half of the first block, all of two, half of the fourth

    assert touched(store, "_b/") == sorted(before.locations[place] for place in (0, 3))
    assert len([key for verb, key, _ in store.writes if verb == "create" and key.startswith("_h/")]) == 1
    assert table.to_arrow().column("id").to_pylist() == [*range(5), *range(35, 60)]
    assert table.snapshot.summary["deleted_rows"] == 30
    assert (table.tail.rows, table.tail.blocks) == (0, 1)
    check_invariants(table.stored)


def test_a_tail_of_other_days_is_read_and_no_block_of_the_base(url: str) -> None:
    made = days(url)
    made.upsert([row(number, 1) for number in (1, 5, 101)])
    made.delete_keys([{"id": 3, "day": 3}])
    table, store = counted(made)
    table.delete("day = 2")

    tail = set(touched(store, "_h/"))
    assert len(tail) == 2
    read = set(touched(store, "_b/"))  # the blocks of the keys that the tail has
    blocks = made.stored.blocks()
    assert {blocks.partitions[blocks.locations.index(key)] for key in read} <= {"[1]", "[3]"}
    assert (table.snapshot.summary["deleted_rows"], table.tail.blocks) == (20, 2)


def test_keys_of_a_day_are_read_only_of_blocks_that_may_have_one_of_the_tail(url: str) -> None:
    made = days(url, rows=160)
    blocks = made.stored.blocks()
    own = [place for place, partition in enumerate(blocks.partitions) if partition == "[2]"]
    assert len(own) == 4
    made.upsert([row(6, 1), row(10, 1), row(1002, 1)])
    table, store = counted(made)
    table.delete("day = 2")

    assert touched(store, "_b/") == [blocks.locations[own[0]]]
    assert table.snapshot.summary["deleted_rows"] == 41
    assert table.snapshot.summary["removed_blocks"] == 4
    assert as_model(table) == {key_of(each): each for each in map(row, range(160)) if each["day"] != 2}
    table.maintenance.tier()
    assert table.count() == 120
    check_invariants(table.stored)


# --- a small world

CONDITION = "n = 1"
KEYS = {"of a whole block": 2, "that matches beside others": 8, "beside such": 9, "of another block": 14, "of none": 99}
MARKED = {"nothing": [], "others": [3, 7, 10, 15], "these": [2, 8, 9, 14]}
TAILS: dict[str, list[int | None]] = {
    "nothing": [],
    "matching": [1],
    "other": [0],
    "gone": [None],
    "other, matching": [0, 1],
    "matching, other": [1, 0],
    "matching, gone": [1, None],
    "gone, other": [None, 0],
}


def put_or_delete(table: fuse.Table, model: dict[int, Row], ids: list[int], n: int | None) -> None:
    if n is None:
        table.delete_keys(ids)
        for number in ids:
            model.pop(number, None)
    elif ids:
        table.upsert(rows := [{"id": number, "n": n} for number in ids])
        model |= {each["id"]: each for each in rows}


def world(marked: str, tail: str) -> tuple[fuse.Table, dict[int, Row]]:
    """A block of rows that match, one of both, one of others; some with a vector; a tail of one key of each."""
    table = fuse.create_table(
        f"memory://{uuid.uuid4().hex}", "id INT, n INT", primary_key=["id"], properties={"block_rows": 8}
    )
    model = {number: {"id": number, "n": int(number < 8 or (number < 16 and number % 2 == 0))} for number in range(24)}
    table.upsert(list(model.values()))
    table.maintenance.tier()
    put_or_delete(table, model, MARKED[marked], None)
    table.maintenance.tier()
    assert table.stored.blocks().has_all_rows.all() == (marked == "nothing")
    for n in TAILS[tail]:
        put_or_delete(table, model, list(KEYS.values()), n)
    return table, model


@pytest.mark.alike
@pytest.mark.parametrize(("marked", "tail"), list(product(MARKED, TAILS)))
def test_a_small_world_is_what_a_dict_is(marked: str, tail: str) -> None:
    table, model = world(marked, tail)
    left = {number: each for number, each in model.items() if each["n"] != 1}
    since, version, before = table.snapshot.id, table.version, table.stored.segments().base_block_count
    after = table.delete(CONDITION)

    def check(table: fuse.Table) -> None:
        rows = table.to_arrow().to_pylist()
        assert sorted(rows, key=str) == sorted(left.values(), key=str)
        assert (table.count(), table.count(CONDITION)) == (len(left), 0)
        check_invariants(table.stored)

    check(table)
    assert (table.version, table.stored.segments().base_block_count) == (version + 1, before - 1)
    assert after.summary["deleted_rows"] == len(model) - len(left)
    told = table.changes(since).to_arrow().to_pylist()
    gone = [each | {"_change_type": "delete"} for each in model.values() if each["n"] == 1]
    assert sorted(told, key=str) == sorted(gone, key=str)
    keys = table.changes(since, preimages=False).to_arrow().to_pylist()
    assert {each["id"] for each in keys} == {each["id"] for each in gone}
    check(fuse.open_table(table.stored.store))
    table.maintenance.tier()
    check(table)
    assert fuse.open_table(table.stored.store, tail=False).count() == len(left)


# --- others that commit meanwhile


def whole_rows(url: str) -> fuse.Table:
    """Two blocks that a condition takes whole, one in part, and two in the tail."""
    table = days(url, rows=40)
    table.upsert([row(41), row(42)])
    return table


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Something that is done after a delete has been planned for the first time, and before it is committed."""
    real, waiting = KeyedDelete._commit, list[Callable[[], Any]]()

    def commit(self: KeyedDelete, found: Any) -> Any:
        if waiting:
            waiting.pop()()
        return real(self, found)

    monkeypatch.setattr(KeyedDelete, "_commit", commit)
    yield waiting.append
    assert not waiting


def tier(table: fuse.Table) -> fuse.Snapshot:
    return table.maintenance.tier()


def tiered_after(*steps: Callable[[fuse.Table], Any]) -> Callable[[fuse.Table], Any]:
    def run(table: fuse.Table) -> None:
        for step in (*steps, tier):
            step(table.refresh())

    return run


HARMLESS: dict[str, Callable[[fuse.Table], Any]] = {
    "tiering": tier,
    "compaction": lambda table: table.set_properties({"block_rows": 100}) and table.maintenance.compact(),
    "an index": lambda table: table.create_index("others", "bloom", ["n"]),
    "a put of another day": lambda table: table.upsert([row(101)]),
    "a put of a key of another day": lambda table: table.upsert([row(1, 7)]),
    "a delete of a key of another day": lambda table: table.delete_keys([{"id": 5, "day": 1}]),
    "a delete of a key that there is not": lambda table: table.delete_keys([{"id": 6 + 4000, "day": 2}]),
    "a delete of a key between those that there are": lambda table: table.delete_keys([{"id": 7, "day": 2}]),
    "a put of a row that goes, which goes": lambda table: table.upsert([row(6, 7)]),
    "a put, and tiering": tiered_after(lambda table: table.upsert([row(1, 7), row(101)])),
    "a put of a row that goes, and tiering": tiered_after(lambda table: table.upsert([row(6, 7)])),
    "tiering, and a put": lambda table: table.maintenance.tier() and table.upsert([row(1, 7)]),
}
HARMFUL: dict[str, Callable[[fuse.Table], Any]] = {
    "a new row of the day": lambda table: table.upsert([row(102)]),
    "a delete of a key of a whole block": lambda table: table.delete_keys([{"id": 6, "day": 2}]),
    "a delete of a key of the tail": lambda table: table.delete_keys([{"id": 42, "day": 2}]),
    "a new row of the day, and tiering": tiered_after(lambda table: table.upsert([row(102)])),
    "a delete of a key, and tiering": tiered_after(lambda table: table.delete_keys([{"id": 6, "day": 2}])),
    "another column": lambda table: table.add_column("more", "int"),
    "the same delete": lambda table: table.delete("day = 2"),
}


@pytest.mark.alike
@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("is_old", [False, True], ids=["raced", "old handle"])
def test_a_delete_goes_with_what_leaves_its_rows(
    url: str, name: str, is_old: bool, between: Callable[[Callable[[], Any]], None]
) -> None:
    table, other = whole_rows(url), fuse.open_table(url)
    if is_old:
        HARMLESS[name](other)
    else:
        between(lambda: HARMLESS[name](other))
    table.delete("day = 2")

    wanted = {key: each for key, each in as_model(other.refresh()).items() if key[1] != 2}
    assert as_model(table) == as_model(fuse.open_table(url)) == wanted
    expected = {key_of(each): each for each in map(row, range(42)) if each["day"] != 2 and each["id"] not in (1, 5, 40)}
    assert expected.items() <= wanted.items()
    assert table.snapshot.operation in ("delete", "tier", "delete keys")
    assert 2 not in {each["partition"]["day"] for each in table.inspect.partitions().to_pylist()}
    check_invariants(table.stored)
    table.maintenance.tier()
    assert as_model(table) == wanted


@pytest.mark.parametrize("name", HARMFUL)
@pytest.mark.parametrize("is_old", [False, True], ids=["raced", "old handle"])
def test_a_delete_is_a_conflict_with_what_brings_or_takes_its_rows(
    url: str, name: str, is_old: bool, between: Callable[[Callable[[], Any]], None]
) -> None:
    table, other = whole_rows(url), fuse.open_table(url)
    if is_old:
        HARMFUL[name](other)
    else:
        between(lambda: HARMFUL[name](other))

    with pytest.raises(Conflict, match="rows that this delete read were changed"):
        table.delete("day = 2")
    version, rows = other.refresh().version, as_model(other)
    assert (fuse.open_table(url).version, as_model(table.refresh())) == (version, rows)


def test_a_delete_whose_rows_were_tiered_meanwhile_reads_none_of_its_whole_blocks(
    url: str, between: Callable[[Callable[[], Any]], None]
) -> None:
    table, store = counted(whole_rows(url))
    other = fuse.open_table(url)
    between(other.maintenance.tier)
    table.delete("day = 2")

    assert touched(store, "_b/") == []
    assert (table.tail.blocks, table.snapshot.summary["deleted_rows"]) == (0, 11)


def test_rows_of_whole_blocks_that_others_changed_are_found_by_key_alone(
    url: str, between: Callable[[Callable[[], Any]], None]
) -> None:
    """Puts of a row that then is another, on which the condition is not true, where no partition keeps it in place."""
    table = fuse.create_table(url, "id INT, n INT", primary_key=["id"], properties={"block_rows": 5})
    table.upsert([{"id": number, "n": number // 5} for number in range(20)])
    table.maintenance.tier()
    other = fuse.open_table(url)
    between(lambda: other.upsert([{"id": 7, "n": 2}]))
    with pytest.raises(Conflict, match="rows that this delete read were changed"):
        table.delete("n = 1")
    table.refresh().delete("n = 1")

    assert [each["id"] for each in table.to_arrow().to_pylist()] == [*range(5), *range(10, 20), 7]
    assert table.snapshot.summary["deleted_rows"] == 4


def test_tiering_that_was_planned_before_brings_no_row_back(url: str) -> None:
    table = days(url, rows=40)
    table.upsert([row(2, 7), row(42), row(43)])
    job = start_tiering(table)
    outcomes = [job.run(task) for task in job.plan_tasks()]
    table.delete("day = 2")
    left = as_model(table)
    while job.commit(outcomes):
        outcomes = [job.run(task) for task in job.plan_tasks()]

    assert as_model(table.refresh()) == left
    assert {key[1] for key in left} == {0, 1, 3}
    table.maintenance.tier()
    assert as_model(table) == left
    check_invariants(table.stored)


# --- storage lets nothing else go


def test_only_blocks_of_the_base_go_without_regard_to_keys(url: str) -> None:
    table = whole_rows(url)
    ids, base = table.stored.blocks().ids, table.stored.segments().base_block_count
    with table.stored.writer() as writer:
        writer.write(pa.table({"id": [900], "day": [0], "n": [1]}, table.schema))
        staged = writer.finish()
    refused = {
        "of the tail": ([BlockReplacement((ids[base],))], []),
        "of both": ([BlockReplacement((ids[0],)), BlockReplacement((ids[base],))], []),
        "for others": ([BlockReplacement((ids[0],), 1)], staged),
    }
    for name, (replacements, others) in refused.items():
        transaction = table.stored.transaction().replace_blocks(replacements, others, table.stored.segments().ids)
        with pytest.raises(InvalidArgument, match="without regard to the primary key"):
            transaction.commit()
        assert fuse.open_table(url).version == table.version, name
    earlier = table.stored.snapshot
    table.upsert([row(43)])
    transaction = table.stored.transaction().restore(earlier)
    with pytest.raises(InvalidArgument, match="without regard to the primary key"):
        transaction.replace_blocks([BlockReplacement((ids[base],))], [], ()).commit()
    transaction = table.stored.transaction().append(staged)
    with pytest.raises(InvalidArgument, match="without regard to the primary key"):
        transaction.replace_blocks([BlockReplacement((ids[0],))], [], table.stored.segments().ids).commit()
    table.stored.transaction().replace_blocks([BlockReplacement((ids[0],))], [], table.stored.segments().ids).commit()
    assert table.refresh().count() == 33


def test_a_full_tail_refuses_keys_and_not_that_blocks_go(url: str) -> None:
    table = days(url, rows=40, tail_commits=1, tiering="job")
    for n in (1, 2, 3):
        table.upsert([row(1, n)])
    table.delete("day = 2")
    assert table.count() == 30
    with pytest.raises(fuse.TailFull):
        table.delete("day = 1")
    table.maintenance.tier()
    table.delete("day = 1")
    assert table.count() == 20
