"""How rows become blocks, zones and segments, and are indexed on the way."""

import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from fuse_storage import (
    InvalidArgument,
    SchemaError,
    Sidecar,
    StorageError,
    StoredTable,
)
from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.parquet.footer import read_footer
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Totals, append, ids_of, known_by, rows, staged, truth


@pytest.fixture
def table(url: str) -> StoredTable:
    return StoredTable.create(url, COLUMNS)


def blocks_of(table: StoredTable) -> list[int]:
    return table.blocks().row_counts.tolist()


# --- cutting --------------------------------------------------------------------------------------------------


def test_rows_are_cut_into_blocks_zones_and_segments_of_the_stated_sizes(url: str) -> None:
    limits = {"block_rows": 10, "zone_rows": 4, "segment_blocks": 3}
    table = append(StoredTable.create(url, COLUMNS, properties=limits), *range(75))

    assert blocks_of(table) == [10] * 7 + [5]
    assert table.segments().block_counts.tolist() == [3, 3, 2]
    assert table.segments().zone_counts.tolist() == [9, 9, 5]
    assert table.blocks().zone_rows.tolist() == [4, 4, 2] * 7 + [4, 1]
    assert table.blocks().zone_offsets.tolist() == [0, 3, 6, 9, 12, 15, 18, 21, 23]
    assert ids_of(table) == list(range(75))
    check_invariants(table)


def test_many_small_batches_make_few_blocks(table: StoredTable) -> None:
    with table.writer(block_rows=1000) as writer:
        for row_id in range(300):
            writer.write(rows([row_id]).to_batches()[0])
        table = table.transaction().append(writer.finish()).commit()

    assert blocks_of(table) == [300]
    assert ids_of(table) == list(range(300))


def test_wide_rows_are_cut_by_bytes_at_whole_zones(table: StoredTable) -> None:
    wide = pa.table({"id": np.arange(1000), "name": ["x" * 1000] * 1000})
    with table.writer(block_bytes=300_000, zone_rows=50) as writer:
        writer.write(wide)
        table = table.transaction().append(writer.finish()).commit()

    counts = blocks_of(table)
    assert sum(counts) == 1000
    assert all(count % 50 == 0 and 150 <= count <= 300 for count in counts[:-1])
    assert ids_of(table) == list(range(1000))


def test_a_row_larger_than_a_block_is_a_block(table: StoredTable) -> None:
    with table.writer(block_bytes=10) as writer:
        writer.write(rows([1, 2, 3]))
        table = table.transaction().append(writer.finish()).commit()

    assert blocks_of(table) == [1, 1, 1]


def test_limits_that_are_none_are_refused(table: StoredTable) -> None:
    with pytest.raises(ValueError, match="'rows' is no limit"):
        table.writer(rows=10)
    with pytest.raises(ValueError, match="block_rows = 0"):
        table.writer(block_rows=0)
    assert WriteOptions.from_properties({"zone_rows": 5, "color": "red"}, block_rows=7) == WriteOptions(
        block_rows=7, zone_rows=5
    )


@pytest.mark.parametrize(("page_rows", "data_pages"), [(1_000, 20), (5_000, 4)])
def test_pages_hold_as_many_rows_as_the_writer_is_told(table: StoredTable, page_rows: int, data_pages: int) -> None:
    table = table.transaction().append(staged(table, range(20_000), page_rows=page_rows)).commit()

    pages = read_footer(table.store, table.blocks().file(0)).pages

    row_counts = pages.row_counts[pages.chunk_pages(0)]
    assert np.count_nonzero(row_counts) == data_pages  # a dictionary page would have no rows
    assert row_counts.max() == page_rows


def test_a_writer_takes_a_compression_level_of_its_own(table: StoredTable) -> None:
    with pytest.raises(InvalidArgument, match="compression_level = 23: it must be a whole number from 1 to 22"):
        table.writer(compression_level=23)

    for level in (1, 19):
        table = table.transaction().append(staged(table, range(20_000), compression_level=level)).commit()

    assert table.blocks().sizes[1] < table.blocks().sizes[0]


def test_rows_that_do_not_fit_are_refused_at_once_by_name(table: StoredTable) -> None:
    writer = table.writer()

    with pytest.raises(SchemaError, match="'nome'"):
        writer.write(pa.table({"id": [1], "nome": ["x"]}))
    with pytest.raises(SchemaError, match="'id'"):
        writer.write(pa.table({"id": ["one"], "name": ["x"]}))
    writer.abort()


def test_columns_are_matched_by_name(table: StoredTable) -> None:
    with table.writer() as writer:
        writer.write(rows([1]).select(["name", "id"]))
        table = table.transaction().append(writer.finish()).commit()

    assert table.read_block(table.blocks(), 0, ["name", "id"]).to_pylist() == [{"name": "n1", "id": 1}]


# --- failing --------------------------------------------------------------------------------------------------


def keys(table: StoredTable) -> set[str]:
    return {found.key for found in table.store.list()}


def test_an_aborted_writer_leaves_no_files(table: StoredTable) -> None:
    before = keys(table)
    writer = table.writer([Totals()], block_rows=2, pack_bytes=1)
    writer.write(rows(range(9)))
    assert keys(table) > before

    writer.abort()

    assert keys(table) == before
    with pytest.raises(StorageError, match="finished"):
        writer.write(rows([1]))


def test_a_writer_that_finished_deletes_nothing(table: StoredTable) -> None:
    writer = table.writer()
    writer.write(rows([1]))
    parts = writer.finish()
    writer.abort()

    assert ids_of(table.transaction().append(parts).commit()) == [1]


@dataclass(frozen=True)
class Broken(Totals):
    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64]) -> Sidecar | None:
        raise RuntimeError("cannot build")


def test_what_an_index_raises_reaches_the_caller_and_leaves_no_files(table: StoredTable) -> None:
    before = keys(table)

    with pytest.raises(RuntimeError, match="cannot build"):
        staged(table, [1], [Broken()])

    assert keys(table) == before


@dataclass(frozen=True)
class Unpackable(Totals):
    def pack(self, sidecars: Sequence[Sidecar]) -> None:
        return None


def test_an_index_that_cannot_pack_leaves_its_blocks_unindexed(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()

    table = append(table, 1, builders=[Unpackable()])

    assert (ids_of(table), known_by(table, "70a1")) == ([1], [(None, None)])


# --- indexing on the way --------------------------------------------------------------------------------------


def test_sidecars_of_several_segments_share_a_pack(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()

    table = append(table, *range(40), builders=[Totals()], block_rows=3, segment_blocks=5)

    assert len([key for key in keys(table) if key.startswith("_i/")]) == 1
    assert known_by(table, "70a1") == truth(table)
    check_invariants(table)


def test_packs_are_no_larger_than_stated(table: StoredTable) -> None:
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()

    table = append(table, *range(40), builders=[Totals()], block_rows=3, segment_blocks=5, pack_bytes=30)

    packs = list(table.store.list("_i"))
    assert len(packs) > 4
    assert max(found.size for found in packs) < 70
    assert known_by(table, "70a1") == truth(table)
    sidecars = table.blocks().sidecars("70a1")
    assert sidecars is not None
    found = sidecars.packs()
    assert sorted(place for _, places in found for place in places) == list(range(14))
    offset, length = sidecars.spans
    for whole, places in found:
        for place in places:
            own = sidecars.payload(place)
            assert own is not None
            assert whole.read([(int(offset[place]), int(length[place]))]) == own.read([(0, own.size)])


@dataclass(frozen=True)
class Waiting(Totals):
    """Two of these are only ever built if they are built at once."""

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64]) -> Sidecar | None:
        BARRIERS[self.version].wait()
        return super().build(rows, zones)


BARRIERS: dict[int, threading.Barrier] = {}


def test_indexes_are_built_side_by_side(table: StoredTable) -> None:
    BARRIERS[77] = threading.Barrier(2)

    parts = staged(table, [1, 2], [Waiting("aa", 77), Waiting("bb", 77)])

    assert [part.row_count for part in parts] == [2]


def test_staged_segments_are_small(table: StoredTable) -> None:
    (part,) = staged(table, range(3000), block_rows=10, segment_blocks=1000)

    assert part.block_count == 300
    assert len(pickle.dumps(part)) < 5000
    assert pickle.loads(pickle.dumps(part)) == part
