"""Changes of a table with a primary key that look nothing up: what was put, and which keys were deleted."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

import fuse_index as fuse
from fuse_index import InputError
from fuse_index.changes.follow import BatchLimit, OnChange, TableFollower
from fuse_storage import meter_requests, open_store
from fuse_storage.primary_key import hidden_rows
from tests.effort import effort

Row = dict[str, Any]
NAMES = ("id", "part", "name", "tags")
POST, GONE = "update_postimage", "delete"


@pytest.fixture
def table() -> fuse.Table:
    columns = "id BIGINT, part STRING, name STRING NOT NULL, tags ARRAY<INT>"
    url = f"memory://{uuid.uuid4().hex}"
    return fuse.create_table(url, columns, primary_key=["part", "id"], properties={"block_rows": 20})


def row(number: int, name: str, part: str = "p") -> Row:
    return {"id": number, "part": part, "name": name, "tags": [number]}


def gone(number: int, part: str = "p") -> Row:
    return {"id": number, "part": part, "name": None, "tags": None}


def told(changes: Any) -> list[tuple[str, Row]]:
    found = changes.to_arrow().to_pylist() if hasattr(changes, "to_arrow") else changes
    return sorted(((each.pop("_change_type"), each) for each in found), key=str)


def expected(*changes: tuple[str, Row]) -> list[tuple[str, Row]]:
    return sorted(changes, key=str)


def test_the_last_of_each_key_is_told_and_nothing_is_looked_up(
    table: fuse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert([row(number, "old") for number in range(50)])
    table.maintenance.tier()
    table.upsert([row(1, "early")])
    since = table.snapshot.id
    table.upsert([row(1, "new"), row(2, "old"), row(3, "x")])
    table.delete_keys([{"id": each, "part": "p"} for each in (3, 4, 99)])
    table.maintenance.tier()
    table.upsert([row(1, "newer"), row(99, "came"), row(1, "other", "q")])
    table.set_properties({"owner": "nobody"})
    table.delete_keys([{"id": 1, "part": "q"}])
    monkeypatch.setattr(hidden_rows, "_find_hits", lambda *_: pytest.fail("keys were looked up"))

    changes = table.changes(since, preimages=False)

    answer = [(POST, row(1, "newer")), (POST, row(2, "old")), (POST, row(99, "came"))]
    answer += [(GONE, gone(3)), (GONE, gone(4)), (GONE, gone(1, "q"))]
    assert told(changes) == expected(*answer)
    assert changes.count() == len(answer)
    assert not changes.schema.field("id").nullable
    assert changes.schema.field("name").nullable
    names = table.changes(since, columns=["name"], preimages=False).to_arrow()
    assert sorted(map(str, names.column("name").to_pylist())) == ["None"] * 3 + ["came", "newer", "old"]
    assert table.changes(since, columns=[], preimages=False).to_arrow().num_rows == len(answer)
    assert table.changes(table.snapshot.id, preimages=False).count() == 0


def test_only_the_files_of_these_commits_are_read(table: fuse.Table) -> None:
    table.upsert([row(number, "old") for number in range(50)])
    table.maintenance.tier()
    since = table.snapshot.id
    table.upsert([row(1, "new")])
    table.delete_keys([{"id": 4, "part": "p"}])
    store = meter_requests(open_store(table.stored.store.url))
    head = fuse.open_table(store)
    store.reset()

    assert head.changes(since, preimages=False).count() == 2
    assert [read for read in store.reads if str(read).count("_b/")] == []


def test_rows_that_changed_otherwise_are_compared(table: fuse.Table) -> None:
    table.upsert([row(1, "one"), row(2, "two")])
    old = table.snapshot.id
    table.upsert([row(2, "three"), row(3, "three")])
    since = table.snapshot.id
    table.restore(old)

    assert told(table.changes(since, preimages=False)) == expected((POST, row(2, "two")), (GONE, gone(3)))


def test_renamed_and_added_columns_are_those_of_the_later_state(table: fuse.Table) -> None:
    table.upsert([row(1, "one")])
    since = table.snapshot.id
    table.delete_keys([{"id": 1, "part": "p"}])
    table.rename_column("part", "place")
    table.add_column("more", "INT", default=7)
    table.upsert([{"id": 2, "place": "p", "name": "two", "tags": None, "more": 1}])

    deleted = {"id": 1, "place": "p", "name": None, "tags": None, "more": None}
    put = {"id": 2, "place": "p", "name": "two", "tags": None, "more": 1}
    assert told(table.changes(since, preimages=False)) == expected((GONE, deleted), (POST, put))


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"where": "id = 1"}, "where and preimages=False"), ({"key": ["id"]}, r"by the primary key, \['part', 'id'\]")],
)
def test_what_cannot_be_told_without_looking_up_is_refused(table: fuse.Table, asked: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        table.changes(table.snapshot.id, preimages=False, **asked)


def test_tables_without_a_primary_key_have_preimages_alone() -> None:
    plain = fuse.create_table(f"memory://{uuid.uuid4().hex}", "id BIGINT", key=["id"])
    with pytest.raises(InputError, match="is for tables with a primary key"):
        plain.changes(plain.snapshot.id, preimages=False)


@pytest.mark.parametrize("seed", range(effort(2)))
def test_a_copy_that_follows_step_by_step_is_the_table(table: fuse.Table, seed: int) -> None:
    """Net changes between random states, and those of each commit in turn, make the later state of the earlier one."""
    chance, states = random.Random(seed), [fuse.open_table(table.stored.store)]
    for _ in range(14):
        keys = [(chance.randrange(20), f"p{chance.randrange(2)}") for _ in range(6)]
        step = chance.choice("ppppddtcr")
        if step == "p":
            table.upsert([row(number, f"n{chance.randrange(3)}", part) for number, part in keys])
        elif step == "d":
            table.delete_keys([{"id": number, "part": part} for number, part in keys])
        elif step == "r":
            table.restore(chance.choice(states).snapshot.id)
        else:
            table.maintenance.tier() if step == "t" else table.maintenance.compact()
        states.append(fuse.open_table(table.stored.store))
    for _ in range(4):
        since, until = sorted(chance.sample(range(len(states)), 2))
        copy = by_key(states[since])
        play(copy, states[until].changes(states[since].snapshot.id, preimages=False).to_arrow().to_pylist())
        assert copy == by_key(states[until])
    follower = TableFollower(states[0].stored, OnChange.READ, preimages=False)
    position, copy = follower.initial_offset(states[0].stored), by_key(states[0])
    end = follower.latest_offset(position, BatchLimit(), follower.head_sequence())
    for commit in follower.steps_between(position, end):
        assert commit.before is not None
        later = fuse.open_table(table.stored.store, version=commit.after.snapshot.version)
        play(copy, later.changes(commit.before.snapshot.id, preimages=False).to_arrow().to_pylist())
    assert copy == by_key(states[-1])


def by_key(table: fuse.Table) -> dict[tuple[int, str], Row]:
    return {(each["id"], each["part"]): each for each in table.to_arrow().to_pylist()}


def play(copy: dict[tuple[int, str], Row], changes: list[Row]) -> None:
    keys = [(each["id"], each["part"]) for each in changes]
    assert len(keys) == len(set(keys))
    for key, each in zip(keys, changes, strict=True):
        kind = each.pop("_change_type")
        if kind == GONE:
            copy.pop(key, None)
            assert each == gone(*key)
        else:
            assert kind == POST
            copy[key] = each
