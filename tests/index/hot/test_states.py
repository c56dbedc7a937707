"""States after hot commits are named, compared and gone on from like snapshots."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import fuse_index as fuse
from fuse_storage import Conflict, InvalidArgument, ReadOnly, meter_requests, open_store


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number} for number in ids]


def make(url: str) -> fuse.Table:
    """Two states that are hot alone: the first hot append to a table commits a snapshot that carries it."""
    table = fuse.create_table(url, "id BIGINT", properties={"hot_rows": 1000})
    for number in (1, 2, 3):
        table.append(rows(number))
    return table


def ids(found: Any) -> list[int]:
    return sorted(found.to_arrow().column("id").to_pylist())


def test_a_branch_came_of_the_hot_states_before_it_and_of_no_later_ones(url: str) -> None:
    table = make(url)
    middle, last = fuse.open_table(url, version=table.version - 1).snapshot.id, table.snapshot.id
    side = table.branch("side")
    side.append(rows(4))
    later = table.refresh()
    for number in (5, 6, 7):
        later.append(rows(number))

    assert ids(side.changes(middle)) == [3, 4]
    assert ids(side.changes(last)) == [4]
    assert ids(side.branch("further").changes(middle)) == [3, 4]
    for version in range(later.version - 2, later.version + 1):
        with pytest.raises(InvalidArgument, match="did not come of"):
            side.changes(fuse.open_table(url, version=version).snapshot.id)
    with pytest.raises(InvalidArgument, match="did not come of"):
        fuse.open_table(url, version=later.version - 1).changes(later.snapshot.id)
    assert ids(later.changes(middle)) == [3, 5, 6, 7]


def test_without_the_tail_nothing_of_it_is_a_change(url: str) -> None:
    table = make(url)
    since = table.snapshot.id
    base = fuse.open_table(url, tail=False)

    assert base.changes(since).count() == 0
    assert base.diff(since).empty
    assert base.diff(since, since).empty
    table.append(rows(4))
    assert fuse.open_table(url, tail=False).changes(since, table.snapshot.id).count() == 0


def test_without_the_tail_tiering_brings_rows_whatever_is_compacted_then(url: str) -> None:
    table = fuse.create_table(url, "id BIGINT", properties={"hot_rows": 1000})
    for number in (1, 2):
        table.append(rows(number), hot=False)
    table.append(rows(3))
    since = table.snapshot.id
    table.maintenance.tier()
    table.maintenance.compact()
    base = fuse.open_table(url, tail=False)

    assert base.diff(since).removed.blocks == 2
    assert base.changes(since).to_arrow().to_pylist() == [{"id": 3, "_change_type": "insert"}]
    assert table.changes(since).count() == 0


@pytest.mark.parametrize("make_name", ["tag", "branch", "clone"])
def test_what_is_named_or_copied_without_the_tail_is_refused_and_takes_no_row(url: str, make_name: str) -> None:
    make(url)
    base = fuse.open_table(url, tail=False)

    with pytest.raises(ReadOnly, match="tail="):
        getattr(base, make_name)(f"{url}-copy" if make_name == "clone" else "kept")

    assert fuse.open_table(url).count() == 3


def replace_all(table: fuse.Table, change: str, first: str) -> None:
    if change == "overwrite":
        table.stored.transaction().overwrite([]).commit()
    else:
        table.restore(first)


@pytest.mark.parametrize("maintenance", ["tier", "compact"])
@pytest.mark.parametrize("change", ["overwrite", "restore"])
def test_what_moves_rows_and_changes_none_stands_in_nobodys_way(url: str, change: str, maintenance: str) -> None:
    table = make(url)
    table.append(rows(4), hot=False)
    table.append(rows(5), hot=False)
    first = fuse.open_table(url, version=2).snapshot.id
    version = table.version
    getattr(fuse.open_table(url).maintenance, maintenance)()
    assert fuse.open_table(url).version > version

    replace_all(table, change, first)

    assert ids(fuse.open_table(url).scan()) == ([] if change == "overwrite" else [1])


@pytest.mark.parametrize("change", ["overwrite", "restore"])
def test_rows_that_came_before_tiering_are_seen_though_their_commits_were_collected(url: str, change: str) -> None:
    table = make(url)
    first, other = fuse.open_table(url, version=2).snapshot.id, fuse.open_table(url)
    other.append(rows(4))
    other.maintenance.tier()
    for listed in list(other.stored.store.list("_refs/hot")):
        other.stored.store.delete([listed.key])

    with pytest.raises(Conflict):
        replace_all(table, change, first)

    assert ids(fuse.open_table(url).scan()) == [1, 2, 3, 4]


@pytest.mark.parametrize("second", ["tag", "branch", "clone"])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_handle_of_a_hot_head_names_it_twice(url: str, second: str, meanwhile: bool) -> None:
    table = make(url)
    table.tag("one")
    if meanwhile:
        fuse.open_table(url).append(rows(4))

    made = getattr(table, second)(f"{url}-copy" if second == "clone" else "two")

    assert ids(fuse.open_table(url, at="two") if second == "tag" else made) == [1, 2, 3]
    assert table.history().column("operation").to_pylist()[0] == "snapshot"
    assert fuse.open_table(url).version == table.version + meanwhile


def test_a_state_that_was_made_a_snapshot_is_named_by_an_older_handle(url: str) -> None:
    table = make(url)
    older = fuse.open_table(url)
    pinned = fuse.open_table(url, version=table.version)
    table.tag("one")
    table.append(rows(4))

    older.tag("two")
    pinned.tag("three")

    assert [ids(fuse.open_table(url, at=name)) for name in ("two", "three")] == [[1, 2, 3]] * 2
    assert pinned.version == older.version - 1


@pytest.mark.parametrize("keyed", [False, True])
def test_who_follows_changes_reads_as_much_however_long_the_chain_is(keyed: bool) -> None:
    counts = set()
    for length in (3, 30):
        url = f"memory://{uuid.uuid4().hex}"
        key: Any = {"primary_key": ["id"]} if keyed else {}
        table = fuse.create_table(url, "id BIGINT, n INT", properties={"hot_rows": 10, "tail_commits": 100}, **key)
        for number in range(length):
            table.append([{"id": number, "n": number}])
        store = meter_requests(open_store(url))
        follower = fuse.open_table(store)
        last = follower.snapshot.id
        assert follower.changes(last).to_arrow().num_rows == 0
        table.append([{"id": 100, "n": 100}])
        store.reset()

        found = follower.refresh().changes(last).to_arrow()

        assert found.column("id").to_pylist() == [100]
        counts.add(len(store.reads))
    assert len(counts) == 1
    assert counts.pop() <= 16


def test_a_state_in_memory_is_not_found_once_its_chain_was_collected() -> None:
    url = f"memory://{uuid.uuid4().hex}"
    table = fuse.create_table(url, "id BIGINT", properties={"hot_rows": 10})
    for number in range(4):
        table.append([{"id": number}])
    early = fuse.open_table(url, version=table.version - 2).snapshot.id
    table.maintenance.tier()
    store = open_store(url)
    store.delete([file.key for file in store.list("_refs/hot")])

    with pytest.raises(fuse.NotFound, match="collected by a vacuum"):
        fuse.open_table(url, at=early)
