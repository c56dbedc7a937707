"""A table that a newer version wrote, in a way that this one cannot keep intact, is read and never written."""

from collections.abc import Callable
from datetime import timedelta

import pytest

import fuse_storage as storage
from fuse_storage import FileRef, RefEntry, Snapshot, StoredTable, Unsupported
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.tags import Tag, create_tag
from fuse_storage.validation import features
from tests.storage.small import COLUMNS, append, ids_of, staged

FEATURE = "tags-of-the-future"


@pytest.fixture
def table(url: str, monkeypatch: pytest.MonkeyPatch) -> StoredTable:
    """Its second commit, the branch "side" and the tag "v1" need the feature; its first and its last do not."""
    first = append(StoredTable.create(url, COLUMNS), 1)
    with monkeypatch.context() as newer:
        newer.setattr(features, "WRITER_FEATURES", frozenset([FEATURE]))
        newer.setattr("fuse_storage.metadata.snapshot.Snapshot.encode", _with_feature)
        second = append(first, 2)
        storage.create_branch(second, "side")
        storage.process_cache.clear()
        StoredTable.open(url, branch="side").tag("v1")
    storage.process_cache.clear()
    return StoredTable.open(url)


_encode = Snapshot.encode


def _with_feature(made: Snapshot) -> bytes:
    return _encode(made).replace(b'"writer_features": []', b'"writer_features": ["%s"]' % FEATURE.encode())


def old(table: StoredTable) -> StoredTable:
    return table.at(str(table.history()[-1].snapshot_id))


WRITES: dict[str, Callable[[StoredTable], object]] = {
    "append": lambda table: append(table, 3),
    "commit": lambda table: table.transaction().overwrite([], force=True).commit(),
    "tag": lambda table: table.tag("mine"),
    "untag": lambda table: storage.drop_tag(table.store, "v1"),
    "branch": lambda table: storage.create_branch(table, "mine"),
    "drop branch": lambda table: storage.drop_branch(table.store, "side"),
    "fast-forward": lambda table: storage.fast_forward_branch(old(table), StoredTable.open(table.store, branch="side")),
    "restore what has it": lambda table: storage.restore_snapshot(old(table), table),
    "restore over it": lambda table: storage.restore_snapshot(table, old(table)),
    "clone": lambda table: storage.clone_table(table, storage.open_store(f"{table.store.url}-copy")),
    "vacuum": lambda table: storage.vacuum_table(table.store, timedelta(0), force=True),
    "recover": lambda table: (
        table.store.delete(["_refs/branch/main/_hint"]),
        storage.recover_branches(table.store),
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_every_write_is_refused_by_the_name_of_the_feature(table: StoredTable, write: str) -> None:
    if write == "recover":
        table.store.delete(["_refs/branch/main/_hint"])
    before = {found.key: found.modified for found in table.store.list() if not found.key.endswith("_hint")}

    with pytest.raises(Unsupported, match=f"writing to this table needs feature '{FEATURE}'"):
        WRITES[write](table)

    assert {found.key: found.modified for found in table.store.list() if not found.key.endswith("_hint")} == before
    assert not any(storage.open_store(f"{table.store.url}-copy").list())
    assert ids_of(StoredTable.open(table.store)) == [1, 2]


@pytest.mark.parametrize("where", ["branch", "tag"])
def test_one_branch_or_tag_that_needs_it_stops_a_vacuum(url: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = append(StoredTable.create(url, COLUMNS), 1)
    data = _with_feature(append(StoredTable.create(f"{url}-x", COLUMNS), 1).snapshot)
    table.store.create(f"_ss/{'e' * 32}.json", data)
    reference = FileRef.for_data(f"_ss/{'e' * 32}.json", data)
    now = table.entry.timestamp
    if where == "branch":
        Branch(table.store, "side").create(RefEntry("snapshot", 1, "c", None, now, "append", "e" * 32, reference))
    else:
        create_tag(table.store, Tag("v1", now, "e" * 32, reference))

    with pytest.raises(Unsupported, match=FEATURE):
        storage.vacuum_table(table.store, timedelta(0), force=True)
    assert staged(table, [2])
