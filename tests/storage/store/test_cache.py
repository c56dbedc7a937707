import pytest

from fuse_storage import Cache


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
