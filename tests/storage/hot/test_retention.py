"""What hot commits left behind goes sooner than snapshots do, and nothing that anybody needs goes with it."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

import fuse_index as fuse
import fuse_storage as storage
from fuse_index.changes.follow import StreamOffset, TableFollower
from fuse_index.errors import StreamError
from fuse_storage import Conflict, Corrupt, InvalidArgument, NotFound, StoredTable, append_hot, open_store
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Aged, append, ids_of, rows

DAY = timedelta(days=1)


@pytest.fixture
def store() -> Aged:
    return Aged(open_store(f"memory://{uuid.uuid4().hex}"))


def tier(table: StoredTable, count: int) -> StoredTable:
    """Put the first blocks of the tail into a segment."""
    blocks = table.blocks()
    first = table.segments().base_block_count
    with table.writer() as writer:
        for number in range(first, first + count):
            writer.write(table.read_block(blocks, number, table.snapshot.schema.names))
        staged = writer.finish()
    swap = storage.BlockReplacement(tuple(blocks.ids[first : first + count]), 1)
    return table.transaction().replace_blocks([swap], staged, (), None, "tier", True).commit("tier")


def vacuum(store: Aged, hot: timedelta | None = timedelta(0), retention: timedelta = DAY, age: bool = True) -> None:
    if age:
        store.age()
    storage.vacuum_table(store, retention, force=True, hot_retention=hot)
    storage.process_cache.clear()


def make(store: Aged) -> list[StoredTable]:
    """States: 0 has no row, 1 a tail as a snapshot, 2 and 3 are hot, 4 carries the tail, 5 is hot, 6 tiered all but one
    row, 7 tiered that, 8 is a snapshot with a tail again and 9 hot.
    """
    states = [StoredTable.create(store, COLUMNS)]
    for number in range(3):
        states.append(append_hot(states[-1], rows([number])))
    states.append(append(states[-1], 7))
    states.append(append_hot(states[-1], rows([3])))
    states.append(tier(states[-1], 3))
    states.append(tier(states[-1], 1))
    for number in (4, 5):
        states.append(append_hot(states[-1], rows([number])))
    return states


def opened(store: Aged, state: StoredTable) -> StoredTable:
    return StoredTable.open(store, version=state.snapshot.version)


def test_hot_commits_and_tails_go_and_what_was_tiered_stays(store: Aged) -> None:
    states = make(store)

    vacuum(store)

    head = StoredTable.open(store)
    assert sorted(ids_of(head)) == [0, 1, 2, 3, 4, 5, 7]
    assert len(list(store.list("_h"))) == 2
    for number in (0, 7):
        assert ids_of(opened(store, states[number])) == ids_of(states[number])
    for number, tiered in ((1, []), (4, [7]), (6, [7, 0, 1, 2])):
        whole = f"snapshot {states[7].snapshot.id}"
        with pytest.raises(NotFound, match=rf"were collected by a vacuum: open it with tail=False .*{whole}"):
            opened(store, states[number]).blocks()
        assert ids_of(opened(store, states[number]).without_tail()) == tiered
    with pytest.raises(NotFound, match=r"version 6 was collected by a vacuum: versions 5 and 7"):
        opened(store, states[5])
    check_invariants(head)
    assert ids_of(append_hot(head, rows([6])))[-1] == 6


def test_what_is_within_its_retention_stays_and_a_second_vacuum_takes_no_more(store: Aged) -> None:
    states = make(store)
    vacuum(store, DAY)
    assert [ids_of(opened(store, state)) for state in states] == [ids_of(state) for state in states]
    vacuum(store, age=False)
    before = {found.key for found in store.list()}
    vacuum(store, None)
    vacuum(store, timedelta(hours=2))

    assert {found.key for found in store.list()} == before


def test_a_tag_keeps_the_tail_of_its_snapshot_and_not_what_came_after_it(store: Aged) -> None:
    states = make(store)
    states[4].tag("kept")
    side = storage.create_branch(opened(store, states[6]), "side")

    vacuum(store)

    assert ids_of(StoredTable.open(store, at="kept")) == [7, 0, 1, 2]
    assert ids_of(StoredTable.open(store, branch="side")) == ids_of(states[6]) == ids_of(side)
    with pytest.raises(NotFound):
        opened(store, states[5])


def test_what_is_gone_can_be_named_restored_and_branched_no_more(store: Aged) -> None:
    old = make(store)[4]
    vacuum(store)
    again, head = opened(store, old), StoredTable.open(store)

    for use in (
        lambda: again.tag("x"),
        lambda: storage.create_branch(again, "x"),
        lambda: storage.restore_snapshot(head, again),
        lambda: storage.clone_table(again, open_store(f"{store.url}-copy")),
    ):
        with pytest.raises(NotFound, match="collected by a vacuum"):
            use()
    assert not [found.key for found in store.list("_refs/tag") if not found.key.endswith("_hint")]
    vacuum(store)
    assert ids_of(StoredTable.open(store)) == ids_of(head)


def test_while_a_vacuum_runs_nobody_names_what_it_may_take(store: Aged) -> None:
    old = make(store)[4]
    real = store.within.delete
    outcomes = list[str]()

    def delete(keys: list[str]) -> None:
        if not outcomes and any(".tail.parquet" in key for key in keys):
            with pytest.raises(Conflict, match=r"a vacuum .* is running"):
                old.tag("late")
            outcomes.append("refused")
        real(keys)

    store.delete = delete  # type: ignore[attr-defined]
    vacuum(store)

    assert outcomes


def test_a_lost_tail_of_the_head_stops_a_vacuum(store: Aged) -> None:
    head = append(make(store)[-1], 8)
    store.delete([f"_ss/{head.snapshot.id}.tail.parquet"])
    storage.process_cache.clear()

    with pytest.raises(Corrupt, match="which lists 2 rows"):
        vacuum(store)


@pytest.mark.parametrize("hot", [timedelta(minutes=1), timedelta(days=8), timedelta(-1)])
def test_a_hot_retention_that_cannot_be_is_refused(store: Aged, hot: timedelta) -> None:
    make(store)
    with pytest.raises(InvalidArgument, match="hot_retention="):
        storage.vacuum_table(store, timedelta(days=7), hot_retention=hot)


def test_a_young_hot_block_and_a_young_chain_stay(store: Aged) -> None:
    make(store)
    before = {found.key for folder in ("_h", "_refs/hot") for found in store.list(folder)}
    vacuum(store, age=False)

    assert {found.key for folder in ("_h", "_refs/hot") for found in store.list(folder)} == before


def test_a_stream_that_stood_still_for_longer_is_told_what_to_do(store: Aged) -> None:
    states = make(store)
    vacuum(store)
    follower = TableFollower(StoredTable.open(store))

    for stood in (2, 4, 5):
        start = StreamOffset(states[stood].snapshot.id, states[stood].snapshot.version)
        with pytest.raises(StreamError, match="new checkpoint, and vacuum with a retention and hot_retention longer"):
            list(follower.steps_between(start, StreamOffset(states[9].snapshot.id, states[9].snapshot.version)))
    start = StreamOffset(states[7].snapshot.id, states[7].snapshot.version)
    steps = list(follower.steps_between(start, StreamOffset(states[9].snapshot.id, states[9].snapshot.version)))
    assert sum(int(step.row_counts.sum()) for step in steps) == 2


def test_a_table_takes_text_for_it() -> None:
    table = fuse.create_table(f"memory://{uuid.uuid4().hex}", "id BIGINT", properties={"hot_rows": 10})
    table.append([{"id": 1}])

    assert table.maintenance.vacuum("7d", hot_retention="6h", dry_run=False).deleted
    with pytest.raises(fuse.InputError):
        table.maintenance.vacuum(hot_retention="soon")
