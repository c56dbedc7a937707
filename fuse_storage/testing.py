"""Contracts and faults for the tests of others: whoever brings a store proves it here.

Needs pytest, so nothing else of this package imports it.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from fuse_storage.errors import AlreadyExists, Corrupt, NotFound, StorageError
from fuse_storage.maintenance.check import check_invariants
from fuse_storage.store.abilities import list_keys_after
from fuse_storage.store.ranges import ByteRange, ObjectMeta
from fuse_storage.store.store import Store

__all__ = ["Crash", "FaultMode", "FaultyStore", "StoreTests", "check_invariants"]

FaultMode = Literal["before", "after", "lost"]


class Crash(BaseException):
    """The end of the process that wrote: no handler of errors may catch it."""


class FaultyStore:
    """A store that breaks one write (``failing_write``: creates and deletes, counted from 1) to the store within.

    ``mode``: "before" and "after" crash there (nothing after it is written either); "lost" does write, then says that
    it does not know. The answer of a ``create`` that found other bytes is never lost: that is an answer.
    """

    def __init__(self, store: Store, failing_write: int, mode: FaultMode) -> None:
        self.store, self.failing_write, self.mode, self.write_count = store, failing_write, mode, 0
        self.crashed = False
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return FaultyStore, (self.store, self.failing_write, self.mode)

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def coalesce_gap(self) -> int:
        return self.store.coalesce_gap

    def path(self, key: str) -> str | None:
        return self.store.path(key)

    def read(self, key: str) -> bytes:
        return self.store.read(key)

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        return self.store.read_ranges(key, ranges)

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        return self.store.list(prefix)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        due = self._due(key)
        self.store.create(key, data, overwrite)
        self._answer(due, key)

    def delete(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            due = self._due(key)
            self.store.delete([key])
            self._answer(due, key)

    def _due(self, key: str) -> bool:
        with self._lock:
            if self.crashed:
                raise Crash(f"{key} is not written: this process crashed before")
            self.write_count += 1
            due = self.write_count == self.failing_write
            self.crashed = due and self.mode != "lost"
        if due and self.mode == "before":
            raise Crash(f"crashed before writing {key}")
        return due

    def _answer(self, due: bool, key: str) -> None:
        if due and self.mode == "after":
            raise Crash(f"crashed after writing {key}")
        if due:
            raise StorageError(f"{self.url}/{key}: no answer came; it may have been written")


class StoreTests:
    """Tests of what every store must do. Inherit them, and override ``store`` by one that gives an empty store."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("override this fixture with one that gives an empty store")

    def test_what_was_created_is_read(self, store: Store) -> None:
        store.create("a/b/c.txt", b"hello")

        assert store.read("a/b/c.txt") == b"hello"

    def test_an_empty_object_is_an_object(self, store: Store) -> None:
        store.create("a/empty", b"")

        assert store.read("a/empty") == b""
        assert store.read_ranges("a/empty", [(0, 0)]) == [b""]

    def test_creating_equal_bytes_again_succeeds(self, store: Store) -> None:
        store.create("a", b"same")
        store.create("a", b"same")

        assert store.read("a") == b"same"

    def test_creating_other_bytes_is_refused_and_changes_nothing(self, store: Store) -> None:
        store.create("a/b", b"first")

        with pytest.raises(AlreadyExists, match="a/b"):
            store.create("a/b", b"second")

        assert store.read("a/b") == b"first"

    def test_overwriting_replaces(self, store: Store) -> None:
        store.create("hint", b"1", overwrite=True)
        store.create("hint", b"22", overwrite=True)

        assert store.read("hint") == b"22"

    def test_of_many_writers_of_one_key_one_wins(self, store: Store) -> None:
        start = threading.Barrier(8)

        def write(writer: int) -> int | None:
            start.wait()
            try:
                store.create("contended", str(writer).encode())
            except AlreadyExists:
                return None
            return writer

        with ThreadPoolExecutor(8) as pool:
            winners = [writer for writer in pool.map(write, range(8)) if writer is not None]

        assert [store.read("contended").decode()] == [str(winner) for winner in winners]

    def test_of_many_writers_of_equal_bytes_all_win(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: store.create("agreed", b"x" * 100_000), range(16)))

        assert store.read("agreed") == b"x" * 100_000

    def test_a_large_object_is_kept_whole(self, store: Store) -> None:
        data = bytes(range(256)) * (40 << 10)
        store.create("large", data)

        assert store.read("large") == data
        with pytest.raises(AlreadyExists):
            store.create("large", data[:-1])

    def test_a_missing_key_is_named_with_its_url(self, store: Store) -> None:
        with pytest.raises(NotFound) as raised:
            store.read("no/such")

        assert f"{store.url}/no/such" in str(raised.value)
        with pytest.raises(KeyError):
            store.read_ranges("no/such", [(0, 1)])

    def test_a_folder_is_no_object(self, store: Store) -> None:
        store.create("a/b", b"1")

        with pytest.raises(NotFound):
            store.read("a")

    def test_ranges_are_read_in_the_order_asked_for(self, store: Store) -> None:
        data = bytes(range(200)) * 10_000
        store.create("r", data)
        ranges = [(1_500_000, 7), (3, 5), (0, 0), (4, 10), (3, 5), (1_999_999, 1), (20, 400_000)]

        assert store.read_ranges("r", ranges) == [data[offset : offset + length] for offset, length in ranges]
        assert store.read_ranges("r", []) == []

    @pytest.mark.parametrize("beyond", [(3, 3), (5, 1), (9, 2), (0, 6)])
    def test_a_range_past_the_end_is_corrupt(self, store: Store, beyond: ByteRange) -> None:
        store.create("short", b"12345")

        with pytest.raises(Corrupt, match="short"):
            store.read_ranges("short", [(0, 1), beyond])

    def test_listing_finds_all_below_a_prefix_of_whole_parts(self, store: Store) -> None:
        for key in ("a/1", "a/b/2", "ab/3", "c"):
            store.create(key, key.encode())

        assert {listed.key: listed.size for listed in store.list()} == {"a/1": 3, "a/b/2": 5, "ab/3": 4, "c": 1}
        assert {listed.key for listed in store.list("a")} == {"a/1", "a/b/2"}
        assert {listed.key for listed in store.list("a/b/")} == {"a/b/2"}
        assert list(store.list("nothing")) == []

    def test_listing_tells_when_an_object_was_modified_in_utc(self, store: Store) -> None:
        store.create("now", b"1")

        (listed,) = store.list()

        assert listed.modified.utcoffset() == timedelta(0)
        assert abs(datetime.now(UTC) - listed.modified) < timedelta(minutes=5)

    def test_listing_pages_through_many(self, store: Store) -> None:
        keys = {f"many/{number:05}" for number in range(1_100)}
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda key: store.create(key, b""), keys))

        assert {listed.key for listed in store.list("many")} == keys

    def test_what_follows_a_key_in_its_folder_is_listed(self, store: Store) -> None:
        for key in ("a/1", "a/2", "a/3", "a/9/1", "a/_x", "ab/4", "b"):
            store.create(key, b"")

        assert sorted(list_keys_after(store, "a/1")) == ["a/2", "a/3", "a/_x"]
        assert sorted(list_keys_after(store, "a/10")) == ["a/2", "a/3", "a/_x"]
        assert list_keys_after(store, "a/_x") == list_keys_after(store, "nothing/1") == []

    def test_deleting_removes_and_forgives_what_is_missing(self, store: Store) -> None:
        store.create("a/1", b"1")
        store.create("a/2", b"2")

        store.delete(["a/1", "never/was"])

        assert [listed.key for listed in store.list()] == ["a/2"]
        store.delete([])

    def test_a_deleted_key_can_be_created_anew(self, store: Store) -> None:
        store.create("a", b"1")
        store.delete(["a"])
        store.create("a", b"2")

        assert store.read("a") == b"2"

    @pytest.mark.parametrize("key", ["", "/etc/passwd", "../up", "a/../../up", "a//b", "a/", "_tmp/x", "."])
    def test_a_key_that_could_lead_elsewhere_is_refused(self, store: Store, key: str) -> None:
        with pytest.raises(StorageError, match="is no key"):
            store.create(key, b"")
        with pytest.raises(StorageError, match="is no key"):
            store.read(key)

    @pytest.mark.parametrize("key", ["with space", "ünïcode/日本", "a=b/c%20d", "plus+and&", "#x?y"])
    def test_any_other_letters_make_a_key(self, store: Store, key: str) -> None:
        store.create(key, key.encode())

        assert store.read(key) == key.encode()
        assert [listed.key for listed in store.list()] == [key]

    def test_a_pickled_store_reads_the_same(self, store: Store) -> None:
        store.create("a", b"1")

        assert pickle.loads(pickle.dumps(store)).read("a") == b"1"

    def test_a_store_that_breaks_says_so_once(self, store: Store) -> None:
        faulty = FaultyStore(store, 2, "lost")
        faulty.create("a", b"1")
        with pytest.raises(StorageError, match="no answer"):
            faulty.create("b", b"2")
        faulty.create("b", b"2")

        assert store.read("b") == b"2"
