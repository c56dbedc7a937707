"""Deletion vectors on disk: what is written comes back, and what no writer wrote is refused before it takes memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage import (
    BlockReplacement,
    Corrupt,
    InvalidArgument,
    StoredTable,
    add_checksums,
    live_row_masks,
    meter_requests,
    open_store,
    process_cache,
    stage_deletions,
)
from fuse_storage.deletion_vector import VectorRef, read_vector, write_vectors
from fuse_storage.parquet.pages import RowMask
from fuse_storage.store.store import Store
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Totals, append, ids_of, indexed, known_by, truth

PACK = "_d/" + "a" * 32


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}")


def masked(rows: int, *deleted: int) -> RowMask:
    mask = np.zeros(rows, np.bool_)
    mask[list(deleted)] = True
    return mask


def test_vectors_of_a_pack_come_back_bit_by_bit(store: Store) -> None:
    random = np.random.default_rng(3)
    masks = [masked(1, 0), masked(9, 0, 8), random.random(100_003) < 0.01, np.ones(8, np.bool_)]
    references = write_vectors(store, masks)

    assert len({reference.key for reference in references}) == 1
    for mask, reference in zip(masks, references, strict=True):
        again = VectorRef.parse(str(reference))
        left = len(mask) - int(mask.sum())
        assert np.array_equal(read_vector(store, again, len(mask), left, False), mask)
    offset, length = references[1].offset, references[1].length
    (stored,) = store.read_ranges(references[1].key, [(offset, length)])
    assert pa.Codec("zstd").decompress(stored, 2, asbytes=True) == b"\x01\x01"  # the lowest bit is the first row


def put(store: Store, data: bytes) -> VectorRef:
    """A pack with these bytes in the place of a vector, its checksums right."""
    store.create(PACK, add_checksums(data + bytes(-len(data) % 1024), 1024, PACK))
    return VectorRef(PACK, 0, len(data))


def compressed(bits: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(bits, asbytes=True))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (compressed(b"\3\0"), "does not leave 9 of 10"),
        (compressed(b"\0\4"), "does not leave 9 of 10"),  # a bit beyond the rows
        (compressed(b"\0\0"), "does not leave 9 of 10"),
        (compressed(b"\1"), "damaged"),
        (compressed(b"\1\0\0"), "damaged"),
        (compressed(b"\1" + bytes(1 << 24)), "damaged"),  # some hundred bytes that would become 16 MiB
        (compressed(b"\1\0")[:-1], "damaged"),
        (b"no frame", "damaged"),
        (b"", "damaged"),
    ],
)
def test_what_no_writer_wrote_is_refused(store: Store, data: bytes, reason: str) -> None:
    reference = put(store, data)
    with pytest.raises(Corrupt, match=reason):
        read_vector(store, reference, 10, 9, False)


@pytest.mark.parametrize("rows", [10, 1 << 47])
def test_a_place_that_cannot_be_is_refused_unread(store: Store, rows: int) -> None:
    metered = meter_requests(store)
    for text in ("", "x", "_d/x:1", "_d/x:-1:2", "_d/x:0:99999999999999999999", f"{PACK}:0:999999"):
        with pytest.raises(Corrupt):
            read_vector(metered, VectorRef.parse(text), rows, rows - 1, False)
    assert not metered.reads
    with pytest.raises(Corrupt, match=r"missing|no deletion vector"):
        read_vector(store, VectorRef(PACK, 0, 20), rows, rows - 1, False)


@pytest.fixture
def table() -> StoredTable:
    made = StoredTable.create(f"memory://{uuid.uuid4().hex}", COLUMNS, properties={"block_rows": 4, "zone_rows": 2})
    return indexed(append(made, *range(10)))


def delete(table: StoredTable, marked: dict[int, RowMask]) -> StoredTable:
    staged = stage_deletions(table, [Totals()], marked)
    swaps = [BlockReplacement((table.blocks().ids[number],), 1) for number in marked]
    return table.transaction([Totals()]).replace_blocks(swaps, staged, table.segments().ids, name="delete").commit()


def test_blocks_with_vectors_are_other_blocks_over_the_same_files(table: StoredTable) -> None:
    after = delete(table, {0: masked(4, 1), 1: masked(4, 0, 3)})

    assert ids_of(after) == [0, 2, 3, 5, 6, 8, 9]
    assert after.snapshot.row_count == 7
    assert after.snapshot.reader_features == ("deletion-vectors",)
    assert after.blocks().locations == table.blocks().locations
    assert [new == old for new, old in zip(after.blocks().ids, table.blocks().ids, strict=True)] == [False, False, True]
    assert known_by(after, "70a1") == truth(after)  # of all rows of the file
    assert ids_of(table) == list(range(10))
    again = delete(after, {0: masked(4, 1, 2)})
    assert ids_of(again) == [0, 3, 5, 6, 8, 9]
    assert ids_of(table.refresh().transaction().restore(table.snapshot).commit()) == list(range(10))
    check_invariants(again)


def test_a_table_without_vectors_is_not_asked_for_any(table: StoredTable) -> None:
    process_cache.clear()
    metered = meter_requests(table.store)
    counted = StoredTable(metered, table.branch, table.entry, table.snapshot)
    blocks = counted.blocks()
    _ = blocks.row_counts, blocks.ids
    before = len(metered.reads)
    assert live_row_masks(blocks) == {}
    assert len(metered.reads) == before
    assert "deletion-vectors" not in table.snapshot.reader_features


@pytest.mark.parametrize("marked", [{0: masked(4)}, {0: masked(4, 0, 1, 2, 3)}], ids=["none", "all"])
def test_a_block_keeps_some_row_and_loses_some(table: StoredTable, marked: dict[int, RowMask]) -> None:
    with pytest.raises(InvalidArgument, match="block 0"):
        stage_deletions(table, [], marked)


def damage_gone(store: Store, key: str) -> None:
    store.delete([key])


def damage_flipped(store: Store, key: str) -> None:
    data = bytearray(store.read_ranges(key, [(0, 1028)])[0])
    data[3] ^= 1
    store.create(key, bytes(data), overwrite=True)


@pytest.mark.parametrize("damage", [damage_gone, damage_flipped])
def test_rows_of_which_nobody_can_say_whether_they_count_are_refused(
    table: StoredTable, damage: Callable[[Store, str], None]
) -> None:
    after = delete(table, {0: masked(4, 1)})
    (pack,) = (found.key for found in table.store.list("_d"))
    damage(table.store, pack)
    process_cache.clear()
    with pytest.raises(Corrupt, match=r"missing|damaged"):
        ids_of(StoredTable.open(table.store.url))
    assert ids_of(table) == list(range(10))
    assert after.snapshot.row_count == 9
