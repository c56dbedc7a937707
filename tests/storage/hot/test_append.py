"""Hot commits: what they cost, what they go together with, and what is refused."""

from __future__ import annotations

import json
import pickle
import uuid
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import fuse_storage as storage
from fuse_storage import (
    Conflict,
    Corrupt,
    Expired,
    InvalidArgument,
    NotFound,
    StoredTable,
    Unsupported,
    append_hot,
    meter_requests,
    open_store,
)
from fuse_storage.commit.head import Sighting
from fuse_storage.hot import chain as hot_chain
from fuse_storage.hot_commit import append as hot_append
from fuse_storage.metadata.encoding import encode_checksummed_json
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Aged, append, ids_of, rows


@pytest.fixture
def table() -> StoredTable:
    return StoredTable.create(f"memory://{uuid.uuid4().hex}", COLUMNS)


def hot(table: StoredTable, count: int, start: int = 0) -> StoredTable:
    for number in range(start, start + count):
        table = append_hot(table, rows([number]))
    return table


def chain_key(table: StoredTable, number: int) -> str:
    return f"_refs/hot/{table.snapshot.stored.id}/{number:06}.json"


def test_a_lone_writer_makes_two_creates_and_reads_nothing() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    hundred = pa.table(
        {"id": range(100), "name": [f"n{n}" for n in range(100)], "x": [n / 3 for n in range(100)]}, schema
    )
    head = append_hot(StoredTable.create(store, schema), hundred)
    store.reset()

    append_hot(head, hundred)

    assert [(verb, key[:7]) for verb, key, _ in store.writes if not key.endswith("_hint")] == [
        ("create", "_h/" + store.writes[0][1][3:7]),
        ("create", "_refs/h"),
    ]
    assert len(store.writes) == 3  # of which the last is advisory
    assert store.reads == []
    assert store.bytes_written <= 3_000


def test_a_writer_that_lost_the_race_creates_the_entry_anew_and_no_row(table: StoredTable) -> None:
    store = meter_requests(table.store)
    mine = StoredTable.open(store)
    hot(hot(table, 1), 1, 1)
    mine = StoredTable.open(store)
    hot(mine, 1, 2)
    store.reset()

    assert ids_of(append_hot(mine, rows([3]))) == [0, 1, 2, 3]
    # It reads what won alone: who searches loses the next race to whoever goes on from their own commit.
    assert [(verb, key) for verb, key, _ in store.reads if key.startswith("_refs")] == [("read", chain_key(mine, 2))]
    assert [key.partition("/")[0] for _, key, _ in store.writes if not key.endswith("_hint")] == ["_h", "_refs"]


def test_a_table_that_is_never_hot_has_no_trace_of_it(table: StoredTable) -> None:
    head = append(append(table, 1), 2)
    written = b"".join(head.store.read(file.key) for file in head.store.list() if file.key.endswith(".json"))

    assert b'"version"' not in written
    assert b'"tail"' not in written
    assert head.snapshot.reader_features == ()
    assert not [file.key for file in head.store.list() if file.key.startswith(("_h", "_refs/hot"))]


def test_a_head_of_two_hundred_hot_commits_is_opened_by_few_reads(table: StoredTable) -> None:
    hot(table, 200)
    store = meter_requests(open_store(table.store.url))
    storage.process_cache.clear()

    head = StoredTable.open(store)

    assert ids_of(head) == list(range(200))
    assert len([key for _, key, _ in store.reads if not key.startswith("_h/")]) <= 100


def test_each_state_is_opened_by_its_id_its_version_and_its_time(table: StoredTable) -> None:
    states = [table]
    for number in range(70):
        states.append(append_hot(states[-1], rows([number])))
    storage.process_cache.clear()

    for state in states[::7]:
        known = state.snapshot
        for found in (
            StoredTable.open(table.store, at=known.id),
            StoredTable.open(table.store, version=known.version),
            StoredTable.open(table.store, at=known.timestamp),
        ):
            assert (found.snapshot.id, found.snapshot.version) == (known.id, known.version)
            assert ids_of(found) == list(range(known.row_count))
    history = states[-1].history()
    assert [entry.version for entry in history] == list(range(len(history), 0, -1))
    assert [entry.kind for entry in history].count("snapshot") == 3


def test_what_cannot_be_opened_says_so(table: StoredTable) -> None:
    head = hot(table, 2)

    with pytest.raises(NotFound, match="has no version 9: its newest is"):
        StoredTable.open(table.store, version=9)
    with pytest.raises(InvalidArgument, match="say one"):
        StoredTable.open(table.store, at=head.snapshot.id, version=2)
    with pytest.raises(NotFound, match="has no snapshot"):
        StoredTable.open(table.store, at="0" * 32)


def test_a_state_travels(table: StoredTable) -> None:
    head = hot(table, 3)

    arrived: StoredTable = pickle.loads(pickle.dumps(head))

    assert arrived.snapshot == head.snapshot
    assert ids_of(arrived) == [0, 1, 2]


def test_other_commits_carry_the_tail_along_and_an_overwrite_does_not(table: StoredTable) -> None:
    head = append(hot(table, 3), 7)
    assert ids_of(head) == [7, 0, 1, 2]
    assert head.snapshot.tail is not None
    assert head.snapshot.tail.rows == 3
    check_invariants(head)

    replaced = head.transaction().overwrite([]).commit()

    assert ids_of(replaced) == []
    assert replaced.snapshot.tail is None
    assert ids_of(hot(replaced, 1)) == [0]


def test_a_hot_commit_rebases_on_all_but_a_change_of_its_columns(table: StoredTable) -> None:
    head = hot(table, 2)
    append(head, 7)
    assert ids_of(append_hot(head, rows([2]))) == [7, 0, 1, 2]

    stale = StoredTable.open(table.store)
    stale.transaction().evolve_schema(lambda snapshot: storage.drop_column(snapshot, "name")).commit()
    with pytest.raises(Conflict, match="'name' was changed"):
        append_hot(stale, rows([3]))
    assert ids_of(StoredTable.open(table.store)) == [7, 0, 1, 2]


def test_columns_that_came_and_widened_since_are_read_of_hot_blocks(table: StoredTable) -> None:
    head = StoredTable.create(f"memory://{uuid.uuid4().hex}", pa.schema([("id", pa.int32())]))
    head = append_hot(head, pa.table({"id": pa.array([1, 2], pa.int32())}))
    head = append_hot(head, pa.table({"id": pa.array([3], pa.int32())}))
    for step in (
        lambda snapshot: storage.change_type(snapshot, "id", pa.int64()),
        lambda snapshot: storage.add_column(snapshot, "x", pa.float64(), default=0.5),
    ):
        head = head.transaction().evolve_schema(step).commit()
    head = append_hot(head, pa.table({"id": [1 << 40], "x": [float("nan")]}))

    blocks = head.blocks()
    ids, others = blocks.statistics(1), blocks.statistics(2)

    assert ids is not None
    assert others is not None
    assert ids.max.to_pylist() == [2, 3, 1 << 40]
    assert others.min.to_pylist()[:2] == [0.5, 0.5]
    assert others.nan_count.to_pylist() == [0, 0, 1]
    assert [head.read_block(blocks, n, ["x"]).column(0).to_pylist() for n in range(2)] == [[0.5, 0.5], [0.5]]
    check_invariants(head)


def test_an_application_commits_each_version_once(table: StoredTable) -> None:
    head = append_hot(table, rows([0]), application=("job", 1))
    head = append_hot(head, rows([1]), application=("job", 2))

    again = append_hot(StoredTable.open(table.store), rows([1]), application=("job", 2))

    assert ids_of(again) == [0, 1]
    assert again.snapshot.applications == {"job": 2}


def test_a_late_writer_is_refused(table: StoredTable, monkeypatch: pytest.MonkeyPatch) -> None:
    head = hot(table, 1)
    now = hot_append.utc_now()
    times = iter([now])
    monkeypatch.setattr(hot_append, "utc_now", lambda: next(times, now + timedelta(minutes=11)))

    with pytest.raises(Expired, match="max_hot_seconds"):
        append_hot(head, rows([1]))

    assert ids_of(StoredTable.open(table.store)) == [0]


@pytest.mark.parametrize(("limit", "looks"), [(4, True), (6, False), (600, False)])
def test_a_head_that_was_seen_longer_ago_than_a_commit_may_take_is_looked_for_again(
    limit: int, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    head = hot(StoredTable.create(store, COLUMNS, properties={"max_hot_seconds": limit}), 2)
    store.reset()
    monkeypatch.setattr(Sighting, "age", property(lambda self: 5.0))

    append_hot(head, rows([2]))

    assert bool(store.reads) == looks


def test_an_entry_in_a_chain_that_was_collected_is_no_commit(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = hot(table, 3)
    append(StoredTable.open(table.store), 7)
    table.store.delete([file.key for file in table.store.list(f"_refs/hot/{stale.snapshot.stored.id}")])
    monkeypatch.setattr(hot_append, "_max_seconds", lambda state: 1e9 if not monkeypatched else -100.0)
    monkeypatched = False

    def create(self: Any, number: int, data: bytes) -> None:
        nonlocal monkeypatched
        monkeypatched = True
        table.store.create(self.key(number), data)

    monkeypatch.setattr("fuse_storage.hot.chain.HotChain.create", create)

    with pytest.raises(Expired, match="collected"):
        append_hot(stale, rows([3]))

    assert sorted(ids_of(StoredTable.open(table.store))) == [0, 1, 2, 7]


def test_a_hole_in_the_chain_is_damage_and_no_end(table: StoredTable) -> None:
    head = hot(table, 5)
    head.store.delete([chain_key(head, 2)])
    storage.process_cache.clear()

    with pytest.raises(Corrupt, match=r"000002\.json is missing"):
        StoredTable.open(table.store)


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_the_lost_end_of_a_chain_is_damage_and_no_shorter_table(
    table: StoredTable, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_chain, "HINT_SECONDS", 0.0)
    head = hot(table, 6)  # the first of them is a snapshot
    head.store.delete([chain_key(head, number) for number in range(6 - lost, 6)])
    storage.process_cache.clear()

    with pytest.raises(Corrupt, match=r"000005\.json is missing, though the hint .* remove .*_hint to go on"):
        StoredTable.open(table.store)
    with pytest.raises(Corrupt, match=r"000005\.json is missing"):
        StoredTable.open(table.store, at=head.snapshot.timestamp)
    table.store.delete([f"{chain_key(head, 1).rpartition('/')[0]}/_hint"])

    assert ids_of(StoredTable.open(table.store)) == list(range(6 - lost))


@pytest.mark.parametrize("hint", [b"0", b"7x", b"", b"1" * 70, b"999999", "٣".encode()])
def test_a_hint_that_lies_of_what_cannot_be_is_not_believed(table: StoredTable, hint: bytes) -> None:
    head = hot(table, 3)
    table.store.create(f"{chain_key(head, 1).rpartition('/')[0]}/_hint", hint, overwrite=True)
    storage.process_cache.clear()

    assert ids_of(StoredTable.open(table.store)) == [0, 1, 2]


def test_the_hint_of_a_chain_is_written_once_in_a_while(table: StoredTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_chain, "HINT_SECONDS", 1e9)
    store = meter_requests(table.store)
    head = hot(StoredTable.open(store), 5)

    assert [key for _, key, _ in store.writes if key.endswith("_hint") and "/hot/" in key] == [
        f"_refs/hot/{head.snapshot.stored.id}/_hint"
    ]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("number", 3),
        ("version", 9),
        ("parent", "f" * 32),
        ("next_row_id", 99),
        ("blocks", []),
        ("application", "x"),
        ("timestamp", "yesterday"),
        ("commit", "../x"),
        ("commit", "F" * 32),
    ],
)
def test_an_entry_that_is_not_what_must_follow_is_refused(table: StoredTable, member: str, value: Any) -> None:
    head = hot(table, 3)
    tamper(head, 2, {member: value})

    with pytest.raises(storage.FormatError, match=r"000002\.json"):
        StoredTable.open(table.store)


@pytest.mark.parametrize("changes", [{"hash": "../x"}, {"hash": ""}, {"columns": {"1": {"nulls": -1}}}])
def test_a_block_of_an_entry_that_no_writer_wrote_is_refused(table: StoredTable, changes: dict[str, Any]) -> None:
    head = hot(table, 3)
    (block,) = json.loads(head.store.read(chain_key(head, 2)))["blocks"]
    tamper(head, 2, {"blocks": [block | changes]})

    with pytest.raises(storage.FormatError):
        StoredTable.open(table.store)


def tamper(head: StoredTable, number: int, changes: dict[str, Any]) -> None:
    members = json.loads(head.store.read(chain_key(head, number)))
    del members["checksum"]
    head.store.create(chain_key(head, number), encode_checksummed_json(members | changes), overwrite=True)
    storage.process_cache.clear()


def test_damaged_entries_and_those_of_newer_versions_are_refused_by_name(table: StoredTable) -> None:
    head = hot(table, 3)
    block = json.loads(head.store.read(chain_key(head, 2)))["blocks"][0]
    tamper(head, 2, {"blocks": [block | {"change": "add"}]})
    with pytest.raises(Unsupported, match="'add'"):
        StoredTable.open(table.store)
    tamper(head, 2, {"blocks": [block], "kind": "warm"})
    with pytest.raises(Unsupported, match="'warm'"):
        StoredTable.open(table.store)
    tamper(head, 2, {"kind": "hot", "blocks": [block | {"columns": {"1": {"min": [], "max": {}}}}]})
    with pytest.raises(storage.FormatError, match="statistics"):
        StoredTable.open(table.store)
    tamper(head, 2, {"blocks": [block | {"zones": [2]}]})
    with pytest.raises(storage.FormatError, match="zones"):
        StoredTable.open(table.store)
    data = head.store.read(chain_key(head, 1))
    head.store.create(chain_key(head, 1), data.replace(b'"version": 3', b'"version": 4'), overwrite=True)
    storage.process_cache.clear()
    with pytest.raises(Corrupt, match="checksum"):
        StoredTable.open(table.store)


def test_a_missing_or_damaged_hot_block_is_never_passed_over(table: StoredTable) -> None:
    head = hot(table, 2)
    key = head.blocks().file(1).key
    data = head.store.read(key)
    head.store.create(key, data[:-30] + bytes(30), overwrite=True)
    storage.process_cache.clear()
    with pytest.raises(Corrupt):
        ids_of(StoredTable.open(table.store))
    head.store.delete([key])
    storage.process_cache.clear()
    with pytest.raises(Corrupt, match=f"{key}, a block of a hot commit, is missing"):
        ids_of(StoredTable.open(table.store))


def test_a_missing_tail_list_is_never_passed_over(table: StoredTable) -> None:
    head = append(hot(table, 3), 7)
    (key,) = [file.key for file in head.store.list("_ss") if file.key.startswith(f"_ss/{head.snapshot.id}.tail")]
    head.store.delete([key])
    storage.process_cache.clear()

    for ask in (ids_of, lambda found: found.segments(), lambda found: append(found, 8), lambda found: hot(found, 1)):
        with pytest.raises(Corrupt, match=f"{key}, which lists 3 rows of hot commits, is missing"):
            ids_of(ask(StoredTable.open(table.store)) or head)


def test_heads_are_named_and_older_hot_states_are_not(table: StoredTable) -> None:
    old = hot(table, 2)
    head = hot(old, 1, 2)

    with pytest.raises(InvalidArgument, match="only heads and snapshots"):
        old.tag("v1")
    head.tag("v1")

    assert ids_of(StoredTable.open(table.store, at="v1")) == [0, 1, 2]
    assert head.refresh().snapshot.operation == "snapshot"
    assert head.refresh().snapshot.same_rows


def test_a_branch_a_clone_and_a_restore_have_the_tail(table: StoredTable) -> None:
    head = hot(table, 3)
    middle = StoredTable.open(table.store, version=3)

    side = hot(storage.create_branch(head, "side"), 1, 3)
    copy = hot(storage.clone_table(StoredTable.open(table.store), open_store(f"{table.store.url}-copy")), 1, 4)
    restored = storage.restore_snapshot(StoredTable.open(table.store), middle)

    assert (ids_of(side), ids_of(copy), ids_of(restored)) == ([0, 1, 2, 3], [0, 1, 2, 4], [0, 1])
    for each in (side, copy, restored):
        check_invariants(each)
    storage.drop_branch(table.store, "side")
    with pytest.raises(NotFound, match="was dropped"):
        side.refresh()


def test_lost_refs_are_made_anew_and_chains_are_followed_again(table: StoredTable) -> None:
    head = hot(append(hot(table, 3), 7), 2, 3)
    before = head.history()
    head.store.delete([file.key for file in head.store.list("_refs/branch")])
    storage.process_cache.clear()

    storage.recover_branches(head.store)

    found = StoredTable.open(head.store)
    assert found.history() == before
    assert ids_of(found) == ids_of(head)


@pytest.mark.parametrize("helper", ["reader", "writer", "vacuum"])
def test_what_a_dead_writer_ended_a_chain_with_is_finished(table: StoredTable, helper: str) -> None:
    head = hot(table, 2)
    append(head, 7)
    head.store.delete(["_refs/branch/main/00000000000000000003.json"])
    head.store.create("_refs/branch/main/_hint", b"2", overwrite=True)
    storage.process_cache.clear()

    if helper == "writer":
        append_hot(head, rows([9]))
    elif helper == "vacuum":
        storage.vacuum_table(head.store, timedelta(0), force=True)
    else:
        assert ids_of(StoredTable.open(head.store)) == [7, 0, 1]

    assert head.store.read("_refs/branch/main/00000000000000000003.json")


class Refusing:
    """A store that refuses what begins like this."""

    def __init__(self, store: Any, prefix: str) -> None:
        self.within, self.prefix = store, prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self.within, name)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        if key.startswith(self.prefix):
            raise storage.ReadOnly(f"{key}: this key may not write here")
        self.within.create(key, data, overwrite)


def test_a_refusal_after_the_chain_was_ended_is_no_promise_that_nothing_was_committed(table: StoredTable) -> None:
    hot(table, 2)
    store = Refusing(open_store(table.store.url), "_refs/branch")

    with pytest.raises(storage.CommitUnknown, match="was_committed") as raised:
        append(StoredTable.open(store), 7)

    assert ids_of(StoredTable.open(store)) == [0, 1]
    assert table.was_committed(raised.value.commit_id)
    assert ids_of(StoredTable.open(store)) == [7, 0, 1]
    with pytest.raises(storage.ReadOnly):
        append_hot(StoredTable.open(Refusing(table.store, "_refs/hot")), rows([9]))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_branch_that_a_dead_writer_dropped_stands_in_no_vacuums_way(table: StoredTable, dry_run: bool) -> None:
    side = hot(storage.create_branch(hot(table, 2), "side"), 2, 2)
    with pytest.raises(storage.CommitUnknown):
        storage.drop_branch(Refusing(table.store, "_refs/branch/side"), "side")
    storage.process_cache.clear()

    storage.vacuum_table(table.store, timedelta(0), dry_run=dry_run, force=True)

    assert storage.list_branches(table.store).keys() == {"main"}
    with pytest.raises(NotFound, match="dropped"):
        side.refresh()
    assert ids_of(StoredTable.open(table.store)) == [0, 1]


def test_who_may_not_write_reads_the_state_before(table: StoredTable) -> None:
    head = hot(table, 2)
    append(head, 7)
    head.store.delete(["_refs/branch/main/00000000000000000003.json"])
    head.store.create("_refs/branch/main/_hint", b"2", overwrite=True)
    storage.process_cache.clear()

    assert ids_of(StoredTable.open(storage.ReadOnlyStore(head.store))) == [0, 1]


def test_a_vacuum_keeps_what_the_head_and_tags_need_and_deletes_the_rest(table: StoredTable) -> None:
    store = Aged(open_store(table.store.url))
    head = hot(StoredTable.open(store), 3)
    tagged = head
    tagged.tag("v1")
    head = StoredTable.open(store)
    swap = storage.BlockReplacement(tuple(head.blocks().ids), 1)
    with head.writer() as writer:
        writer.write(rows([0, 1, 2]))
        staged = writer.finish()
    head = head.transaction().replace_blocks([swap], staged, (), None, "tier", True).commit("tier")
    head = hot(head, 2, 3)
    store.age()
    storage.process_cache.clear()

    storage.vacuum_table(store, timedelta(0), force=True)
    assert ids_of(StoredTable.open(store)) == [0, 1, 2, 3, 4]
    assert ids_of(StoredTable.open(store, at="v1")) == [0, 1, 2]
    assert len(list(store.list("_h"))) == 5

    storage.drop_tag(store, "v1")
    store.age()
    storage.process_cache.clear()
    storage.vacuum_table(store, timedelta(0), force=True)
    chains = {file.key.split("/")[2] for file in store.list("_refs/hot")}
    assert chains == {StoredTable.open(store).snapshot.stored.id}  # of the others the hints are gone, too
    assert ids_of(StoredTable.open(store)) == [0, 1, 2, 3, 4]
    assert len(list(store.list("_h"))) == 2
    with pytest.raises(NotFound):
        StoredTable.open(store, version=3)
    check_invariants(StoredTable.open(store))
