"""What nothing leads to is deleted; what anything leads to, or a writer may still commit, is not, whatever happens
when.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import BlockReplacement, Conflict, Corrupt, NotFound, StorageError, StoredTable, vacuum_table
from fuse_storage.commit.snapshot_hold import post_vacuum_notice
from fuse_storage.testing import Crash, FaultyStore, check_invariants
from tests.effort import effort
from tests.storage.small import COLUMNS, Aged, Totals, append, ids_of, known_by, staged, truth

BUILDER = Totals()
NOW = timedelta(0)


@pytest.fixture
def store(url: str) -> Any:
    return Aged(storage.open_store(url))


@pytest.fixture
def table(store: Any) -> StoredTable:
    """Six rows in three blocks, one of which was replaced; two snapshots of it are tagged or branched."""
    table = (
        StoredTable.create(store, COLUMNS, properties={"block_rows": 2, "zone_rows": 1})
        .transaction()
        .add_index("one", {"key": BUILDER.key})
        .commit()
    )
    table = append(table, *range(6), builders=[BUILDER])
    return replacing(table, 1, [20])


def replacing(table: StoredTable, place: int, made: list[int]) -> StoredTable:
    new = staged(table, made, [BUILDER]) if made else []
    swap = BlockReplacement((table.blocks().ids[place],), len(made) and 1)
    return table.transaction([BUILDER]).replace_blocks([swap], new, table.segments().ids).commit()


def keys(store: Any) -> set[str]:
    return {found.key for found in store.list() if not found.key.startswith("_refs")}


def sound(table: StoredTable, ids: list[int]) -> None:
    storage.process_cache.clear()
    again = StoredTable.open(table.store, at=table.snapshot.id)
    assert ids_of(again) == ids
    if BUILDER.key in again.snapshot.keys:
        assert known_by(again, BUILDER.key) == truth(again)
    check_invariants(again)


def test_a_snapshot_that_is_too_young_to_go_stays_whole(table: StoredTable, store: Any) -> None:
    replaced = table.history()[1]
    store.age()
    store.old.discard(f"_ss/{replaced.snapshot_id}.json")

    vacuum_table(store, NOW, force=True)

    sound(table.at(str(replaced.snapshot_id)), list(range(6)))


def test_what_was_replaced_goes_and_the_head_stays(table: StoredTable, store: Any) -> None:
    before = keys(store)
    store.age()
    promised = vacuum_table(store, NOW, dry_run=True, force=True)
    assert keys(store) == before
    found = vacuum_table(store, NOW, force=True)

    assert found.files == promised.files
    assert found.bytes == promised.bytes
    assert not promised.deleted
    assert sum(found.files.values()) == len(before - keys(store))
    assert found.kept == len(keys(store))
    assert found.files == {
        "snapshots": 4,
        "segments": 3,  # the row that came has no zones file
        "sidecars": 2,
        "blocks": 1,
        "packs": 0,
    }  # a pack is of several blocks
    sound(table, [0, 1, 20, 4, 5])
    assert list(store.list("_refs/vacuum")) == []
    assert sum(vacuum_table(store, NOW, force=True).files.values()) == 0
    assert len(table.history()) == 4
    with pytest.raises(NotFound, match="it was collected"):
        table.at(str(table.snapshot.parent))


def test_what_is_young_stays_and_its_writer_commits(table: StoredTable, store: Any) -> None:
    assert sum(vacuum_table(store, NOW, force=True).files.values()) == 0
    store.age()
    waiting = table.transaction([BUILDER]).append(staged(table, [8], [BUILDER]))
    vacuum_table(store, NOW, force=True)

    sound(waiting.commit(), [0, 1, 20, 4, 5, 8])


def test_what_was_the_head_within_the_retention_stays(table: StoredTable, store: Any) -> None:
    store.age()
    found = vacuum_table(store, timedelta(hours=2))
    assert {kind for kind, count in found.files.items() if count} == {
        "segments",
        "sidecars",
    }  # staged, and then part of another
    sound(table.at(str(table.snapshot.parent)), list(range(6)))


def test_so_many_snapshots_stay_as_are_to_be_kept(table: StoredTable, store: Any) -> None:
    store.age()
    vacuum_table(store, NOW, keep=2, force=True)

    sound(table, [0, 1, 20, 4, 5])
    sound(table.at(str(table.snapshot.parent)), list(range(6)))


def test_tags_and_branches_keep_what_they_name_until_they_are_gone(table: StoredTable, store: Any) -> None:
    old = table.at(str(table.snapshot.parent))
    old.tag("old")
    side = append(storage.create_branch(old, "side"), 7, builders=[BUILDER])
    table = replacing(table, 0, [])
    store.age()
    vacuum_table(store, NOW, force=True)
    sound(table, [20, 4, 5])
    sound(side, [*range(6), 7])
    sound(old, list(range(6)))

    storage.drop_tag(store, "old")
    vacuum_table(store, NOW, force=True)
    sound(side, [*range(6), 7])
    storage.drop_branch(store, "side")
    vacuum_table(store, timedelta(hours=1))
    sound(table, [20, 4, 5])
    sound_at = StoredTable.open(store, at=side.snapshot.id)
    assert ids_of(sound_at) == [*range(6), 7]
    store.age()
    assert vacuum_table(store, NOW, force=True).files["blocks"] > 0
    sound(table, [20, 4, 5])
    with pytest.raises(NotFound):
        StoredTable.open(store, at=side.snapshot.id)


def test_sidecars_and_packs_of_a_dropped_index_go(table: StoredTable, store: Any) -> None:
    table = table.transaction().drop_index("one").commit()
    store.age()
    vacuum_table(store, NOW, force=True)

    assert {key.split("/")[0] for key in keys(store)} == {"_ss", "_sg", "_b"}
    sound(table, [0, 1, 20, 4, 5])


def test_packs_stay_where_nobody_can_say_what_leads_to_them(table: StoredTable, store: Any) -> None:
    packs = {found.key for found in store.list("_i")}
    store.delete([found.key for found in store.list("_x")])
    store.age()
    vacuum_table(store, NOW, force=True)

    assert {found.key for found in store.list("_i")} == packs


def test_a_snapshot_that_is_kept_and_lacks_a_file_stops_everything(table: StoredTable, store: Any) -> None:
    old = table.at(str(table.snapshot.parent))
    (lost,) = set(old.blocks().ids) - set(table.blocks().ids)
    assert lost
    store.delete([f"_sg/{row_id}.parquet" for row_id in old.segments().ids])
    storage.process_cache.clear()
    store.age()
    before = keys(store)

    with pytest.raises(NotFound):
        vacuum_table(store, timedelta(hours=2))
    assert keys(store) == before
    assert list(store.list("_refs/vacuum")) == []


@pytest.mark.parametrize("folder", ["_ss", "_sg", "_refs/branch", "_refs/tag"])
def test_nothing_is_deleted_if_anything_that_leads_to_files_is_damaged(
    table: StoredTable, store: Any, folder: str
) -> None:
    table.tag("v1")
    segments = {f"_sg/{row_id}.parquet" for row_id in table.segments().ids}
    head = f"_refs/branch/main/{table.entry.sequence:020}.json"
    damaged = {
        "_ss": table.snapshot.path,
        "_sg": min(segments),
        "_refs/branch": head,
        "_refs/tag": "_refs/tag/v1.json",
    }[folder]
    data = store.read(damaged)
    store.delete([damaged])
    store.create(damaged, data[:-40] + b"\0" * 40)
    before = keys(store)
    storage.process_cache.clear()
    store.age()

    with pytest.raises((Corrupt, StorageError)):
        vacuum_table(store, NOW, force=True)
    assert keys(store) == before


def test_a_retention_that_readers_would_feel_is_refused(store: Any) -> None:
    with pytest.raises(storage.InvalidArgument, match="say force"):
        vacuum_table(store, timedelta(minutes=5))
    with pytest.raises(storage.InvalidArgument, match="always stays"):
        vacuum_table(store, NOW, keep=0, force=True)


# --- two at once ---


def test_an_old_snapshot_is_not_named_while_a_vacuum_may_not_see_the_name(table: StoredTable, store: Any) -> None:
    old = table.at(str(table.snapshot.parent))
    post_vacuum_notice(store, datetime.now(UTC))

    for act in (
        lambda: old.tag("old"),
        lambda: storage.create_branch(old, "side"),
        lambda: storage.restore_snapshot(table, old),
    ):
        with pytest.raises(Conflict, match="is running, and snapshot"):
            act()
    assert storage.list_tags(store) == []
    assert list(storage.list_branches(store)) == ["main"]
    table.tag("newest")
    storage.create_branch(table, "side")
    store.delete([found.key for found in store.list("_refs/vacuum")])
    old.tag("old")


def test_the_notice_of_a_vacuum_that_died_is_forgotten(table: StoredTable, store: Any) -> None:
    post_vacuum_notice(store, datetime.now(UTC))
    store.age()

    table.at(str(table.snapshot.parent)).tag("old")


def test_what_was_collected_is_not_named_again(table: StoredTable, store: Any) -> None:
    old = table.at(str(table.snapshot.parent))
    store.age()
    vacuum_table(store, NOW, force=True)

    with pytest.raises(NotFound, match="was collected by a vacuum"):
        old.tag("old")
    with pytest.raises(NotFound, match="was collected"):
        storage.restore_snapshot(table, old)
    assert storage.list_tags(store) == []
    sound(table, [0, 1, 20, 4, 5])


@pytest.mark.parametrize("seed", range(effort(3)))
def test_wherever_it_dies_and_whatever_was_done_all_that_is_named_is_whole(store: Any, seed: int) -> None:
    draw = random.Random(seed)
    table = (
        StoredTable.create(store, COLUMNS, properties={"block_rows": 2, "zone_rows": 1})
        .transaction()
        .add_index("one", {"key": BUILDER.key})
        .commit()
    )
    named: dict[str, tuple[StoredTable, list[int]]] = {}
    for step in range(14):
        match draw.choice(["append", "replace", "tag", "untag", "branch", "vacuum", "crash"]) if step else "append":
            case "append":
                table = append(table, *range(step * 10, step * 10 + draw.randint(1, 5)), builders=[BUILDER])
            case "replace" if len(table.blocks()):
                table = replacing(table, draw.randrange(len(table.blocks())), draw.choice([[], [step * 10 + 9]]))
            case "tag":
                table.tag(f"t{step}")
                named[f"t{step}"] = (table, ids_of(table))
            case "branch":
                side = append(storage.create_branch(table, f"b{step}"), step * 10 + 8, builders=[BUILDER])
                named[f"b{step}"] = (side, ids_of(side))
            case "untag" if tagged := [name for name in named if name[0] == "t"]:
                storage.drop_tag(store, name := draw.choice(tagged))
                del named[name]
            case "vacuum":
                store.age()
                vacuum_table(store, NOW, keep=draw.randint(1, 2), force=True)
            case "crash":
                store.age()
                broken = FaultyStore(store, draw.randint(1, 6), draw.choice(["before", "after"]))
                try:
                    vacuum_table(broken, NOW, force=True)
                except (Crash, StorageError):
                    store.age()
                    store.delete([found.key for found in store.list("_refs/vacuum")])
        storage.process_cache.clear()
        sound(table, ids_of(table))
        for held, ids in named.values():
            sound(held, ids)
