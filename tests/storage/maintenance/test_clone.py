"""Clones: a table of its own that shares files, and neither's writes, damage or vacuum reaches the other."""

import pickle
from datetime import timedelta

import pytest

import fuse_storage as storage
from fuse_storage import AlreadyExists, ReadOnly, ReadOnlyStore, StoredTable
from fuse_storage.store.shared_files import resolve_store
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Aged, Totals, append, ids_of, staged

INDEX = Totals()


@pytest.fixture
def table(url: str) -> StoredTable:
    made = StoredTable.create(url, COLUMNS, properties={"block_rows": 2, "zone_rows": 1})
    made = made.transaction().add_index("totals", {"key": INDEX.key}).commit()
    return append(append(made, 1, 2, 3, builders=[INDEX]), 4, builders=[INDEX])


def cloned(table: StoredTable, name: str = "copy") -> StoredTable:
    return storage.clone_table(
        table, storage.open_store(f"{table.store.url}-{name}", getattr(table.store, "options", None))
    )


def kinds(table: StoredTable) -> dict[str, int]:
    found = [one.key.split("/")[0] for one in table.store.list() if not one.key.endswith("_hint")]
    return {kind: found.count(kind) for kind in sorted(set(found))}


def totals(table: StoredTable) -> list[bytes]:
    sidecars = table.blocks().sidecars(INDEX.key)
    assert sidecars is not None
    assert sidecars.error is None
    payloads = [sidecars.payload(block) for block in range(len(sidecars))]
    return [payload.read([(0, payload.size)])[0] for payload in payloads if payload is not None]


def test_a_clone_has_all_that_its_source_has_and_no_rows_of_its_own(table: StoredTable) -> None:
    copy = cloned(table)

    assert kinds(copy) == {"_refs": 1, "_sg": 3, "_ss": 2, "_x": 2}  # the row of 4 is its only zone
    assert ids_of(copy) == ids_of(table) == [1, 2, 3, 4]
    assert totals(copy) == totals(table) == [b"[1, 2]", b"[3]", b"[4]"]
    assert copy.snapshot.definitions == table.snapshot.definitions
    assert copy.snapshot.schema == table.snapshot.schema
    assert copy.block_files()[0] == table.block_files()[0]
    check_invariants(copy)
    check_invariants(StoredTable.open(copy.store))
    check_invariants(pickle.loads(pickle.dumps(copy)))


def test_each_goes_its_own_way(table: StoredTable) -> None:
    copy = append(cloned(table), 5, 6, builders=[INDEX])
    table = append(table, 7, builders=[INDEX])

    assert (ids_of(copy), ids_of(table)) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 7])
    assert totals(copy)[-1] == b"[5, 6]"
    for each in (copy, table):
        check_invariants(each)


def test_merged_segments_and_clones_of_clones_still_know_where_rows_are(table: StoredTable) -> None:
    copy = cloned(table)
    for row_id in range(5, 15):
        copy = append(copy, row_id, builders=[INDEX])
    again = append(cloned(copy, "again"), 99)

    assert len(copy.segments()) < 12
    assert ids_of(again) == [*range(1, 15), 99]
    assert totals(again) == totals(copy)
    check_invariants(again)


@pytest.mark.parametrize("first", ["source", "clone"])
def test_neither_vacuum_takes_what_the_other_needs(table: StoredTable, first: str) -> None:
    copy = cloned(table)
    table = table.transaction().overwrite(staged(table, [100])).commit()
    copy = append(copy, 5)
    for each in [table, copy] if first == "source" else [copy, table]:
        store = Aged(each.store)
        store.age()
        assert sum(storage.vacuum_table(store, timedelta(0), force=True).files.values())
    storage.process_cache.clear()

    assert ids_of(StoredTable.open(copy.store)) == [1, 2, 3, 4, 5]
    assert ids_of(StoredTable.open(table.store)) == [100]


def test_the_tag_says_who_needs_it(table: StoredTable) -> None:
    copy = cloned(table)
    (tag,) = storage.list_tags(table.store)

    assert (tag.snapshot_id, tag.holder) == (table.snapshot.id, copy.store.url)
    assert copy.snapshot.summary["cloned_from"] == {
        "url": table.store.url,
        "snapshot": table.snapshot.id,
        "tag": tag.name,
    }


def test_what_cannot_be_cloned_leaves_nothing_behind(table: StoredTable) -> None:
    other = cloned(table)
    with pytest.raises(AlreadyExists, match="already is a table"):
        storage.clone_table(table, other.store)
    with pytest.raises(AlreadyExists):
        storage.clone_table(table, table.store)
    list_path = table.snapshot.segments
    assert list_path is not None
    storage.process_cache.clear()
    table.store.delete([list_path.path])
    with pytest.raises(storage.NotFound):
        cloned(StoredTable.open(table.store), "third")

    assert len(storage.list_tags(table.store)) == 1


def test_damage_in_metadata_that_only_helps_is_left_behind(table: StoredTable) -> None:
    storage.process_cache.clear()
    table.store.delete(
        [one.key for one in table.store.list("_x")] + [one.key for one in table.store.list("_sg") if "zones" in one.key]
    )
    copy = cloned(StoredTable.open(table.store))

    assert ids_of(copy) == [1, 2, 3, 4]
    assert copy.blocks().sidecars(INDEX.key) is None
    check_invariants(copy)


def test_files_of_another_bucket_folder_are_read_with_the_same_credentials(s3: dict[str, str]) -> None:
    options = {**s3, "allow_http": "true"}
    table = append(StoredTable.create(storage.open_store("s3://tables/cloned", options), COLUMNS), 1, 2)
    copy = storage.clone_table(table, storage.open_store("s3://tables/clone", options))
    storage.process_cache.clear()

    assert ids_of(append(StoredTable.open("s3://tables/clone", options=options), 3)) == [1, 2, 3]
    assert copy.block_files()[0][0].startswith("s3://tables/cloned/_b/")


@pytest.mark.parametrize("location", ["/etc/passwd", "s3://tables/x/_sg/a.parquet", "memory://t"])
def test_a_location_that_is_no_file_of_a_table_is_refused(table: StoredTable, location: str) -> None:
    with pytest.raises(storage.StorageError, match="which is no file of a table"):
        resolve_store(table.store, location, True)


def test_an_empty_table_is_cloned(url: str) -> None:
    copy = cloned(StoredTable.create(url, COLUMNS))

    assert ids_of(append(copy, 1)) == [1]
    check_invariants(copy)


def test_an_older_version_refuses_a_clone_by_the_name_of_what_it_lacks(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = cloned(table)
    storage.process_cache.clear()
    monkeypatch.setattr("fuse_storage.validation.features.READER_FEATURES", frozenset())

    with pytest.raises(storage.Unsupported, match="shared-files"):
        StoredTable.open(copy.store)


def test_a_table_that_is_read_only_is_read_and_never_written(table: StoredTable) -> None:
    attached = StoredTable.open(ReadOnlyStore(table.store))
    before = kinds(table)

    assert ids_of(attached) == [1, 2, 3, 4]
    assert attached.block_files()[0] == table.block_files()[0]
    for change in (
        lambda: append(attached, 5),
        lambda: attached.tag("mine"),
        lambda: storage.create_branch(attached, "mine"),
        lambda: storage.vacuum_table(attached.store, timedelta(days=1)),
    ):
        with pytest.raises(ReadOnly, match="was opened to be read only"):
            change()
    assert kinds(table) == before
    assert ids_of(pickle.loads(pickle.dumps(attached))) == [1, 2, 3, 4]


def test_a_clone_that_was_interrupted_while_it_was_committed_keeps_its_rows(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("fuse_storage.maintenance.clone.create_ref", interrupted)
    target = storage.open_store(f"{table.store.url}-copy")
    with pytest.raises(KeyboardInterrupt):
        storage.clone_table(table, target)

    storage.recover_branches(target)

    made = StoredTable.open(target)
    assert [tag.name for tag in storage.list_tags(table.store)] == [made.snapshot.summary["cloned_from"]["tag"]]
    assert ids_of(made) == [1, 2, 3, 4]
