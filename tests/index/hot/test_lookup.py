"""What a lookup by key reads: the tail's keys, and of the base what votes leave over."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuse_index as fuse
from fuse_storage import MeteredStore, meter_requests, open_store, process_cache


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Four blocks of 500 rows in base, and a tail of five keys that lie in each of them, one of them deleted."""
    place = str(tmp_path / "table")
    properties = {"block_rows": 500, "zone_rows": 100, "tiering": "job"}
    table = fuse.create_table(place, "id BIGINT, name STRING", primary_key=["id"], properties=properties)
    table.upsert([{"id": 2 * number, "name": f"old {number}"} for number in range(2000)])
    table.maintenance.tier()
    table.upsert([{"id": number, "name": "new"} for number in (10, 1010, 2010, 9000)])
    table.delete_keys([3010])
    return place


def _cold(url: str) -> tuple[fuse.Table, MeteredStore]:
    process_cache.clear()
    store = meter_requests(open_store(url))
    return fuse.open_table(store), store


def _base_blocks_read(store: MeteredStore) -> int:
    return len({key for _, key, _ in store.reads if key.startswith("_b/")})


def test_a_key_of_the_tail_opens_no_block_of_the_base(url: str) -> None:
    table, store = _cold(url)

    assert table.lookup([1010, 3010, 9000]).to_pylist() == [{"id": 1010, "name": "new"}, {"id": 9000, "name": "new"}]
    assert _base_blocks_read(store) == 0


def test_a_key_of_the_base_opens_its_block_and_compares_no_other_key(url: str) -> None:
    table, store = _cold(url)

    assert table.lookup([12]).to_pylist() == [{"id": 12, "name": "old 6"}]
    assert _base_blocks_read(store) == 1


def test_a_key_that_nobody_has_opens_no_block_that_votes_rule_out(url: str) -> None:
    table, store = _cold(url)

    assert table.lookup([-1, 5000]).num_rows == 0
    assert _base_blocks_read(store) == 0


@pytest.mark.parametrize(("order", "asks"), [("sorted", False), ("shuffled", True)])
def test_indexes_are_asked_where_statistics_leave_many_zones(tmp_path: Path, order: str, asks: bool) -> None:
    place = str(tmp_path / "table")
    table = fuse.create_table(place, "id BIGINT", primary_key=["id"], properties={"block_rows": 1000, "tiering": "job"})
    table.create_index("by_id", "bloom", ["id"])
    for batch in range(6):  # each of which lies between the same bounds if they are shuffled
        numbers = range(batch * 1000, (batch + 1) * 1000) if order == "sorted" else range(batch, 6000, 6)
        table.upsert([{"id": number} for number in numbers])
        table.maintenance.tier()
    table, store = _cold(place)

    assert table.lookup([1501]).to_pylist() == [{"id": 1501}]
    assert _base_blocks_read(store) == 1
    assert any(key.startswith("_i/") for _, key, _ in store.reads) == asks


def test_keys_come_in_their_order_as_often_as_they_are_asked_for(url: str) -> None:
    found = fuse.open_table(url).lookup([14, 10, 3010, 14, 7, 10], ["name"])

    assert found.column("name").to_pylist() == ["old 7", "new", "old 7", "new"]
