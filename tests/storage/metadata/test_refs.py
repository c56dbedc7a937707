"""Chains of entries: found in few reads, never broken, and refused by name where they are not understood."""

import json
import pickle
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fuse_storage import (
    AlreadyExists,
    Corrupt,
    FileRef,
    InvalidArgument,
    NotFound,
    RefEntry,
    StorageError,
    Store,
    Unsupported,
    meter_requests,
    open_store,
)
from fuse_storage.metadata.file_ref import new_id, read_verified
from fuse_storage.metadata.refs import Branch, next_timestamp
from fuse_storage.metadata.tags import Tag, create_tag, find_tag
from fuse_storage.states import find_entry_at_time
from fuse_storage.store.abilities import list_keys_after

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def entry(sequence: int, **changes: object) -> RefEntry:
    parent = None if sequence == 1 else f"{sequence - 1:032x}"
    made = RefEntry(
        "snapshot",
        sequence,
        f"{sequence:032x}",
        parent,
        BEGAN + timedelta(minutes=sequence),
        "append",
        f"{sequence:032x}",
        FileRef(f"_ss/{sequence:032x}.json", 10, "0" * 32),
    )
    return replace(made, **changes)


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}")


def chain(store: Store, length: int) -> Branch:
    branch = Branch(store, "main")
    for sequence in range(1, length + 1):
        branch.create(entry(sequence))
    return branch


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 100])
def test_the_head_is_found_without_a_hint(store: Store, length: int) -> None:
    assert chain(store, length).head() == entry(length)


@pytest.mark.parametrize(
    "hint", [b"1", b"50", b"97", b"100", b"0", b"-3", b"", b"what?", b"\xff", b"9" * 30, b"1" * 4_000_000]
)
def test_the_head_is_found_whatever_the_hint_says(store: Store, hint: bytes) -> None:
    branch = chain(store, 100)
    store.create("_refs/branch/main/_hint", hint, overwrite=True)

    assert branch.head() == entry(100)


@pytest.mark.parametrize("hint", [b"101", b"9999", b"9" * 20])
def test_an_entry_that_the_hint_names_and_that_is_missing_is_missed(store: Store, hint: bytes) -> None:
    branch = chain(store, 100)
    store.create("_refs/branch/main/_hint", hint, overwrite=True)

    with pytest.raises(Corrupt, match=rf"{int(hint):020}\.json is missing, though the hint .* recover"):
        branch.head()


@pytest.mark.parametrize("hinted", [100, 97, 2])
def test_the_head_is_found_in_three_requests_and_where_it_was_in_one(store: Store, hinted: int) -> None:
    chain(store, 100).write_head_hint(hinted)
    counted = meter_requests(store)

    assert Branch(counted, "main").head() == entry(100)
    assert [verb for verb, _, _ in counted.reads] == ["read", "list", "read"]
    counted.reset()
    assert Branch(counted, "main").head(known=entry(100)) == entry(100)
    assert [verb for verb, _, _ in counted.reads] == ["read"]


def test_only_what_follows_the_hint_is_listed(tmp_path: Path) -> None:
    chain(open_store(tmp_path), 30)

    keys = list_keys_after(open_store(tmp_path), Branch(open_store(tmp_path), "main").key(28))

    assert sorted(keys) == [f"_refs/branch/main/{number:020}.json" for number in (29, 30)]


@pytest.mark.parametrize("stray", [".DS_Store", "Thumbs.db", "5.json", f"{7:020}.json~", f"{7:020}.json/x", "é"])
def test_what_is_no_entry_by_its_name_is_passed_over(store: Store, stray: str) -> None:
    branch = chain(store, 5)
    store.create(f"_refs/branch/main/{stray}", b"?")

    assert branch.head() == entry(5)
    assert branch.sequences() == [1, 2, 3, 4, 5]


def test_a_branch_that_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="no branch 'side'"):
        Branch(store, "side").head()


@pytest.mark.parametrize("name", ["", "a/b", "..", "_hint", "ü", "a" * 101, "a b"])
def test_names_that_make_no_key_are_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidArgument, match="is no name for a branch"):
        Branch(store, name)


def test_an_entry_is_never_replaced(store: Store) -> None:
    branch = chain(store, 2)

    branch.create(entry(2))
    with pytest.raises(AlreadyExists):
        branch.create(entry(2, commit_id="other"))

    assert branch.head() == entry(2)


def test_an_entry_of_an_unknown_kind_is_refused_by_name(store: Store) -> None:
    branch = chain(store, 2)
    branch.create(replace(entry(3), kind="hot"))

    with pytest.raises(Unsupported, match="kind 'hot'"):
        branch.head()


def test_a_dropped_branch_ends_in_a_tombstone(store: Store) -> None:
    branch = chain(store, 2)
    branch.create(entry(3, kind="tombstone", operation="drop", snapshot_id=None, reference=None))

    assert branch.head().kind == "tombstone"
    assert branch.head().reference is None


@pytest.mark.parametrize("place", range(0, 500, 7))
def test_an_entry_with_a_flipped_bit_is_corrupt_or_says_the_same(store: Store, place: int) -> None:
    data = bytearray(entry(2).encode())
    data[place % len(data)] ^= 1 << place % 8

    try:
        found = RefEntry.decode(bytes(data), "there")
    except (Corrupt, Unsupported):
        return
    assert found == entry(2)


def test_an_entry_that_was_copied_to_another_place_is_corrupt(store: Store) -> None:
    chain(store, 2)
    store.create("_refs/branch/main/00000000000000000003.json", entry(2).encode())

    with pytest.raises(Corrupt, match="number 2"):
        Branch(store, "main").head()


def test_an_entry_can_be_read_by_people() -> None:
    found = json.loads(entry(2).encode())

    assert found["timestamp"] == "2026-01-01T00:02:00.000000Z"
    assert (found["sequence"], found["operation"], found["parent"]) == (2, "append", f"{1:032x}")


def test_walking_reads_every_entry_once(store: Store) -> None:
    branch = chain(store, 100)

    assert [found.sequence for found in branch.walk(100)] == list(range(100, 0, -1))
    assert [found.sequence for found in branch.walk(70, 65)] == [70, 69, 68, 67, 66, 65]


def test_walking_over_a_gap_says_which_entry_is_missing(store: Store) -> None:
    branch = chain(store, 10)
    store.delete([branch.key(5)])

    with pytest.raises(Corrupt, match="00000000000000000005"):
        list(branch.walk(10))


def test_an_entry_of_another_copy_is_found_out_by_what_follows_it(store: Store) -> None:
    branch = chain(store, 10)
    store.delete([branch.key(5)])
    branch.create(entry(5, commit_id="f" * 32))

    with pytest.raises(Corrupt, match=rf"{6:020}\.json follows commit {5:032x}, and number 5 is commit ffff"):
        list(branch.walk(10))


@pytest.mark.parametrize(("minutes", "sequence"), [(1, 1), (1.5, 1), (2, 2), (9.9, 9), (10, 10), (1000, 10)])
def test_a_time_means_the_newest_entry_that_is_not_later(store: Store, minutes: float, sequence: int) -> None:
    assert find_entry_at_time(chain(store, 10), BEGAN + timedelta(minutes=minutes)) == entry(sequence)


def test_before_the_first_entry_there_was_nothing(store: Store) -> None:
    with pytest.raises(NotFound, match="began at"):
        find_entry_at_time(chain(store, 10), BEGAN)


def test_timestamps_rise_though_clocks_fall() -> None:
    early = BEGAN - timedelta(days=1)

    assert next_timestamp(BEGAN, early) == BEGAN + timedelta(microseconds=1)
    assert next_timestamp(BEGAN, BEGAN) > BEGAN
    assert next_timestamp(early, BEGAN) == BEGAN
    assert next_timestamp(None, BEGAN) == BEGAN


def test_a_tag_is_made_once(store: Store) -> None:
    tag = Tag("v1", BEGAN, "0" * 32, FileRef("_ss/0.json", 1, "0"))
    create_tag(store, tag)

    assert find_tag(store, "v1") == tag
    assert find_tag(store, "v2") is None
    assert find_tag(store, "no/tag at all") is None
    with pytest.raises(AlreadyExists, match="'v1'"):
        create_tag(store, replace(tag, snapshot_id="1" * 32))


@pytest.mark.parametrize("name", ["2026-01-01", "20260101", "0" * 32, "2", "007"])
def test_a_tag_that_looks_like_something_else_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="could be taken for"):
        create_tag(store, Tag(name, BEGAN, "0" * 32, FileRef("_ss/0.json", 1, "0")))


def test_ids_are_uuids_of_version_7_in_the_order_of_time() -> None:
    ids = [new_id() for _ in range(100)]

    assert len(set(ids)) == 100
    for row_id in ids:
        found = uuid.UUID(row_id)
        assert (found.version, found.variant, found.hex) == (7, uuid.RFC_4122, row_id)
    assert [row_id[:12] for row_id in ids] == sorted(row_id[:12] for row_id in ids)


def test_what_is_read_whole_is_verified(store: Store) -> None:
    store.create("f", b"12345")
    good = FileRef.for_data("f", b"12345")

    assert read_verified(store, good) == b"12345"
    with pytest.raises(Corrupt, match="fails its checksum"):
        read_verified(store, replace(good, hash="0" * 32))
    with pytest.raises(Corrupt, match="5 bytes instead of 6"):
        read_verified(store, replace(good, length=6))
    with pytest.raises(NotFound, match="the table refers to it"):
        read_verified(store, replace(good, path="g"))
    with pytest.raises(StorageError, match="is no reference"):
        FileRef.from_json({"path": 1})


def test_entries_are_pickled(store: Store) -> None:
    assert pickle.loads(pickle.dumps(entry(2))) == entry(2)
