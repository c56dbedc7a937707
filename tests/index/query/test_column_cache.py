"""Decoded columns that are kept in memory spare requests, never change an answer, and stay within their room."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_storage import Corrupt, InvalidArgument, MeteredStore, StoredTable, open_store
from fuse_storage.store.cache import column_cache

ROWS = pa.table(
    {
        "id": range(2_000),
        "k": [n * 7919 % 2_000 for n in range(2_000)],
        "word": [None if n % 11 == 0 else f"w{n}" for n in range(2_000)],
        "place": [{"x": n, "name": str(n)} for n in range(2_000)],
        "tags": [[n] * (n % 3) for n in range(2_000)],
    }
)
CONDITIONS = [None, "k < 90", "k > 90", "id BETWEEN 95 AND 330", "word LIKE 'w1%9' OR k = 7", "place.x = 44", "k < 0"]


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    fuse.cache_columns(64 << 20)
    yield
    fuse.cache_columns(0)


@pytest.fixture
def store() -> MeteredStore:
    return MeteredStore(open_store(f"memory://column-cache-{uuid4().hex}"))


@pytest.fixture
def table(store: MeteredStore) -> fuse.Table:
    made = fuse.create_table(store, ROWS.schema, properties={"block_rows": 100, "zone_rows": 40, "page_rows": 8})
    made.append(ROWS)
    return made


def block_reads(store: MeteredStore) -> int:
    return sum(key.startswith("_b/") for _, key, _ in store.reads)


def answers(table: fuse.Table) -> list[Any]:
    return [table.scan(where, columns=["tags", "word", "id", "place"]).to_arrow().to_pylist() for where in CONDITIONS]


def test_what_was_read_once_is_read_from_memory_with_the_same_rows(table: fuse.Table, store: MeteredStore) -> None:
    fuse.cache_columns(0)
    expected = answers(table)
    fuse.cache_columns(64 << 20)
    assert answers(table) == expected
    table.scan().to_arrow()
    store.reset()

    assert answers(table) == expected
    assert table.count("k > 90") == 1_909
    assert block_reads(store) == 0


def test_without_room_nothing_is_kept(table: fuse.Table, store: MeteredStore) -> None:
    fuse.cache_columns(0)
    table.scan().to_arrow()
    store.reset()

    table.scan().to_arrow()

    assert block_reads(store) > 0
    assert column_cache.total_bytes == 0


def test_other_columns_are_read_besides_those_that_are_kept(table: fuse.Table, store: MeteredStore) -> None:
    table.scan(columns=["id"]).to_arrow()
    store.reset()
    assert table.scan(columns=["word", "id"]).to_arrow() == ROWS.select(["word", "id"])
    both = store.bytes_read
    store.reset()
    assert table.scan(columns=["k"]).to_arrow() == ROWS.select(["k"])
    assert 0 < store.bytes_read < 2 * both
    assert column_cache.total_bytes >= ROWS.select(["id", "k", "word"]).nbytes


def test_the_room_is_a_bound_and_less_of_it_forgets(table: fuse.Table) -> None:
    fuse.cache_columns(9_000)
    for _ in range(2):
        assert table.scan(columns=["id", "word"]).to_arrow() == ROWS.select(["id", "word"])
        assert 0 < column_cache.total_bytes <= 9_000
    fuse.cache_columns(1_000)
    assert column_cache.total_bytes <= 1_000


def test_a_column_that_changed_since_is_what_it_is_now(table: fuse.Table) -> None:
    table.scan().to_arrow()
    table.rename_column("k", "n")
    table.rename_column("word", "k")
    table.drop_column("id")
    table.add_column("id", "INT", default=7)

    rows = table.scan("n < 3", columns=["id", "k", "n"]).to_arrow().to_pylist()

    assert sorted(row["n"] for row in rows) == [0, 1, 2]
    assert [row["id"] for row in rows] == [7, 7, 7]
    assert {row["k"] for row in rows} == {ROWS["word"][ROWS["k"].to_pylist().index(n)].as_py() for n in range(3)}


def test_a_block_that_is_damaged_later_is_read_from_memory_alone(table: fuse.Table, store: MeteredStore) -> None:
    table.scan().to_arrow()
    key = table.stored.blocks().file(0).key
    store.store.create(key, bytes(len(store.read(key))), overwrite=True)

    assert table.scan().to_arrow() == ROWS
    fuse.cache_columns(0)
    with pytest.raises(Corrupt):
        StoredTable.open(store).read_block(table.stored.blocks(), 0, ["id"])


@pytest.mark.parametrize("given", [-1, 1.5, "1 GB", None, True])
def test_room_that_is_no_number_of_bytes_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="whole number of bytes"):
        fuse.cache_columns(given)
    assert column_cache.max_bytes == 64 << 20
