"""The changes of each commit, which bring a copy from one state to the next."""

import uuid
from typing import Any

import pytest

import fuse_index as fuse
from fuse_storage import NotFound, SchemaError


def created(**named: Any) -> fuse.Table:
    url = f"memory://{uuid.uuid4().hex}"
    return fuse.create_table(url, "id BIGINT, name STRING", properties={"block_rows": 5, "hot_rows": 2}, **named)


def test_each_commit_is_told_with_its_number_and_time() -> None:
    table = created(key=["id"])
    first = table.snapshot.id
    table.append([{"id": n, "name": "a"} for n in range(8)])
    table.append([{"id": 8, "name": "hot"}])
    table.create_index("by_id", "bloom", ["id"])
    table.update("id = 3", {"name": "'b'"})
    table.maintenance.compact()
    table.delete("id = 3")

    net, changes = table.changes(first), table.changes(first).by_commit()
    told = [(row["_commit_version"], row["id"], row["_change_type"]) for row in changes.to_arrow().to_pylist()]
    versions = sorted({version for version, _, _ in told})
    assert told[:8] == [(versions[0], n, "insert") for n in range(8)]
    assert told[8:] == [
        (versions[1], 8, "insert"),
        (versions[2], 3, "update_preimage"),
        (versions[2], 3, "update_postimage"),
        (versions[3], 3, "delete"),
    ]
    assert net.count() == 8
    assert changes.count() == len(changes.to_pandas()) == 12
    times = {row["_commit_version"]: row["_commit_timestamp"] for row in changes.to_arrow().to_pylist()}
    assert times == {version: table.stored.at_version(version).snapshot.timestamp for version in versions}
    assert table.changes(table.snapshot.id).by_commit().to_arrow().num_rows == 0


def test_a_copy_by_key_follows_commit_by_commit() -> None:
    table, copy = created(primary_key=["id"]), created(primary_key=["id"])
    first = table.snapshot.id
    table.upsert([{"id": n, "name": "a"} for n in range(8)])
    table.upsert([{"id": 2, "name": "b"}])
    table.delete_keys([{"id": 2}])
    table.upsert([{"id": 2, "name": "c"}, {"id": 5, "name": "d"}])
    table.maintenance.tier()
    table.delete_keys([{"id": 7}])
    for preimages in (True, False):
        copy.delete("id IS NOT NULL")
        copy.apply(table.changes(first, preimages=preimages).by_commit().to_arrow())
        rows = [sorted(each.to_arrow().to_pylist(), key=str) for each in (table, copy.refresh())]
        assert rows[0] == rows[1]


def test_hot_rows_come_with_the_commit_that_tiers_them_for_who_leaves_the_tail_out() -> None:
    table = created()
    first = table.snapshot.id
    table.append([{"id": n, "name": "a"} for n in range(8)], hot=False)
    for n in (20, 21):
        table.append([{"id": n, "name": "hot"}], hot=True)
    table.maintenance.tier()
    tiered = table.version
    table.append([{"id": 30, "name": "hot"}], hot=True)
    base = fuse.open_table(table.stored.store, tail=False)
    told = base.changes(first).by_commit().to_arrow().to_pylist()
    assert sorted((row["_commit_version"], row["id"]) for row in told if row["id"] > 8) == [(tiered, 20), (tiered, 21)]
    assert len(told) == base.changes(first).count() == base.count() == 10


def test_what_cannot_be_told_is_refused() -> None:
    table = created()
    first = table.snapshot.id
    table.append([{"id": n, "name": "a"} for n in range(8)], hot=False)
    middle = table.snapshot.id
    table.append([{"id": 9, "name": "a"}], hot=False)
    table.stored.store.delete([f"_ss/{middle}.json"])
    with pytest.raises(NotFound, match=f"{middle}.* was collected"):
        fuse.open_table(table.stored.store).changes(first).by_commit().to_arrow()
    table.add_column("_commit_version", "BIGINT")
    with pytest.raises(SchemaError, match="'_commit_version', which is what commits are told by: rename it"):
        table.changes(table.snapshot.id).by_commit()
