import pickle
from pathlib import Path

import pytest

from fuse_storage import (
    Cache,
    CachedStore,
    ReadOnlyStore,
    cache_of,
    meter_requests,
    open_store,
    process_cache,
)
from fuse_storage.store.shared_files import resolve_store


def test_what_is_kept_is_loaded_once() -> None:
    cache, loads = Cache(100), []

    def load() -> str:
        loads.append(1)
        return "value"

    assert [cache.get_or_load("k", load, len) for _ in range(3)] == ["value"] * 3
    assert loads == [1]


def test_the_longest_unused_is_forgotten_first() -> None:
    cache = Cache(40)
    for key in "abcd":
        cache.put(key, key.upper(), 10)
    cache.find("a")
    cache.put("e", "E", 10)

    assert [cache.find(key) for key in "abcde"] == ["A", None, "C", "D", "E"]
    assert cache.total_bytes == 40


def test_what_is_larger_than_a_quarter_is_not_kept() -> None:
    cache = Cache(40)
    cache.put("small", 1, 10)
    cache.put("large", 2, 11)

    assert (cache.find("small"), cache.find("large"), len(cache)) == (1, None, 1)


def test_keeping_again_replaces_and_clearing_empties() -> None:
    cache = Cache(40)
    cache.put("a", 1, 10)
    cache.put("a", 2, 5)

    assert (cache.find("a"), cache.total_bytes) == (2, 5)
    cache.clear()
    assert (cache.find("a"), cache.total_bytes, len(cache)) == (None, 0, 0)


def test_a_failed_load_keeps_nothing() -> None:
    cache = Cache(40)

    with pytest.raises(ZeroDivisionError):
        cache.get_or_load("a", lambda: 1 // 0, lambda _: 1)

    assert len(cache) == 0


def test_a_store_has_a_cache_of_its_own_or_that_of_the_process(tmp_path: Path) -> None:
    plain = open_store(tmp_path)
    cached = CachedStore(plain)

    for store in (plain, meter_requests(plain), ReadOnlyStore(plain)):
        assert cache_of(store) is process_cache
    for store in (cached, meter_requests(cached), ReadOnlyStore(meter_requests(cached))):
        assert cache_of(store) is cached.cache
    assert cache_of(resolve_store(cached, "_i/a", True)[0]) is cached.cache
    assert cache_of(resolve_store(cached, "/other/_i/a", True)[0]) is cached.cache
    assert cache_of(resolve_store(plain, "/other/_i/a", True)[0]) is process_cache


def test_a_store_with_a_cache_does_all_that_the_store_within_does(tmp_path: Path) -> None:
    plain = open_store(tmp_path)
    store = CachedStore(plain)
    store.create("a", b"123")

    assert (store.read("a"), store.read_ranges("a", [(1, 2)])) == (b"123", [b"23"])
    assert [found.key for found in store.list()] == ["a"]
    assert (store.url, store.path("a"), store.coalesce_gap) == (plain.url, plain.path("a"), plain.coalesce_gap)
    store.delete(["a"])
    assert list(store.list()) == []


def test_what_is_kept_stays_behind_when_pickled(tmp_path: Path) -> None:
    store = CachedStore(open_store(tmp_path), Cache(40))
    store.cache.put("a", 1, 10)

    copy = pickle.loads(pickle.dumps(store))

    assert (copy.url, copy.cache.max_bytes, len(copy.cache)) == (store.url, 40, 0)
