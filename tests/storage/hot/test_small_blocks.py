"""Small hot blocks are read whole: the same rows by fewer requests, and not a byte of them unchecked."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_storage as storage
from fuse_storage import Corrupt, StoredTable, append_hot, meter_requests, open_store
from fuse_storage.hot.small_blocks import BlockRequest
from fuse_storage.parquet.reader import read_block
from tests.storage.small import COLUMNS, rows

WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("place", pa.struct([("city", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("data", pa.binary()),
    ]
)


def make(schema: pa.Schema = COLUMNS, **properties: Any) -> StoredTable:
    return StoredTable.create(f"memory://{uuid.uuid4().hex}", schema, properties=properties)


def request_of(table: StoredTable, block: int = 0) -> BlockRequest:
    return BlockRequest(table.store, table.blocks().file(block))


@pytest.mark.parametrize("zone_rows", [3, 100])
def test_rows_are_those_that_any_reader_of_blocks_finds(zone_rows: int) -> None:
    wide = pa.Table.from_pylist(
        [
            {
                "id": number,
                "day": None if number % 3 else number,
                "place": None
                if number == 4
                else {"city": None if number % 2 else "Bonn", "tags": ["a", None] * number},
                "counts": [("x", number)] if number % 5 else None,
                "data": bytes(number),
            }
            for number in range(10)
        ],
        WIDE,
    )
    table = append_hot(make(WIDE, zone_rows=zone_rows), wide)
    request, schema = request_of(table), table.snapshot.schema
    mask = np.array([True, False, True, False, True, True])

    assert request.is_small
    for columns in (["id"], ["place", "data"], schema.names, []):
        for zones in (None, [1, 0] if zone_rows == 3 else [0]):
            count = sum(
                request.block.zone_rows[zone]
                for zone in (range(len(request.block.zone_rows)) if zones is None else zones)
            )
            for chosen in (None, np.resize(mask, count), np.ones(count, np.bool_), np.zeros(count, np.bool_)):
                found = table.read_block(table.blocks(), 0, columns, zones, chosen)
                expected = read_block(table.store, request.block, schema, columns, zones, row_mask=chosen)

                assert found.num_rows == expected.num_rows
                assert found.schema == expected.schema
                assert found.to_pylist() == expected.to_pylist()


def test_each_file_is_read_once_and_in_one_request() -> None:
    head = make()
    for number in range(20):
        head = append_hot(head, rows([number, 100 + number]))
    storage.process_cache.clear()
    store = meter_requests(open_store(head.store.url))
    table = StoredTable.open(store)
    blocks = table.blocks()
    everything = [(block, None, None) for block in range(len(blocks))]
    store.reset()

    first = table.read_blocks(blocks, ["id"], everything)
    again = table.read_blocks(blocks, ["id"], everything)

    assert pa.concat_tables(first).column("id").to_pylist() == [n for each in range(20) for n in (each, 100 + each)]
    assert again == first
    assert sorted(key for _, key, _ in store.reads) == sorted(f"_h/{block_id}.parquet" for block_id in blocks.ids)


def test_large_hot_blocks_and_those_of_segments_are_read_by_their_footers() -> None:
    table = append_hot(make(), rows(range(70_000)))
    small = storage.append_hot(table, rows([1]))

    assert not request_of(table).is_small
    assert request_of(small, 1).is_small
    assert table.read_block(table.blocks(), 0, ["id"]).column("id").to_pylist() == list(range(70_000))


def test_no_byte_of_a_file_goes_unchecked() -> None:
    table = append_hot(make(), rows([1, 2, 3]))
    key = table.blocks().locations[0]
    whole = table.store.read(key)

    for place in range(4, len(whole)):  # nobody reads Parquet's magic
        storage.process_cache.clear()
        table.store.create(key, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], overwrite=True)

        with pytest.raises(Corrupt, match=f"{key}: "):
            table.read_block(table.blocks(), 0, ["id"])


def test_another_block_in_its_place_and_a_cut_or_missing_one_are_damage() -> None:
    table = append_hot(append_hot(make(), rows([1, 2])), rows([3, 4]))
    keys = table.blocks().locations
    whole = [table.store.read(key) for key in keys]

    for data, message in (
        (whole[1], "another block|does not fit"),
        (whole[0][:-9], "was truncated"),
        (whole[0][:4], "was truncated"),
        (b"", "was truncated"),
    ):
        storage.process_cache.clear()
        table.store.create(keys[0], data, overwrite=True)
        with pytest.raises(Corrupt, match=message):
            table.read_block(table.blocks(), 0, ["id"])
    table.store.delete([keys[0]])
    with pytest.raises(Corrupt, match="a block of a hot commit, is missing"):
        table.read_block(table.blocks(), 0, ["id"])
