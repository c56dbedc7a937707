"""A table followed from position to position: every row once, however much is read at a time, and nothing unsaid."""

import json
import random
from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.changes import follow
from fuse_index.changes.follow import BatchLimit, CommitStep, OnChange, StreamOffset, TableFollower
from fuse_index.errors import StreamError
from fuse_storage import meter_requests, process_cache

ALL = BatchLimit()


def rows(*ids):
    return [{"id": row_id, "city": "Bonn"} for row_id in ids]


@pytest.fixture
def table():
    """Five blocks of two rows."""
    made = fuse.create_table(f"memory://follow-{uuid4().hex}", "id BIGINT, city STRING", properties={"block_rows": 2})
    made.append(rows(*range(10)))
    return made


def ids(follower, start, end):
    """The ids that are to be read, step by step; of steps that compare, the number of their commit."""
    return [
        -step.after.snapshot.sequence
        if step.may_remove_rows
        else [
            row_id
            for block in range(len(step.added_blocks))
            for row_id in follower.schema_table.read_block(step.added_blocks, block, ["id"]).column(0).to_pylist()
        ]
        for step in follower.steps_between(start, end)
    ]


def followed(follower, start, limit=ALL):
    """What is read at each trigger, until nothing is left; positions go through JSON, as in a checkpoint."""
    found = []
    while (end := follower.latest_offset(start, limit, follower.head_sequence())) != start:
        end = StreamOffset.from_json(json.loads(json.dumps(end.to_json())))
        found.append(ids(follower, start, end))
        start = end
    return found, start


def test_what_is_there_comes_first_and_then_what_is_appended(table):
    follower = TableFollower(table.stored)
    start = follower.initial_offset()
    table.append(rows(10))
    first, here = followed(follower, start)
    assert first == [[list(range(10)), [10]]]

    table.append(rows(11, 12, 13))
    table.append(rows(14))
    assert followed(TableFollower(table.stored), here) == (
        [[[11, 12, 13], [14]]],
        StreamOffset(table.snapshot.id, table.snapshot.sequence),
    )
    assert followed(follower, follower.initial_offset(table.stored)) == (
        [],
        StreamOffset(table.snapshot.id, table.snapshot.sequence),
    )


def test_an_empty_table_is_followed_from_its_first_rows():
    empty = fuse.create_table(f"memory://follow-{uuid4().hex}", "id BIGINT")
    follower = TableFollower(empty.stored)
    start = follower.initial_offset()
    assert followed(follower, start) == ([], start)
    empty.append([{"id": 1}])
    assert followed(follower, start)[0] == [[[1]]]


@pytest.mark.parametrize(
    ("limit", "read"),
    [
        (BatchLimit(blocks=2), [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9], [10]], [[11, 12]]]),
        (BatchLimit(blocks=1), [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]], [[8, 9]], [[10]], [[11, 12]]]),
        (BatchLimit(rows=5), [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9], [10], [11, 12]]]),
        (BatchLimit(rows=1), [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]], [[8, 9]], [[10]], [[11, 12]]]),
        (BatchLimit(blocks=3, rows=100), [[[0, 1, 2, 3, 4, 5]], [[6, 7, 8, 9], [10]], [[11, 12]]]),
    ],
)
def test_so_much_is_read_at_once_and_no_more(table, limit, read):
    follower = TableFollower(table.stored)
    start = follower.initial_offset()
    table.append(rows(10))
    table.append(rows(11, 12))

    assert followed(follower, start, limit)[0] == read


def test_compactions_and_indexes_are_passed_over_unread():
    table = fuse.create_table(f"memory://follow-{uuid4().hex}", "id BIGINT, city STRING", properties={"block_rows": 8})
    follower = TableFollower(table.stored)
    start = follower.initial_offset()
    first = table.append(rows(0)).id
    for row_id in range(1, 6):
        table.append(rows(row_id))
    table.create_index("by_city", "bloom", ["city"])
    table.maintenance.compact()
    assert CommitStep(fuse.open_table(table.stored.store, at=first).stored, table.stored).row_counts.tolist() == [
        7
    ]  # no shortcut over several
    table.append(rows(6))
    assert table.snapshot.block_count == 2

    found, here = followed(follower, start, BatchLimit(blocks=4))
    assert [row_id for batch in found for step in batch for row_id in step] == list(range(7))
    assert here.sequence == table.snapshot.sequence
    done = follower.initial_offset(table.stored)
    table.append(rows(17))
    table.maintenance.compact()
    store = meter_requests(table.stored.store)
    assert followed(TableFollower(fuse.open_table(store).stored), done)[0] == [[[17]]]
    assert len({key for _, key, _ in store.reads if key.startswith("_b/")}) == 1


def test_reclustering_is_passed_over_unread():
    table = fuse.create_table(
        f"memory://follow-{uuid4().hex}", "id BIGINT, city STRING", cluster_by=["id"], properties={"block_rows": 4}
    )
    for row_id in range(6):
        table.append(rows(row_id, 20 - row_id, 40 + row_id, 60 - row_id))
    start = TableFollower(table.stored).initial_offset(table.stored)
    before = table.stored.blocks().ids
    table.maintenance.recluster()
    assert set(table.stored.blocks().ids).isdisjoint(before)
    table.append(rows(7))

    assert followed(TableFollower(table.stored), start)[0] == [[[7]]]


def test_a_reader_moves_over_what_has_no_rows_only_now_and_then(table, monkeypatch):
    follower = TableFollower(table.stored)
    start = follower.initial_offset(table.stored)
    table.create_index("by_city", "bloom", ["city"])
    assert follower.latest_offset(start, ALL, follower.head_sequence()) == start
    store = meter_requests(table.stored.store)
    idle = TableFollower(fuse.open_table(store).stored)
    idle.latest_offset(start, ALL, idle.head_sequence())
    store.reset()
    assert idle.latest_offset(start, ALL, idle.head_sequence()) == start
    assert len(store.reads) <= 1  # is there another commit?

    monkeypatch.setattr(follow, "MAX_IDLE_LAG", timedelta(0))
    assert (
        TableFollower(table.stored).latest_offset(start, ALL, follower.head_sequence()).sequence
        == table.snapshot.sequence
    )
    table.drop_index("by_city")
    table.delete("id = 1")
    with pytest.raises(StreamError, match="deleted or changed"):
        follower.latest_offset(start, ALL, follower.head_sequence())


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("id = 3"),
        lambda table: table.update("id = 3", {"city": "'Rome'"}),
        lambda table: table.merge(rows(3, 99), ["id"]),
        lambda table: table.overwrite(rows(99)),
        lambda table: table.restore(table.stored.history()[-1].snapshot_id),
    ],
    ids=["delete", "update", "merge", "overwrite", "restore"],
)
def test_deletes_and_updates_are_refused_passed_over_or_told(table, change):
    since = table.stored
    table.append(rows(10))
    change(table)
    table.append(rows(11))
    number = table.snapshot.sequence

    refusing = TableFollower(table.stored)
    start = refusing.initial_offset(since)
    before = refusing.latest_offset(start, ALL, number)
    assert ids(refusing, start, before) == [[10]]
    with pytest.raises(StreamError, match=rf"number {number - 1}.*read_changes.*skip_changes"):
        refusing.latest_offset(before, ALL, number)
    assert followed(TableFollower(table.stored, OnChange.SKIP), start)[0] == [[[10], [11]]]
    assert followed(TableFollower(table.stored, OnChange.READ), start)[0] == [[[10], 1 - number, [11]]]
    assert followed(TableFollower(table.stored, OnChange.READ), start, BatchLimit(rows=1))[0] == [
        [[10]],
        [1 - number],
        [[11]],
    ]


def test_columns_that_change_ask_for_a_restart(table):
    follower = TableFollower(table.stored)
    start = follower.initial_offset()
    table.append(rows(10))
    table.add_column("n", "int")
    table.append([{"id": 11, "city": "Rome", "n": 1}])

    here = follower.latest_offset(start, ALL, follower.head_sequence())
    assert ids(follower, start, here) == [list(range(10)), [10]]
    with pytest.raises(StreamError, match=r"columns were changed by add column.*restart"):
        follower.latest_offset(here, ALL, follower.head_sequence())
    assert followed(TableFollower(table.stored), here)[0] == [[[11]]]
    assert followed(TableFollower(table.stored), start)[0] == [[list(range(10)), [10], [11]]]


def test_what_was_collected_or_replaced_is_said_with_what_to_do(table):
    follower = TableFollower(table.stored)
    start = follower.initial_offset(table.stored)
    gone = table.append(rows(10)).id
    table.append(rows(11))
    table.stored.store.delete([f"_ss/{gone}.json"])
    fresh = TableFollower(fuse.open_table(table.stored.store).stored)
    process_cache.clear()
    with pytest.raises(
        StreamError, match=rf"up to commit number {start.sequence}.*number {start.sequence + 1} is gone.*new checkpoint"
    ):
        fresh.latest_offset(start, ALL, fresh.head_sequence())
    with pytest.raises(StreamError, match=rf"^{table.stored.store.url} has another commit number 2"):
        fresh.latest_offset(StreamOffset("0" * 32, 2), ALL, fresh.head_sequence())
    with pytest.raises(StreamError, match="has no version 40: its newest is"):
        fresh.latest_offset(StreamOffset("0" * 32, 40), ALL, 41)
    with pytest.raises(StreamError, match="no position in a table"):
        StreamOffset.from_json({"sequence": "x"})
    side = table.branch("side")
    with pytest.raises(StreamError, match="on branch 'main'"):
        TableFollower(side.stored).initial_offset(table.stored)
    follow = TableFollower(side.stored)
    side.drop_branch("side")
    with pytest.raises(StreamError, match="new checkpoint"):
        follow.head_sequence()


@pytest.mark.parametrize("seed", range(4))
def test_every_appended_row_is_read_once(seed):
    """Whatever happens in between, and however little is read at a time."""
    draw = random.Random(seed)
    table = fuse.create_table(f"memory://follow-{uuid4().hex}", "id BIGINT, city STRING", properties={"block_rows": 3})
    follower, limit = TableFollower(table.stored), draw.choice([ALL, BatchLimit(blocks=2), BatchLimit(rows=4)])
    position, read, written = follower.initial_offset(), Counter(), Counter()
    for number in range(25):
        match draw.randrange(5):
            case 0:
                table.maintenance.compact()
            case 1:
                table.create_index(f"x{number}", "bloom", ["id"])
            case _:
                new = [number * 10 + place for place in range(draw.randrange(1, 8))]
                table.append(rows(*new))
                written.update(new)
        if draw.random() < 0.5:
            end = follower.latest_offset(position, limit, follower.head_sequence())
            read.update(row_id for step in ids(follower, position, end) for row_id in step)
            position = end
            follower = TableFollower(table.stored) if draw.random() < 0.3 else follower
    for batch in followed(follower, position, limit)[0]:
        read.update(row_id for step in batch for row_id in step)

    assert read == written
