"""Hot blocks that are as tiering would write them become blocks where they lie, and stay whatever goes around them."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_storage import meter_requests, open_store, process_cache, vacuum_table
from fuse_storage.testing import check_invariants
from tests.storage.small import Aged


def rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": ids, "name": [f"name {n}" for n in ids]})


def make(url: Any, cluster_by: tuple[str, ...] = ()) -> fuse.Table:
    limits = {"block_rows": 50, "zone_rows": 20, "hot_rows": 50}
    table = fuse.create_table(url, "id BIGINT, name STRING", cluster_by, limits)
    table.create_index("by_name", "bloom", ["name"])
    return table


def ids(table: fuse.Table, where: str | None = None) -> list[int]:
    return sorted(table.to_arrow(where).column("id").to_pylist())


def files(table: fuse.Table) -> dict[str, int]:
    """The rows of each block by the folder and name of its file."""
    found = dict(zip(table.stored.blocks().locations, table.stored.blocks().row_counts.tolist(), strict=True))
    assert len(found) == len(table.stored.blocks()), "two blocks are one file"
    return found


def test_blocks_that_compaction_leaves_alone_are_indexed_where_they_lie() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    table = make(store)
    for start, count in ((0, 10), (10, 30), (40, 50), (90, 10)):
        table.append(rows(start, count))
    hot = files(table)
    store.reset()
    table.maintenance.tier()

    assert sum(key.startswith("_b/") for _, key, _ in store.writes) == 1  # of the small ones
    after = files(table)
    assert {key: count for key, count in after.items() if key.startswith("_h/")} == {
        key: count for key, count in hot.items() if count in (30, 50)
    }
    assert sorted(after.values()) == [20, 30, 50]
    assert ids(table) == list(range(100))
    assert table.explain("name = 'name 60'").to_dict()["blocks"]["kept"] == 1
    assert table.changes(table.stored.at_version(table.version - 1).snapshot.id).to_arrow().num_rows == 0
    check_invariants(table.stored)


def test_of_two_blocks_of_the_same_rows_each_stays_a_block() -> None:
    table = make(f"memory://{uuid.uuid4().hex}")
    for _ in range(2):
        table.append(rows(0, 50))
    hot = files(table)
    table.maintenance.tier()

    assert files(table) == hot
    assert ids(table) == sorted([*range(50), *range(50)])


@pytest.mark.parametrize("is_sorted", [True, False])
def test_where_rows_have_an_order_those_that_came_in_it_stay(is_sorted: bool) -> None:
    table = make(f"memory://{uuid.uuid4().hex}", ("id",))
    for start in (0, 50):
        table.append(rows(start, 50) if is_sorted else rows(start, 50).take(list(range(49, -1, -1))))
    hot = files(table)
    table.maintenance.tier()

    assert (files(table) == hot) == is_sorted
    assert all(key.startswith("_h/" if is_sorted else "_b/") for key in files(table))
    assert ids(table, "name = 'name 7'") == [7]


def test_rows_that_were_written_for_other_columns_are_written_anew() -> None:
    table = make(f"memory://{uuid.uuid4().hex}")
    table.append(rows(0, 50))
    table.add_column("more", "int", default=5)
    table.maintenance.tier()

    assert all(key.startswith("_b/") for key in files(table))
    assert table.aggregate([], ["sum(more)"]).to_pylist() == [{"sum(more)": 250}]


def test_what_stays_where_it_lies_outlives_vacuums_and_is_cloned_and_recovered(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for start in (0, 50):
        table.append(rows(start, 50))
    for start in (100, 102):
        table.append(rows(start, 2))
    table.maintenance.tier()
    kept = {key for key in files(table) if key.startswith("_h/")}
    store = Aged(open_store(str(tmp_path / "t")))
    store.age()
    vacuum_table(store, timedelta(0), force=True, hot_retention=timedelta(0))
    process_cache.clear()

    assert {f"_h/{path.name}" for path in (tmp_path / "t" / "_h").iterdir()} == kept
    assert len(kept) == 2
    assert ids(fuse.open_table(tmp_path / "t")) == list(range(104))
    assert fuse.recover_table(tmp_path / "t", dry_run=True).stray_hot_blocks == 0
    fuse.open_table(tmp_path / "t").clone(str(tmp_path / "c"))
    copied = fuse.open_table(tmp_path / "c")
    assert ids(copied) == list(range(104))
    check_invariants(copied.stored)
    table.refresh().delete("id = 60")
    assert (ids(table), len(kept & files(table).keys())) == ([n for n in range(104) if n != 60], 1)


def test_tiering_reads_no_list_of_the_base_s_blocks_and_writes_one_of_its_own(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = make(url, ("id",))
    for start in (0, 1000, 2000):
        table.append(rows(start, 60))
    for start in (3000, 3010, 3020):
        table.append(rows(start, 10), hot=True)
    process_cache.clear()
    store = meter_requests(open_store(url))
    found = fuse.open_table(store)
    store.reset()

    found.maintenance.tier()

    assert [key for _, key, _ in store.reads if key.startswith("_sg/")] == []
    assert len([key for _, key, _ in store.writes if key.startswith("_sg/")]) == 2, "blocks, and zones"
    process_cache.clear()
    check_invariants(fuse.open_table(url).stored)
    assert len(ids(fuse.open_table(url))) == 210
    assert ids(fuse.open_table(url), "name = 'name 3021'") == [3021]
