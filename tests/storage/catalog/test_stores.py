"""A warehouse on a disk and in a bucket, changed by several processes at once."""

import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

import fuse_storage as storage
from fuse_storage import Store, StoredTable, Warehouse
from tests.storage.catalog.world import STEPS, Step, copy_of, small_warehouse, unnamed_folders, view
from tests.storage.small import COLUMNS

WORKER = """
import sys
import fuse_storage as storage
from tests.storage.catalog.world import make_table, rename
from fuse_storage import AlreadyExists, CreateNamespace, Warehouse

url, number = sys.argv[1:]
warehouse = Warehouse.open(storage.open_store(url), create=True)
try:
    warehouse.commit(lambda _: [CreateNamespace(("shared",))])
except AlreadyExists:
    pass
for turn in range(3):
    make_table(warehouse, f"t{number}_{turn}")
    rename(warehouse, f"t{number}_{turn}", f"shared.t{number}_{turn}")
try:
    make_table(warehouse, "contended")
    print("won")
except AlreadyExists:
    print("told")
"""


def test_processes_on_one_disk_lose_nothing(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    said = sorted(worker.communicate(timeout=120)[0].strip() for worker in workers)

    assert said == ["told", "told", "told", "won"]
    store = storage.open_store(tmp_path)
    names = sorted(".".join(name) for name in view(store)["tables"])
    assert names == sorted(["contended", *(f"shared.t{number}_{turn}" for number in range(4) for turn in range(3))])
    assert unnamed_folders(store) == set()


@pytest.fixture(scope="module")
def in_memory() -> dict[str, dict[str, object]]:
    """What each step leads to in memory."""
    views = {}
    for step in STEPS:
        warehouse = small_warehouse(storage.open_store(f"memory://{uuid.uuid4().hex}"))
        step.do(warehouse)
        views[step.name] = view(warehouse.store)
    return views


@pytest.fixture(scope="module")
def small() -> Store:
    """A warehouse that is copied, and not changed."""
    return small_warehouse(storage.open_store(f"memory://{uuid.uuid4().hex}")).store


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_all_that_is_done_is_alike_on_a_disk(
    step: Step, in_memory: dict[str, object], small: Store, tmp_path: Path
) -> None:
    warehouse = Warehouse.open(copy_of(small, str(tmp_path)))

    step.do(warehouse)

    assert view(warehouse.store) == in_memory[step.name]


def test_what_is_made_is_alike_on_a_disk_and_in_a_bucket(small: Store, s3: dict[str, str], tmp_path: Path) -> None:
    for store in (storage.open_store(tmp_path), storage.open_store(f"s3://tables/{uuid.uuid4().hex}", s3)):
        assert view(small_warehouse(store).store) == view(small)


def test_all_that_is_done_is_alike_in_a_bucket(in_memory: dict[str, object], small: Store, s3: dict[str, str]) -> None:
    for step in STEPS:
        warehouse = Warehouse.open(copy_of(small, f"s3://tables/{uuid.uuid4().hex}", s3))
        if step.name == "purge what was dropped":
            time.sleep(1.1)  # a bucket tells whole seconds, and what was dropped within this one is not older

        step.do(warehouse)

        assert view(warehouse.store) == in_memory[step.name], step.name


def test_a_purge_leaves_no_empty_folders(tmp_path: Path) -> None:
    warehouse = small_warehouse(storage.open_store(tmp_path))
    storage.purge_dropped(warehouse, timedelta(0))

    left = {path.name for path in tmp_path.iterdir() if path.is_dir()} - {"_catalog", "_tmp"}
    assert left == {table.location for table in warehouse.state().tables.values()}


def test_a_table_in_a_bucket_is_read_with_the_warehouse_s_options(s3: dict[str, str]) -> None:
    place = f"s3://tables/{uuid.uuid4().hex}"
    StoredTable.create(storage.open_store(f"{place}-table", s3), COLUMNS)
    warehouse = Warehouse.open(storage.open_store(place, s3), create=True)

    found = storage.open_table_store(warehouse.store, storage.location_of(warehouse.store, f"{place}-table"))

    assert StoredTable.open(found).snapshot.sequence == 1
