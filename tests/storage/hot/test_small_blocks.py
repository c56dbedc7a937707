"""Small hot blocks are read whole: the same rows by fewer requests, and not a byte of them unchecked."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_storage as storage
from fuse_storage import Corrupt, StoredTable, append_hot, meter_requests, open_store
from fuse_storage.commit.schema_evolution import add_column
from fuse_storage.hot import small_blocks
from fuse_storage.hot.small_blocks import BlockRequest
from fuse_storage.parquet.footer import BlockFile, WholeFile, check_whole_file, footer_checksum, seal_number
from fuse_storage.parquet.pages import page_checksum
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


def test_files_that_differ_in_their_columns_are_decoded_together_and_keep_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(small_blocks, "_MAX_FILES_AT_ONCE", 3)
    head = make(zone_rows=40)
    for number in range(9):
        names = ["a", "b"] * 50 if number % 4 else [None, "c"] * 50  # NULL or not is in the schema of a file
        if number == 7:
            head = head.transaction().evolve_schema(partial(add_column, path="more", data_type=pa.int32())).commit()
        head = append_hot(head, pa.table({"id": range(number, number + 100), "name": names}))
    blocks, schema = head.blocks(), head.snapshot.schema
    everything = [(block, None, None) for block in range(len(blocks))]

    found = head.read_blocks(blocks, schema.names, everything)

    expected = [read_block(head.store, blocks.file(block), schema, schema.names) for block, _, _ in everything]
    assert [each.to_pylist() for each in found] == [each.to_pylist() for each in expected]


def test_of_files_that_are_decoded_together_the_one_that_cannot_be_is_named() -> None:
    head = make(pa.schema([("id", pa.int64())]))
    for number in range(3):
        head = append_hot(head, pa.table({"id": range(number, 100 + number)}))  # enough to be compressed
    requests = [request_of(head, number) for number in range(3)]
    block = requests[1].block
    data = bytearray(head.store.read(block.key))
    data[data.index(b"\x28\xb5\x2f\xfd")] ^= 1  # where zstd begins in the one page; and all checksums are right
    seal, footer = block.footer_offset, len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    packed = bytes(data[seal : footer - 12]) + page_checksum(data[4:seal], 0).to_bytes(4, "little")
    checksum = footer_checksum(packed + data[footer:])
    head.store.create(block.key, bytes(data[:seal]) + packed + checksum + data[footer:], overwrite=True)
    requests[1] = BlockRequest(head.store, replace(block, seal=seal_number(checksum)))
    storage.process_cache.clear()

    with pytest.raises(Corrupt, match=f"{block.key} does not hold the columns"):
        small_blocks.read_blocks(requests, head.snapshot.schema, ["id"])


def test_rows_of_a_file_that_has_fewer_than_it_says_are_not_taken_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = make(zone_rows=1)
    for number in range(3):
        head = append_hot(head, rows([number, 10 + number]))
    requests = [request_of(head, number) for number in range(3)]

    def lacking(data: bytes, block: BlockFile, where: str) -> WholeFile:
        file = check_whole_file(data, block, where)
        return replace(file, row_groups=file.row_groups[1:]) if block is requests[1].block else file

    monkeypatch.setattr(small_blocks, "check_whole_file", lacking)

    with pytest.raises(Corrupt, match=f"{requests[1].block.key} does not hold.*1 instead of 2"):
        small_blocks.read_blocks(requests, head.snapshot.schema, ["id"])


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
        (whole[1], "another block|does not fit|its footer fails its checksum"),
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
