"""A session that dies at any write of any operation leaves a warehouse as it was before, or as it is after."""

import uuid
from contextlib import suppress
from datetime import timedelta

import pytest

import fuse_storage as storage
from fuse_storage import StorageError, Store, Warehouse
from fuse_storage.testing import Crash, FaultMode, FaultyStore
from tests.storage.catalog.world import (
    STEPS,
    Step,
    copy_of,
    small_warehouse,
    tables_in_one_process,
    unnamed_folders,
    view,
)
from tests.storage.small import Aged


@pytest.fixture(scope="module")
def small() -> Store:
    """A warehouse that is copied, and not changed."""
    return small_warehouse(storage.open_store(f"memory://{uuid.uuid4().hex}")).store


def attempt(store: Aged, step: Step, failing_write: int, mode: FaultMode) -> tuple[FaultyStore, bool]:
    """Do a step while a write fails, and say whether it was done."""
    storage.process_cache.clear()
    faulty = FaultyStore(store, failing_write, mode)
    with suppress(Crash, StorageError), tables_in_one_process(faulty):
        step.do(Warehouse.open(faulty))
        return faulty, True
    return faulty, False


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_all_or_nothing(small: Store, url: str, step: Step, mode: FaultMode) -> None:
    before = after = None
    failing_write = writes = 0
    while failing_write <= writes:
        store = Aged(copy_of(small, f"{url}-{failing_write}"))
        before = view(store)
        faulty, done = attempt(store, step, failing_write, mode)
        seen = view(store)

        if not failing_write:  # nothing failed
            writes, after = faulty.write_count, seen
            assert before != after
        elif done:
            assert seen == after, failing_write
        else:
            assert seen in (before, after), failing_write
        clean_up_and_check(store, seen)
        failing_write += 1
    assert writes > 1


def clean_up_and_check(store: Aged, seen: dict[str, object]) -> None:
    """Long after, a purge removes what nobody refers to, and nothing else."""
    store.age()
    storage.purge_dropped(Warehouse.open(store), timedelta(days=30))

    assert unnamed_folders(store) == set()
    assert [found.key for folder in ("staged", "clock") for found in store.list(f"_catalog/{folder}")] == []
    assert Warehouse.open(store).state().purging == {}
    assert view(store) == seen


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_what_died_can_be_done_again(small: Store, url: str, step: Step) -> None:
    store = Aged(copy_of(small, f"{url}-model"))
    step.do(Warehouse.open(store))
    after, failing_write = view(store), 0

    while True:
        failing_write += 1
        store = Aged(copy_of(small, f"{url}-{failing_write}"))
        before = view(store)
        faulty, done = attempt(store, step, failing_write, "before")
        if done and faulty.write_count < failing_write:
            break
        if view(store) == before:
            step.do(Warehouse.open(store))

        assert view(store) == after, failing_write
