"""What is in the folders of a table and is not the table's stops nothing and stays; what the table's dead writers left
goes.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import NotFound, StorageError, StoredTable, vacuum_table
from fuse_storage.commit.snapshot_hold import post_vacuum_notice
from fuse_storage.metadata import encoding
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Aged, Totals, append, ids_of, staged

NOW = timedelta(0)
STRAYS = [".DS_Store", "._one.json", "Thumbs.db", ".nfs0000000000000001", "_SUCCESS", ".part-0.parquet.crc", "x.json~",
          "notes (copy).json", "one/.DS_Store", "two/three.txt", "x.parquet", "x.json"]  # fmt: skip
FOLDERS = ["_ss", "_sg", "_x", "_b", "_i", "_i/70a1", "_refs", "_refs/branch", "_refs/branch/main", "_refs/tag",
           "_refs/vacuum", ""]  # fmt: skip


@pytest.fixture
def table(url: str) -> StoredTable:
    """Three rows, a block of which was replaced."""
    made = StoredTable.create(Aged(storage.open_store(url)), COLUMNS, properties={"block_rows": 2})
    made = made.transaction().add_index("totals", {"key": Totals().key}).commit()
    made = append(made, 1, 2, 3, builders=[Totals()])
    return made.transaction().overwrite(staged(made, [4, 5])).commit()


def everything(table: StoredTable) -> None:
    """All that looks at folders."""
    again = StoredTable.open(table.store)
    again.tag("v1")
    storage.drop_tag(again.store, "v1")
    storage.create_branch(again, "side")
    storage.list_branches(again.store)
    storage.drop_branch(again.store, "side")
    old = again.at(str(again.history()[1].snapshot_id))
    storage.restore_snapshot(again, old)
    storage.clone_table(again, storage.open_store(f"{again.store.url}-copy"))
    storage.recover_branches(again.store)
    table.store.age()
    vacuum_table(again.store, NOW, force=True)
    storage.process_cache.clear()
    check_invariants(StoredTable.open(table.store))


@pytest.mark.parametrize("folder", FOLDERS)
def test_strays_stop_nothing_and_stay(table: StoredTable, folder: str) -> None:
    keys = {f"{folder}/{name}".strip("/") for name in STRAYS} - {"_refs/tag/x.json"}  # that would be a tag
    strays = dict.fromkeys(keys, b"?")
    for key, data in strays.items():
        table.store.create(key, data)

    everything(table)

    assert {key: table.store.read(key) for key in strays} == strays
    found = vacuum_table(table.store, NOW, force=True)
    assert set(strays) <= set(found.passed_over) or folder.startswith("_refs") or not folder


@pytest.mark.parametrize("clutter", [".DS_Store", "Thumbs.db", "._x", ".nfs01"])
def test_a_table_is_made_where_a_desktop_was(url: str, clutter: str) -> None:
    storage.open_store(url).create(clutter, b"?")
    with pytest.raises(NotFound, match="there is nothing"):
        StoredTable.open(url)

    assert ids_of(append(StoredTable.create(url, COLUMNS), 1)) == [1]


def test_notices_expired_tags_and_drafts_of_dead_writers_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = storage.open_store(tmp_path / "t")
    table = append(StoredTable.create(store, COLUMNS), 1)
    table.tag("day", expires=encoding.utc_now() + timedelta(days=1))
    table.tag("ever")
    table.tag("gone")
    storage.drop_tag(store, "gone")
    post_vacuum_notice(store, encoding.utc_now())
    (tmp_path / "t/_tmp/0123").write_bytes(b"draft")
    _make_old(tmp_path / "t")
    table.tag("new", expires=encoding.utc_now() + timedelta(seconds=1))
    moment = encoding.utc_now() + timedelta(hours=3)
    monkeypatch.setattr(encoding, "_clock", lambda: moment + timedelta(days=1))

    found = vacuum_table(store, NOW, force=True)

    assert [key.split("/")[1:3] for key in found.refs][1:] == [["tag", "day.json"], ["tag", "gone"]]
    assert found.refs[0].startswith("_refs/vacuum/")
    assert sorted(tag.name for tag in storage.list_tags(store)) == ["ever", "new"]
    assert list(store.list("_refs/vacuum")) == []
    assert list((tmp_path / "t/_tmp").iterdir()) == []
    assert ids_of(StoredTable.open(store, at="ever")) == [1]
    assert vacuum_table(store, NOW, force=True).refs == ()


def _make_old(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and "branch" not in path.parts:
            os.utime(path, (0, 0))


class Full:
    """A store without room until something is deleted; ``between`` happens once, before delete ``at_delete``."""

    def __init__(self, store: Any, between: Callable[[], object] | None = None, at_delete: int = 0) -> None:
        self.store, self.between, self.left, self.deleted = store, between, at_delete, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        if self.deleted:
            return self.store.create(key, data, overwrite)
        refusal = OSError(errno.ENOSPC, "No space left on device")
        raise StorageError(f"{self.url}/{key}: {refusal.strerror}") from refusal

    def delete(self, keys: Any) -> None:
        for key in keys:
            if self.left == 0 and self.between is not None:
                between, self.between = self.between, None
                between()
            self.left -= 1
            self.store.delete([key])
            self.deleted += 1


def test_a_full_disk_is_vacuumed(table: StoredTable) -> None:
    table.store.age()
    promised = vacuum_table(table.store, NOW, force=True, dry_run=True)

    found = vacuum_table(Full(table.store), NOW, force=True)

    assert found.disk_full
    assert (found.files, found.bytes, found.kept) == (promised.files, promised.bytes, promised.kept)
    assert found.files["blocks"] == 2
    storage.process_cache.clear()
    assert ids_of(StoredTable.open(table.store)) == [4, 5]
    check_invariants(StoredTable.open(table.store))
    assert sum(vacuum_table(table.store, NOW, force=True).files.values()) == 0


@pytest.mark.parametrize("at_delete", range(12))
@pytest.mark.parametrize("what", ["tag", "branch", "restore"])
def test_what_is_named_while_a_full_disk_is_vacuumed_stays_whole(table: StoredTable, what: str, at_delete: int) -> None:
    old = table.at(str(table.history()[1].snapshot_id))
    table.store.age()
    made: list[StoredTable] = []

    def name() -> None:
        storage.process_cache.clear()
        with suppress(NotFound, storage.Conflict):
            match what:
                case "tag":
                    old.tag("old")
                    made.append(old)
                case "branch":
                    made.append(storage.create_branch(old, "side"))
                case "restore":
                    made.append(storage.restore_snapshot(table, old))

    with suppress(NotFound):  # it gives up rather than delete what somebody is just naming
        vacuum_table(Full(table.store, name, at_delete), NOW, force=True)
    storage.process_cache.clear()

    for named in made:
        again = StoredTable.open(table.store, at=named.snapshot.id)
        assert ids_of(again) == [1, 2, 3]
        check_invariants(again)
    assert ids_of(table.at(table.snapshot.id)) == [4, 5]


def test_a_vacuum_that_may_not_write_for_another_reason_deletes_nothing(table: StoredTable) -> None:
    class Refusing(Full):
        def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
            raise StorageError(f"{key}: access denied")

    table.store.age()
    before = {found.key for found in table.store.list()}

    with pytest.raises(StorageError, match="access denied"):
        vacuum_table(Refusing(table.store), NOW, force=True)
    assert {found.key for found in table.store.list()} == before
