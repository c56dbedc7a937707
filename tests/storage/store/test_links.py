"""A folder's own files and nothing else: no link, pipe or device in it is followed, read, written or waited for."""

import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from fuse_storage import AlreadyExists, NotFound, ReadOnlyStore, StorageError, StoredTable, open_store, vacuum_table
from fuse_storage.errors import Corrupt
from fuse_storage.store.abilities import list_strays, read_at_most
from tests.storage.small import COLUMNS, Totals, append, ids_of


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's folder, all of whose files are a week old."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("secret", "0" * 32):
        (folder / name).write_bytes(b"secret")
        os.utime(folder / name, (time.time() - 7 * 86_400,) * 2)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    return folder


def untouched(outside: Path) -> bool:
    return {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": b"secret", "0" * 32: b"secret"}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path may not be long
        one.bind(path.name)
        os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")  # to make a device of one's own takes rights that tests lack


def circle(path: Path) -> None:
    path.symlink_to(path.parent, target_is_directory=True)


STRANGE: list[Callable[[Path], None]] = [pipe, listening, device, circle]


@pytest.mark.parametrize("key", ["link", "folder/secret", "a/b/link"])
def test_no_verb_follows_a_link(folder: Path, outside: Path, key: str) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "link").symlink_to(outside / "secret")
    (folder / "a/b/link").symlink_to(outside / "secret")
    (folder / "folder").symlink_to(outside)
    store = open_store(folder)

    for verb in (
        lambda: store.read(key),
        lambda: store.read_ranges(key, [(0, 3)]),
        lambda: read_at_most(store, key, 100),
        lambda: store.create(key, b"secret"),
        lambda: store.create(key, b"other"),
    ):
        with pytest.raises(StorageError, match="is a symbolic link") as raised:
            verb()
        assert str(folder) in str(raised.value)
    if key == "folder/secret":
        with pytest.raises(StorageError, match="folder is a symbolic link"):
            store.delete([key])
        with pytest.raises(StorageError, match="is a symbolic link"):
            store.create("folder/new", b"new")
    else:
        store.create(key, b"hint", overwrite=True)  # in place of the link
        assert store.read(key) == b"hint"

    assert untouched(outside)


def test_a_link_in_the_path_of_the_folder_itself_is_its_users_own(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "name").symlink_to(folder)
    store = open_store(tmp_path / "name")
    store.create("a/b", b"1")

    assert (folder / "a/b").read_bytes() == store.read("a/b") == b"1"
    assert [listed.key for listed in store.list()] == ["a/b"]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda each: each.__name__)
def test_what_is_no_file_is_refused_at_once_and_passed_over(folder: Path, strange: Callable[[Path], None]) -> None:
    store = open_store(folder)
    store.create("a/file", b"1")
    strange(folder / "a/strange")

    with pytest.raises(StorageError, match=r"a/strange is a \w"):
        store.read("a/strange")
    with pytest.raises(StorageError, match=r"a/strange is a \w"):
        store.create("a/strange", b"1")
    assert [listed.key for listed in store.list()] == ["a/file"]
    assert list(list_strays(store)) == list(list_strays(ReadOnlyStore(store), "a")) == ["a/strange"]
    assert list(list_strays(open_store("memory://none"))) == []


def test_creating_where_a_folder_stands_is_refused_and_does_not_go_on_for_ever(folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)

    with pytest.raises(StorageError, match="a/b is a folder"):
        open_store(folder).create("a/b", b"1")


def test_listings_go_down_some_way_and_take_no_name_that_cannot_be_a_key(folder: Path) -> None:
    store = open_store(folder)
    store.create("a/file", b"1")
    (folder / "a" / "back\\slash").write_bytes(b"1")
    Path(os.fsdecode(os.fsencode(folder) + b"/a/\xff")).write_bytes(b"1")
    (folder / "/".join(["deep"] * 200)).mkdir(parents=True)
    (folder / "/".join(["deep"] * 200) / "file").write_bytes(b"1")

    assert [listed.key for listed in store.list()] == ["a/file"]


def test_the_staging_folder_is_the_stores_own(folder: Path, outside: Path) -> None:
    (folder / "_tmp").symlink_to(outside)

    with pytest.raises(StorageError, match="_tmp is a symbolic link"):
        open_store(folder).create("a", b"1")

    assert untouched(outside)
    (folder / "_tmp").unlink()
    (folder / "_tmp" / "folder").mkdir(parents=True)
    (folder / "_tmp" / "link").symlink_to(outside / "secret")
    os.utime(folder / "_tmp/folder", (0, 0))
    os.utime(folder / "_tmp/link", (0, 0), follow_symlinks=False)
    open_store(folder).create("a", b"1")
    assert sorted(os.listdir(folder / "_tmp")) == ["folder", "link"]


def test_no_more_is_read_than_may_be(folder: Path) -> None:
    for store in (open_store(folder), ReadOnlyStore(open_store(folder)), open_store("memory://at-most")):
        if not isinstance(store, ReadOnlyStore):
            store.create("a", b"12345")

        assert read_at_most(store, "a", 5) == b"12345"
        with pytest.raises(Corrupt, match="a has 5 bytes instead of at most 4"):
            read_at_most(store, "a", 4)
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 42)  # on disk it takes nothing
    with pytest.raises(Corrupt, match="4398046511104 bytes"):
        read_at_most(open_store(folder), "sparse", 1 << 20)


@pytest.mark.parametrize("beyond", [(0, 1 << 60), (1 << 60, 1), (-1, 2), (0, -1), (1 << 63, 1), (1, 1 << 70)])
def test_a_range_that_no_file_has_takes_no_memory(folder: Path, beyond: tuple[int, int]) -> None:
    for store in (open_store(folder), open_store("memory://ranges")):
        store.create("a", b"12345")

        with pytest.raises(Corrupt):
            store.read_ranges("a", [(0, 1), beyond])


# --- tables


@pytest.fixture
def table(folder: Path) -> StoredTable:
    table = StoredTable.create(folder, COLUMNS).transaction().add_index("totals", {"key": "70a1"}).commit()
    for row_id in range(3):
        table = append(table, row_id, builders=[Totals()])
    return table


def aged(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 3 * 86_400,) * 2, follow_symlinks=False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_vacuum_deletes_nothing_behind_links_and_names_them(
    folder: Path, outside: Path, table: StoredTable, dry_run: bool
) -> None:
    (folder / "_b/link").symlink_to(outside)
    (folder / "_b/one.parquet").symlink_to(outside / "secret")
    (folder / "_i/70a1/circle").symlink_to(folder)
    (folder / "_refs/branch/main/00000000000000000002.json~").symlink_to(outside)
    pipe(folder / "_x/pipe")
    aged(folder)

    result = vacuum_table(table.store, timedelta(0), dry_run=dry_run, force=True)

    backup = "_refs/branch/main/00000000000000000002.json~"
    assert result.passed_over == (backup, "_x/pipe", "_b/link", "_b/one.parquet", "_i/70a1/circle")
    assert result.files["blocks"] == 0
    assert untouched(outside)
    assert ids_of(StoredTable.open(folder)) == [0, 1, 2]


@pytest.mark.parametrize("place", ["_refs/branch/main", "_refs/tag/v1.json", "_refs/branch", "_refs", "_b", "_ss"])
def test_a_vacuum_stops_where_a_link_may_lead_to_what_leads_to_files(
    folder: Path, tmp_path: Path, table: StoredTable, place: str
) -> None:
    table.tag("v1")
    (folder / place).rename(tmp_path / "moved")
    (folder / place).symlink_to(tmp_path / "moved")
    aged(folder)
    before = sorted(str(path) for path in folder.rglob("*"))

    with pytest.raises(StorageError, match=place):
        vacuum_table(table.store, timedelta(0), force=True)

    left = [path for path in folder.rglob("*") if "_tmp" not in str(path) and "_refs/vacuum" not in str(path)]
    assert sorted(map(str, left)) == [path for path in before if "_tmp" not in path]


@pytest.mark.parametrize("strange", [*STRANGE, Path.mkdir], ids=lambda each: each.__name__)
def test_a_hint_that_is_no_file_is_not_waited_for(
    folder: Path, table: StoredTable, strange: Callable[[Path], None]
) -> None:
    (folder / "_refs/branch/main/_hint").unlink()
    strange(folder / "_refs/branch/main/_hint")

    assert ids_of(StoredTable.open(folder)) == [0, 1, 2]
    assert ids_of(append(StoredTable.open(folder), 3)) == [0, 1, 2, 3]


@pytest.mark.parametrize("strange", [*STRANGE, Path.mkdir], ids=lambda each: each.__name__)
@pytest.mark.parametrize("kind", ["_refs/branch/main", "_ss", "_sg", "_b"])
def test_a_file_of_a_table_that_is_none_is_named(
    folder: Path, table: StoredTable, kind: str, strange: Callable[[Path], None]
) -> None:
    for path in [path for path in (folder / kind).iterdir() if path.name != "_hint" and ".zones." not in path.name]:
        path.unlink()
        strange(path)

    with pytest.raises(StorageError, match=str(folder)):
        ids_of(StoredTable.open(folder))


def test_a_place_with_a_link_is_not_empty(folder: Path, outside: Path) -> None:
    (folder / "_b").symlink_to(outside)

    with pytest.raises(AlreadyExists, match="'_b'"):
        StoredTable.create(folder, COLUMNS)
    with pytest.raises(NotFound):
        StoredTable.open(folder)
