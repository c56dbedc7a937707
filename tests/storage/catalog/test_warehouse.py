"""What is read of a warehouse: little where much was done, and nothing that cannot be."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import (
    CachedStore,
    Corrupt,
    CreateNamespace,
    DropNamespace,
    FormatError,
    InvalidArgument,
    MeteredStore,
    PurgeTables,
    StorageError,
    StoredTable,
    Unsupported,
    Warehouse,
    process_cache,
)
from fuse_storage.catalog import checkpoint
from fuse_storage.catalog.log import CatalogEntry
from fuse_storage.metadata import encoding
from fuse_storage.metadata.encoding import encode_checksummed_json, format_timestamp
from fuse_storage.metadata.refs import CLOCK_TOLERANCE
from tests.storage.catalog.world import STEPS, copy_of, drop, find, make_table, small_warehouse, view
from tests.storage.small import ids_of

ID = "0" * 31 + "1"
FOLDER = f"t-{ID}"


def named(warehouse: Warehouse, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        warehouse.commit(lambda _, number=number: [CreateNamespace((f"n{number}",), {"comment": "x"})])


def unknown(warehouse: Warehouse) -> tuple[MeteredStore, Warehouse]:
    """The same warehouse as a process opens it that never saw it, and what that asks for."""
    store = MeteredStore(CachedStore(warehouse.store))
    return store, Warehouse.open(store)


def checkpoints(warehouse: Warehouse) -> list[str]:
    return [found.key for found in warehouse.store.list("_catalog/checkpoint")]


def test_who_opens_a_warehouse_reads_what_was_done_since_a_checkpoint(url: str) -> None:
    warehouse = small_warehouse(storage.open_store(url))
    named(warehouse, 64 * 3 - warehouse.state().sequence + 5)

    store, opened = unknown(warehouse)

    assert opened.state() == warehouse.state()
    assert store.request_count <= 14  # marker, hint, listing, head; checkpoints, one, its entry; 5 entries since
    assert [int(key[-10:-5]) for key in checkpoints(warehouse)] == [128, 192]


def test_a_checkpoint_says_all_that_the_log_adds_up_to(url: str) -> None:
    warehouse = small_warehouse(storage.open_store(url))
    make_table(warehouse, "a.kept")
    warehouse.commit(lambda _: [CreateNamespace(("Größe",), {"comment": "日本", "empty": ""})])
    named(warehouse, 64 - warehouse.state().sequence)
    seen = unknown(warehouse)[1].state()
    assert len(checkpoints(warehouse)) == 2  # and the one that it began with

    warehouse.store.delete(checkpoints(warehouse))

    assert unknown(warehouse)[1].state() == seen == warehouse.state()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", None])
def test_a_checkpoint_that_cannot_be_believed_costs_time_only(url: str, damage: bytes | None) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    named(warehouse, 65)
    (key,) = checkpoints(warehouse)
    if damage is None:  # of another history, as after a copy
        other = Warehouse.open(storage.open_store(f"{url}-other"), create=True)
        named(other, 65, first=1000)
        damage = other.store.read(checkpoints(other)[0])

    warehouse.store.create(key, damage, overwrite=True)

    assert unknown(warehouse)[1].state() == warehouse.state()


def test_an_entry_that_is_lost_is_no_end(url: str) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    named(warehouse, 5)
    warehouse.store.delete([warehouse.log.key(3)])

    with pytest.raises(Corrupt, match=r"00003\.json is missing.*restore it from a copy of the warehouse"):
        unknown(warehouse)[1].state()


@pytest.mark.parametrize("first_lost", [60, 1])
def test_a_log_that_lost_its_end_is_told_by_its_checkpoint(url: str, first_lost: int) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    named(warehouse, 65)
    lost = [warehouse.log.key(number) for number in range(first_lost, 66)]
    warehouse.store.delete(["_catalog/log/_hint", *lost])

    with pytest.raises(Corrupt, match=r"00064\.json is missing, and there is a checkpoint of it"):
        unknown(warehouse)[1].state()


def test_a_new_warehouse_has_no_names(url: str) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)

    assert (warehouse.state().tables, warehouse.state().namespaces, list(warehouse.entries())) == ({}, {}, [])
    assert storage.purge_dropped(warehouse, timedelta(0)) == []


def marker(store: storage.Store, **members: Any) -> None:
    said = {"format": "fuse-index warehouse", "format_version": 1, "id": "w", **members}
    store.create("_catalog/warehouse.json", encode_checksummed_json(said), overwrite=True)


def test_a_newer_warehouse_is_refused_by_what_is_new(url: str) -> None:
    store = storage.open_store(url)
    marker(store, format_version=2)
    with pytest.raises(Unsupported, match=r"is a warehouse of version 2 .* upgrade"):
        Warehouse.open(store)
    marker(store, reader_features=["views"])
    with pytest.raises(Unsupported, match=r"the features \['views'\]"):
        Warehouse.open(store)
    marker(store, writer_features=["grants"])
    with pytest.raises(Unsupported, match=r"the writer features \['grants'\]"):
        named(Warehouse.open(store), 1)
    assert Warehouse.open(store).state().namespaces == {}


@pytest.mark.parametrize("members", [{"format": "other"}, {"id": 7}, {"format_version": "x"}, {"reader_features": 1}])
def test_a_marker_that_says_nonsense_is_refused(url: str, members: dict[str, Any]) -> None:
    store = storage.open_store(url)
    marker(store, **members)

    with pytest.raises(FormatError):
        Warehouse.open(store, create=True)


def forge(store: storage.Store, *actions: Any, kind: Any = "catalog", **other: Any) -> None:
    """An entry as whoever may write in a warehouse can write it, its checksum right."""
    now = format_timestamp(datetime.now(UTC))
    head = Warehouse.open(store).log.newest_entry()
    members = {
        "kind": kind,
        "sequence": 1 if head is None else head.sequence + 1,
        "commit": storage.new_id(),
        "parent": None if head is None else head.commit_id,
        "timestamp": now,
        "actions": list(actions),
        **other,
    }
    store.create(f"_catalog/log/{members['sequence']:020}.json", encode_checksummed_json(members))


def created(**members: Any) -> dict[str, Any]:
    return {"action": "create_table", "id": ID, "identifier": ["t"], "location": FOLDER, "managed": True, **members}


def test_what_a_newer_version_does_is_refused_by_its_name(url: str) -> None:
    for number, (actions, kind) in enumerate([([{"action": "grant"}], "catalog"), ([], "views")]):
        store = storage.open_store(f"{url}-{number}")
        Warehouse.open(store, create=True)
        forge(store, *actions, kind=kind)
        with pytest.raises(Unsupported, match=r"'(grant|views)'"):
            Warehouse.open(store).state()


HOSTILE: list[Any] = [
    created(location="../../etc"),
    created(location="/etc", managed=True),
    created(location="_catalog/log", managed=False),
    created(location="_tmp/x", managed=False),
    created(location="", managed=False),
    created(location="a/../../b", managed=False),
    created(location="x" * 5000, managed=False),
    created(location=f"other-{'0' * 32}"),
    created(location=f"a/{FOLDER}"),
    created(id="../x", location="../x-../x"),
    created(id=7),
    created(managed="yes"),
    created(identifier=["a/b"]),
    created(identifier=["a", ""]),
    created(identifier=["a"] * 17),
    created(identifier=["x" * 256]),
    created(identifier="t"),
    created(identifier=["none", "t"]),
    created(properties={"a": 1}),
    created(properties={"a": "x" * 10_001}),
    created(properties={f"p{number}": "" for number in range(1001)}),
    {"action": "drop_table", "id": ID, "identifier": ["t"]},
    {"action": "rename_table", "id": ID, "source": ["t"], "target": ["u"]},
    {"action": "undrop_table", "id": ID, "identifier": ["t"]},
    {"action": "purge_tables", "ids": [ID]},
    {"action": "drop_namespace", "namespace": ["n"]},
    {"action": "create_namespace", "namespace": []},
    {"action": "create_namespace"},
    {"action": 7},
    {},
    "drop everything",
    None,
]


@pytest.mark.parametrize("action", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_is_refused_and_nothing_else_happens(tmp_path: Path, action: Any) -> None:
    store = storage.open_store(tmp_path / "w")
    Warehouse.open(store, create=True)
    forge(store, action)
    before = sorted(map(str, tmp_path.rglob("*")))

    with pytest.raises(FormatError):
        Warehouse.open(store).state()
    with pytest.raises(FormatError):
        storage.purge_dropped(Warehouse.open(store), timedelta(0))
    assert [path for path in before if not os.path.lexists(path)] == []


@pytest.mark.parametrize(
    "second",
    [created(), created(identifier=["u"]), created(id="2" * 32, location="t-" + "2" * 32, identifier=["T"])],
    ids=["name", "id", "case"],
)
def test_two_tables_are_never_one(url: str, second: dict[str, Any]) -> None:
    store = storage.open_store(url)
    Warehouse.open(store, create=True)
    forge(store, created())
    forge(store, second)

    with pytest.raises(FormatError):
        Warehouse.open(store).state()


@pytest.mark.parametrize(
    "members",
    [{"sequence": 2}, {"timestamp": "now"}, {"timestamp": "2026-01-01T00:00:00"}, {"commit": 1}, {"actions": {}}],
    ids=str,
)
def test_an_entry_that_is_none_is_refused(url: str, members: dict[str, Any]) -> None:
    store = storage.open_store(url)
    Warehouse.open(store, create=True)
    forge(store, created())
    data = store.read("_catalog/log/00000000000000000001.json")
    changed = {**encoding.decode_checksummed_json(data, "it"), **members}
    store.create("_catalog/log/00000000000000000001.json", encode_checksummed_json(changed), overwrite=True)
    process_cache.clear()

    with pytest.raises(FormatError):
        Warehouse.open(store).state()


def test_an_entry_of_any_size_is_not_read(url: str) -> None:
    store = storage.open_store(url)
    Warehouse.open(store, create=True)
    forge(store, *[{"action": "create_namespace", "namespace": [f"n{number}"]} for number in range(20_000)])

    with pytest.raises(Corrupt, match="instead of at most 1048576"):
        Warehouse.open(store).state()


def test_a_clone_that_comes_between_a_purge_and_its_deletion_keeps_its_files(url: str) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    make_table(warehouse, "t", 1)
    table = StoredTable.open(storage.open_table_store(warehouse.store, find(warehouse, "t").location))
    drop(warehouse, "t")
    ((table_id, dropped),) = warehouse.state().dropped.items()
    warehouse.commit(lambda _: [PurgeTables((table_id,))])  # and here it dies, and a clone is made
    clone = storage.clone_table(table, storage.open_store(f"{url}-clone"))

    (kept,) = storage.purge_dropped(warehouse, timedelta(days=9))

    assert (kept.name, kept.table_id) == (dropped.table.location, table_id)
    assert f"{url}-clone shares its files" in str(kept.reason)
    assert ids_of(clone) == [1]
    storage.drop_tag(table.store, clone.snapshot.summary["cloned_from"]["tag"])
    assert [each.reason for each in storage.purge_dropped(warehouse, timedelta(days=9))] == [None]
    assert list(table.store.list()) == []
    assert storage.purge_dropped(warehouse, timedelta(days=9)) == []


def test_what_an_entry_says_is_what_was_written(url: str) -> None:
    """Else a commit would not know its own entry again after an answer was lost."""
    warehouse = small_warehouse(storage.open_store(url))
    for step in STEPS:
        copy = Warehouse.open(copy_of(warehouse.store, f"{url}-{step.name}"))
        step.do(copy)
        for entry in copy.entries():
            assert CatalogEntry.decode(entry.encode(), "it") == entry
        state = copy.state()
        assert checkpoint._decode(checkpoint._encode(state), "it") == state


@pytest.mark.parametrize("properties", [{"a": "\ud800"}, {"\udfff": "a"}, {"": "a"}])
def test_a_property_that_no_file_can_hold_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="property"):
        CreateNamespace(("a",), properties)


def test_a_purge_follows_no_link(tmp_path: Path) -> None:
    store = storage.open_store(tmp_path / "w")
    Warehouse.open(store, create=True)
    victim = tmp_path / "victim"
    (victim / "_b").mkdir(parents=True)
    (victim / "_b" / "rows.parquet").write_text("precious")
    (tmp_path / "w" / FOLDER).symlink_to(victim, target_is_directory=True)
    forge(store, created())
    warehouse = Warehouse.open(store)
    drop(warehouse, "t")

    with pytest.raises(StorageError, match="is a symbolic link"):
        storage.purge_dropped(warehouse, timedelta(0))
    assert (victim / "_b" / "rows.parquet").read_text() == "precious"


def test_a_log_behind_a_link_is_refused(tmp_path: Path) -> None:
    Warehouse.open(storage.open_store(tmp_path / "real"), create=True)
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "_catalog").symlink_to(tmp_path / "real" / "_catalog", target_is_directory=True)

    with pytest.raises(StorageError, match="is a symbolic link"):
        Warehouse.open(storage.open_store(tmp_path / "w"))


def test_a_clock_that_was_ahead_keeps_nothing_for_ever(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    make_table(warehouse, "t")
    with monkeypatch.context() as ahead:
        ahead.setattr(encoding, "_clock", lambda: datetime.now(UTC) + 2 * CLOCK_TOLERANCE)
        drop(warehouse, "t")

    assert [each.name for each in storage.purge_dropped(warehouse, timedelta(0))] == ["t"]


def test_a_clock_that_is_ahead_purges_nothing_too_soon(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    make_table(warehouse, "t")
    drop(warehouse, "t")
    monkeypatch.setattr(encoding, "_clock", lambda: datetime.now(UTC) + timedelta(days=1000))

    assert storage.purge_dropped(warehouse, timedelta(days=7)) == []


def test_a_table_that_took_days_to_make_is_not_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    staged = storage.stage_table(warehouse, ("t",), lambda store: store)
    monkeypatch.setattr(encoding, "_clock", lambda: datetime.now(UTC) + timedelta(days=1, hours=1))

    with pytest.raises(storage.Expired, match="making table 't' took more than 1 day"):
        staged.commit()
    assert view(warehouse.store)["tables"] == {}


def test_a_namespace_that_is_dropped_whole_is_one_small_entry(url: str) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)
    warehouse.commit(lambda _: [CreateNamespace(("a",))])
    warehouse.commit(lambda _: [CreateNamespace(("a", f"n{number}")) for number in range(2000)])

    entry = warehouse.commit(lambda _: [DropNamespace(("A",), cascade=True)])

    assert entry is not None
    assert len(entry.encode()) < 1000
    assert warehouse.state().namespaces == {}


def test_what_is_too_much_for_one_entry_is_refused_before_it_is_written(url: str) -> None:
    warehouse = Warehouse.open(storage.open_store(url), create=True)

    with pytest.raises(storage.InvalidArgument, match="one change of a warehouse would take"):
        warehouse.commit(lambda _: [CreateNamespace((f"n{number}",)) for number in range(20_000)])
    assert list(warehouse.entries()) == []


def test_find_is_by_whatever_case(url: str) -> None:
    warehouse = small_warehouse(storage.open_store(url))

    assert find(warehouse, "A.B.TWO").identifier == ("a", "b", "two")
