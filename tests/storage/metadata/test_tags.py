"""Tags that come, expire and go at once: whoever is told that a tag is made or dropped can rely on it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, permutations, product
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import AlreadyExists, Conflict, Corrupt, FileRef, NotFound, Store
from fuse_storage.metadata import encoding, tags
from fuse_storage.metadata.tags import Tag, create_tag, drop_tag, find_tag, list_tag_files, list_tags
from fuse_storage.testing import Crash, FaultyStore

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
REFUSALS = (AlreadyExists, Conflict, NotFound)


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two moments are one, so that no two tags have the same bytes."""
    ticks = count()
    monkeypatch.setattr(encoding, "_clock", lambda: NOW + timedelta(microseconds=next(ticks)))


@pytest.fixture
def store(url: str) -> Store:
    return storage.open_store(url)


def tag(letter: str, **changes: Any) -> Tag:
    made = Tag("v1", encoding.utc_now() - HOUR, letter * 32, FileRef(f"_ss/{letter * 32}.json", 1, "0" * 32))
    return replace(made, **changes)


STATES: dict[str, Callable[[Store], object]] = {
    "none": lambda store: None,
    "living": lambda store: create_tag(store, tag("0")),
    "expired": lambda store: create_tag(store, tag("0", expires=NOW - HOUR / 2)),
    "dropped": lambda store: (create_tag(store, tag("0")), drop_tag(store, "v1")),
    "expired again": lambda store: (STATES["dropped"](store), STATES["expired"](store)),
}
CHANGES: dict[str, Callable[[Store], object]] = {
    "tag a": lambda store: create_tag(store, tag("a")),
    "tag b": lambda store: create_tag(store, tag("b")),
    "untag": lambda store: drop_tag(store, "v1"),
}


class Interrupted:
    """A store that lets something else happen just before its n-th request."""

    def __init__(self, store: Store, nth: int, between: Callable[[], object]) -> None:
        self.store, self.left, self.between = store, nth, between

    def __getattr__(self, name: str) -> Any:
        if name not in ("read", "list", "create", "delete", "list_keys_after"):
            return getattr(self.store, name)
        self.left -= 1
        if self.left == 0:
            self.between()
        return getattr(self.store, name)


def meant(store: Store) -> str | None:
    found = find_tag(store, "v1")
    return None if found is None or found.expired(NOW) else found.snapshot_id[0]


def tried(change: str, store: Any) -> str | None:
    """The change if it was acknowledged, None if it was refused."""
    try:
        CHANGES[change](store)
    except REFUSALS:
        return None
    return change


def outcomes(state: str, acknowledged: list[str]) -> set[str | None]:
    """What the name may mean if these changes were made in one order or another, and all succeeded."""
    results = set()
    for order in permutations(acknowledged):
        now: str | None = {"living": "0", "expired": "old", "expired again": "old"}.get(state)
        possible = True
        for change in order:
            if change == "untag":
                possible, now = possible and now is not None, None
            else:
                possible, now = possible and now in (None, "old"), change[-1]
        if possible:
            results.add(None if now == "old" else now)
    return results


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("first", "second"), list(product(CHANGES, CHANGES)))
def test_whatever_meets_it_is_as_if_one_had_come_after_the_other(url: str, state: str, first: str, second: str) -> None:
    for nth in range(1, 9):
        store = storage.open_store(f"{url}-{nth}")
        STATES[state](store)
        met: list[str | None] = []
        outer = tried(first, Interrupted(store, nth, lambda store=store, met=met: met.append(tried(second, store))))
        acknowledged = [change for change in (outer, *met) if change is not None]
        refused = [change for change in [first, *([second] if met else [])] if change not in acknowledged]

        possible = outcomes(state, acknowledged) | outcomes(state, acknowledged + refused)
        assert meant(store) in possible, (nth, acknowledged)
        if met and state != "living" and "untag" not in (first, second):
            assert len(acknowledged) == 1


@pytest.mark.parametrize("state", ["living", "expired", "expired again"])
@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_untag_that_dies_is_done_by_the_next(store: Store, state: str, nth: int, how: Any) -> None:
    STATES[state](store)
    with suppress(Crash):  # it may need fewer writes
        drop_tag(FaultyStore(store, nth, how), "v1")

    if find_tag(store, "v1") is not None:
        drop_tag(store, "v1")
    assert find_tag(store, "v1") is None
    create_tag(store, tag("a"))
    assert meant(store) == "a"


def test_each_tag_of_a_name_has_a_key_of_its_own(store: Store) -> None:
    keys = {create_tag(store, tag("a"))}
    for letter in "bcd":
        drop_tag(store, "v1")
        keys.add(create_tag(store, tag(letter)))

    assert len(keys) == 4
    assert [found.snapshot_id[0] for found in list_tags(store)] == ["d"]
    assert [found.newest for found in list_tag_files(store)].count(True) == 1


@pytest.mark.parametrize(
    "stray",
    [".DS_Store", "._v1.json", "Thumbs.db", "v1.json~", "#v1.json#", ".v1.json.swp", "v1 copy.json", "v1.json.bak",
     "v1/.DS_Store", "v1/7.json", "v1/00000000000000000007.json.tmp", "old/v1/x.json", ".nfs000000000001"],
)  # fmt: skip
def test_what_is_no_tag_by_its_name_is_passed_over(store: Store, stray: str) -> None:
    store.create(f"{tags.TAG_FOLDER}/{stray}", b"\0\1")
    create_tag(store, tag("a"))

    assert [found.name for found in list_tags(store)] == ["v1"]
    drop_tag(store, "v1")
    assert meant(store) is None


def test_a_tag_that_was_copied_to_another_name_is_refused_by_its_key(store: Store) -> None:
    create_tag(store, tag("a"))
    store.create(f"{tags.TAG_FOLDER}/v2.json", tag("a").encode())

    with pytest.raises(Corrupt, match=r"_refs/tag/v2\.json is of a tag 'v1'"):
        find_tag(store, "v2")
