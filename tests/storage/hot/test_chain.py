"""The chain of a snapshot by itself: every order of the requests of whoever writes, reads, helps and dies.

Actors run as threads on a store that lets one request pass at a time and chooses whose: so a run is a random, and
repeatable, interleaving of requests. Killed actors stop at a request, before or after it is done.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from fuse_storage import Conflict, StorageError, StoredTable, open_store
from fuse_storage.commit import draft
from fuse_storage.commit import head as commit_head
from fuse_storage.hot import chain as hot_chain
from fuse_storage.hot_commit.append import append_hot
from fuse_storage.hot_commit.snapshot_of import KeepState
from fuse_storage.store.cache import Cache
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, ids_of, rows, staged


class Killed(BaseException):
    """The end of a process: no handler of errors may catch it."""


class Turns:
    """Lets one thread at a time go on, from one of its requests to the next; ``chance`` chooses which."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.waiting, self.running = chance, dict[int, threading.Event](), set[int]()
        self.lock = threading.Condition()

    def run(self, actors: Iterable[Callable[[], None]]) -> None:
        threads = [threading.Thread(target=self._run_one, args=(number, actor)) for number, actor in enumerate(actors)]
        self.running = set(range(len(threads)))
        for thread in threads:
            thread.start()
        while True:
            with self.lock:
                self.lock.wait_for(lambda: len(self.waiting) == len(self.running), timeout=60)
                assert len(self.waiting) == len(self.running), "an actor does not come to its next request"
                if not self.running:
                    return
                chosen = self.chance.choice(sorted(self.waiting))
                event = self.waiting.pop(chosen)
            event.set()
            with self.lock:  # until it waits again, or is done
                self.lock.wait_for(lambda chosen=chosen: chosen in self.waiting or chosen not in self.running, 60)

    def _run_one(self, number: int, actor: Callable[[], None]) -> None:
        _ACTOR.number = number
        try:
            self.request()
            actor()
        except Killed:
            pass
        finally:
            with self.lock:
                self.running.discard(number)
                self.lock.notify_all()

    def request(self) -> None:
        """Wait for this actor's next turn. Work that an actor gives to threads of its own takes no turn."""
        number = getattr(_ACTOR, "number", None)
        if number is None:
            return
        event = threading.Event()
        with self.lock:
            self.waiting[number] = event
            self.lock.notify_all()
        event.wait()


_ACTOR = threading.local()


class Scheduled:
    """A store whose requests take turns. ``kill_at``: at which write its actor dies, and whether that is done."""

    def __init__(self, store: Any, turns: Turns, kill_at: tuple[int, bool] | None = None) -> None:
        self.store, self.turns, self.kill_at, self.writes, self.cache = store, turns, kill_at, 0, Cache()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def read(self, key: str) -> bytes:
        self.turns.request()
        return self.store.read(key)

    def list(self, prefix: str = "") -> Iterator[Any]:
        self.turns.request()
        return self.store.list(prefix)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        if not key.startswith("_refs"):
            return self.store.create(key, data, overwrite)  # who is first with these does not matter
        self.writes += 1
        due = self.kill_at is not None and self.writes == self.kill_at[0]
        if due and not self.kill_at[1]:
            raise Killed
        self.turns.request()
        self.store.create(key, data, overwrite)
        if due:
            raise Killed
        return None


class World:
    """One table, whatever was acknowledged of it, and what readers saw."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.turns, self.store = Turns(self.chance), open_store(f"memory://{uuid.uuid4().hex}")
        table = StoredTable.create(self.store, COLUMNS)
        append_hot(table, rows([0]))
        self.acknowledged, self.attempted, self.seen = {0}, {0}, list[tuple[int, frozenset[int]]]()
        self.problems = list[BaseException]()

    def run(self) -> None:
        makers = [self.hot_writer, self.hot_writer, self.snapshot_writer, self.keeper, self.reader, self.reader]
        actors = [
            self.guarded(self.chance.choice(makers) if number > 3 else makers[number], number) for number in range(6)
        ]
        self.turns.run(actors)
        if self.problems:
            raise self.problems[0]
        self.check()

    def guarded(self, make: Callable[[Any, int], None], number: int) -> Callable[[], None]:
        kill_at = (self.chance.randint(1, 6), self.chance.random() < 0.5) if self.chance.random() < 0.5 else None
        store = Scheduled(self.store, self.turns, kill_at)

        def run() -> None:
            try:
                make(store, number)
            except (Killed, Conflict):
                return
            except BaseException as problem:
                self.problems.append(problem)

        return run

    def hot_writer(self, store: Any, number: int) -> None:
        table = StoredTable.open(store)
        for step in range(3):
            made = 1000 * (number + 1) + step
            self.attempted.add(made)
            table = append_hot(table, rows([made]), application=(f"writer-{number}", step))
            self.acknowledged.add(made)

    def snapshot_writer(self, store: Any, number: int) -> None:
        table = StoredTable.open(store)
        for step in range(2):
            made = 1000 * (number + 1) + step
            self.attempted.add(made)
            table = table.transaction().append(staged(table, [made])).commit("append")
            self.acknowledged.add(made)

    def keeper(self, store: Any, number: int) -> None:
        for _ in range(2):
            StoredTable.open(store).transaction().stage(KeepState()).commit("snapshot")

    def reader(self, store: Any, number: int) -> None:
        table = StoredTable.open(store)
        for _ in range(4):
            promised = frozenset(self.acknowledged)
            table = table.refresh() if self.chance.random() < 0.5 else StoredTable.open(store)
            found = ids_of(table)
            assert len(found) == len(set(found)), "a row is there twice"
            assert promised <= set(found), "an acknowledged row is not seen"
            assert not self.seen or table.snapshot.version >= max(version for version, _ in self.seen), "seen backwards"
            self.seen.append((table.snapshot.version, frozenset(found)))

    def check(self) -> None:
        head = StoredTable.open(self.store)
        found = ids_of(head)
        assert len(found) == len(set(found))
        assert self.acknowledged <= set(found) <= self.attempted
        for version, before in self.seen:
            assert frozenset(ids_of(StoredTable.open(self.store, version=version))) == before
        versions = [entry.version for entry in head.history()]
        assert versions == list(range(len(versions), 0, -1))
        check_invariants(head)


@pytest.mark.alike
@pytest.mark.parametrize("seed", range(24))
def test_in_any_order_of_requests_nothing_is_lost_doubled_or_seen_backwards(seed: int) -> None:
    World(seed).run()


def _unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot does not end the chain: its entry is made in the branch alone."""
    plain = commit_head.create_ref
    for module in ("fuse_storage.commit.transaction", "fuse_storage.commit.head"):
        monkeypatch.setattr(
            f"{module}.create_ref", lambda branch, entry, deadline, after=None: plain(branch, entry, deadline)
        )


def _without_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead writer ended a chain with is read, and nobody puts it into the branch."""
    monkeypatch.setattr(hot_chain, "publish", lambda branch, entry: True)


def _branch_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is made in the branch first, and in the chain afterwards."""

    def create_ref(branch: Any, entry: Any, deadline: float, after: Any = None) -> bool:
        done = commit_head.create_entry(branch, entry, deadline, "table")
        if done and after is not None and after[1].has_chain:
            chain = hot_chain.HotChain(branch, after[0], after[1].stored)
            with suppress(StorageError):
                chain.create(after[1].chain_length + 1, entry.encode())
        return done

    monkeypatch.setattr("fuse_storage.commit.transaction.create_ref", create_ref)


def _seen_unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state without an entry of its own in the branch is read by one, and not by the next."""
    chance = random.Random(1)
    real = hot_chain.publish
    monkeypatch.setattr(hot_chain, "publish", lambda branch, entry: chance.random() < 0.5 or real(branch, entry))


def _overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who loses the race tries the next number, without reading what is there."""
    plain = hot_chain.HotChain.create

    def create(self: hot_chain.HotChain, number: int, data: bytes) -> None:
        try:
            plain(self, number, data)
        except StorageError:
            plain(self, number + 1, data)

    monkeypatch.setattr(hot_chain.HotChain, "create", create)


def _tail_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot carries along what the one before did, and not what hot commits added since."""
    real = draft.read_tail
    monkeypatch.setattr(draft, "read_tail", lambda store, state, cache=None: real(store, state.stored, cache))


@pytest.mark.parametrize(
    "breaking", [_unfenced, _without_helpers, _branch_first, _overtaken, _seen_unpublished, _tail_dropped]
)
def test_a_chain_that_is_broken_is_found_out(breaking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuse_storage.hot_commit.append.COMMIT_TIMEOUT_SECONDS", 2.0)
    breaking(monkeypatch)

    with pytest.raises(BaseException):  # noqa: B017 - however it comes out
        _run_worlds(200)


def _run_worlds(count: int) -> None:
    for seed in range(count):
        World(seed).run()
