"""How rows become segments, and how segments, blocks and zones are seen as frames."""

import pickle
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from fuse_storage import (
    Field,
    InvalidArgument,
    Schema,
    SchemaError,
    Sidecar,
    StorageError,
    StoredTable,
    meter_requests,
    open_store,
    process_cache,
)
from fuse_storage.commit.head import write_snapshot
from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.metadata.refs import Branch
from fuse_storage.parquet.reader import read_footer
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
        for id in range(300):
            writer.write(rows([id]).to_batches()[0])
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

    with pytest.raises(SchemaError, match="'name'"):
        writer.write(pa.table({"id": [1]}))
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
        BARRIERS[self.version].wait(timeout=30)
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


# --- frames ---------------------------------------------------------------------------------------------------


@pytest.fixture
def many(url: str) -> StoredTable:
    """30 blocks of 3 rows in 3 segments, zones of 2 rows, all indexed but every fifth block."""
    table = StoredTable.create(url, COLUMNS, properties={"block_rows": 3, "zone_rows": 2, "segment_blocks": 3})
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()
    unable = frozenset(range(0, 90, 15))
    parts = staged(table, range(90), [Totals(unable=unable)])
    table = table.transaction().append(parts).commit()
    assert table.segments().block_counts.tolist() == [24, 3, 3]
    return table


def test_statistics_are_the_same_at_every_level(many: StoredTable) -> None:
    blocks = many.blocks()
    segments, zones = many.segments().statistics(1), many.zones(blocks).statistics(1)
    own = blocks.statistics(1)
    assert segments is not None
    assert zones is not None
    assert own is not None

    assert own.min.to_pylist() == list(range(0, 90, 3))
    assert own.max.to_pylist() == list(range(2, 90, 3))
    assert zones.min.to_pylist() == [id for id in range(90) if id % 3 != 1]
    first = many.segments().block_offsets
    assert segments.min.to_pylist() == [3 * int(block) for block in first[:-1]]
    assert own.null_count.to_pylist() == [0] * 30


@pytest.mark.parametrize("chosen", [[], [0], [29], [5, 4, 5], [0, 9, 10, 11, 28], list(range(30))])
def test_a_part_of_a_frame_is_as_the_whole(many: StoredTable, chosen: list[int]) -> None:
    whole = many.blocks()
    for warm in (False, True):
        if warm:
            whole.statistics(1), whole.sizes, whole.zone_rows
        part = whole.take(np.array(chosen, np.int64))
        own, all_of = part.statistics(1), whole.statistics(1)
        assert own is not None
        assert all_of is not None
        assert own.min.to_pylist() == [all_of.min[block].as_py() for block in chosen]
        assert part.ordinals.tolist() == chosen
        assert part.ids == [whole.ids[block] for block in chosen]
        assert part.locations == [f"_b/{whole.ids[block]}.parquet" for block in chosen]
        assert part.sizes.tolist() == whole.sizes[chosen].tolist()
        assert part.row_counts.tolist() == [3] * len(chosen)
        assert part.zone_rows.tolist() == [2, 1] * len(chosen)
        zones = many.zones(part).statistics(1)
        assert zones is not None
        assert zones.max.to_pylist() == [id for block in chosen for id in (3 * block + 1, 3 * block + 2)]
        sidecars = part.sidecars("70a1")
        totals = [None if 3 * block % 15 == 0 else 9 * block + 3 for block in chosen]
        assert (sidecars.summaries.to_pylist() if sidecars is not None else []) == totals
        for place, block in enumerate(chosen):
            assert many.read_block(part, place, ["id"]).column("id").to_pylist() == [
                3 * block,
                3 * block + 1,
                3 * block + 2,
            ]
        again = part.take(np.arange(len(chosen))[::-1])
        assert again.ordinals.tolist() == chosen[::-1]


def test_blocks_of_some_segments_are_those(many: StoredTable) -> None:
    first = many.segments().block_offsets
    chosen = [len(many.segments()) - 1, 0]

    found = many.blocks(chosen, statistics=[1])

    expected = [block for segment in chosen for block in range(first[segment], first[segment + 1])]
    assert found.ordinals.tolist() == expected
    assert many.blocks([2, 1, 0]).ordinals.tolist() == [*range(27, 30), *range(24, 27), *range(24)]
    assert many.blocks([0, 1, 2]) is many.blocks()
    assert len(many.blocks([])) == 0
    assert many.zones(many.blocks([])).row_counts.tolist() == []


def test_only_files_with_blocks_that_are_left_are_read(many: StoredTable) -> None:
    counted = meter_requests(open_store(many.store.url))
    process_cache.clear()
    table = StoredTable.open(counted)
    counted.reset()

    table.blocks([1], statistics=[1, 2]).row_counts.sum()

    assert [key[:4] for _, key, _ in counted.reads] == ["_ss/", "_sg/"]
    table.blocks([1]).statistics(2)
    assert len(counted.reads) == 2


def test_sidecars_say_what_they_know(many: StoredTable) -> None:
    found = many.blocks().sidecars("70a1")
    assert found is not None

    assert found.indexed.tolist() == [block % 5 != 0 for block in range(30)]
    assert found.versions.tolist() == [1 if block % 5 else -1 for block in range(30)]
    assert found.error is None
    assert many.blocks().sidecars("beef") is None
    assert many.segments().roll_ups("beef") is None
    assert many.segments().indexed_block_counts("beef").tolist() == [0] * len(many.segments())
    part = found.take(np.array([7, 5]))
    assert (part.indexed.tolist(), part.summaries.to_pylist()) == ([True, False], [66, None])
    payload = part.payload(0)
    assert payload is not None
    assert payload.read([(0, payload.size)]) == [b"[21, 22, 23]"]
    assert part.payload(1) is None


def test_a_nested_column_has_statistics_of_its_plain_parts(url: str) -> None:
    kind = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = StoredTable.create(url, pa.schema([("place", kind)]))
    with table.writer() as writer:
        writer.write(pa.table({"place": pa.array([{"x": 3, "tags": []}, None, {"x": -1, "tags": ["a"]}], kind)}))
        table = table.transaction().append(writer.finish()).commit()
    schema = table.snapshot.schema

    found = table.blocks().statistics(schema.find("place.x").id)

    assert found is not None
    assert (found.min.to_pylist(), found.max.to_pylist(), found.null_count.to_pylist()) == ([-1], [3], [1])
    assert table.blocks().statistics(schema.find("place").id) is None
    assert table.blocks().statistics(schema.find("place.tags").id) is None
    check_invariants(table)


# --- columns that came or were widened later ------------------------------------------------------------------


def altered(table: StoredTable, schema: Schema) -> StoredTable:
    """The table after a commit that changed its columns, as later versions will make them."""
    now = table.snapshot
    after = replace(
        now,
        id=uuid.uuid4().hex,
        sequence=now.sequence + 1,
        commit_id=uuid.uuid4().hex,
        parent=now.id,
        operation="alter",
        timestamp=now.timestamp + timedelta(seconds=1),
        schema_id=schema.id,
        schemas={**now.schemas, schema.id: schema},
    )
    Branch(table.store, "main").create(write_snapshot(table.store, after, table.entry))
    return table.refresh()


def levels(table: StoredTable, column: int) -> list[tuple[list[Any], list[Any], list[Any]]]:
    found = [units.statistics(column) for units in (table.segments(), table.blocks(), table.zones(table.blocks()))]
    return [(one.min.to_pylist(), one.max.to_pylist(), one.null_count.to_pylist()) for one in found if one is not None]


def test_a_block_that_lacks_a_column_holds_its_default_throughout(table: StoredTable) -> None:
    table = append(table, 1, 2)
    fields = (
        *table.snapshot.schema.fields,
        Field(3, "more", "more", pa.int64(), default=7),
        Field(4, "none", "none", pa.string()),
    )
    table = altered(table, Schema(1, fields))

    assert levels(table, 3) == [([7], [7], [0])] * 3
    assert levels(table, 4) == [([None], [None], [2])] * 3
    with table.writer() as writer:
        writer.write(pa.table({"id": [3], "name": ["c"], "more": [9], "none": ["x"]}))
        table = table.transaction().append(writer.finish()).commit()
    assert levels(table, 3) == [([7, 9], [7, 9], [0, 0])] * 3
    assert levels(table, 4) == [([None, "x"], [None, "x"], [2, 0])] * 3
    assert [table.read_block(table.blocks(), block, ["more"]).column("more").to_pylist() for block in range(2)] == [
        [7, 7],
        [9],
    ]


def test_merged_segments_still_know_which_blocks_lack_a_column(table: StoredTable) -> None:
    for id in range(7):
        table = append(table, id)
    table = altered(table, Schema(1, (*table.snapshot.schema.fields, Field(3, "more", "more", pa.int64(), default=7))))
    with table.writer() as writer:
        writer.write(pa.table({"id": [3], "name": ["c"], "more": [9]}))
        table = table.transaction().append(writer.finish()).commit()

    assert table.snapshot.segment_count == 1
    assert levels(table, 3)[1:] == [([7] * 7 + [9], [7] * 7 + [9], [0] * 8)] * 2
    assert levels(table, 3)[0] == ([None], [None], [None])


def test_statistics_of_a_widened_column_are_of_its_present_type(url: str) -> None:
    narrow = pa.schema([("a", pa.int32()), ("d", pa.decimal128(10, 2))])
    table = StoredTable.create(url, narrow)

    def appended(table: StoredTable, kinds: pa.Schema, value: int) -> StoredTable:
        with table.writer() as writer:
            writer.write(pa.table([[value], [Decimal(value)]], schema=kinds))
            return table.transaction().append(writer.finish()).commit()

    for value in range(3):
        table = appended(table, narrow, value)
    a, d = table.snapshot.schema.fields
    wide = (replace(a, type=pa.int64(), type_changed=True), replace(d, type=pa.decimal128(20, 4), type_changed=True))
    table = altered(table, Schema(1, wide))
    for value in range(3, 9):
        table = appended(table, pa.schema([("a", pa.int64()), ("d", pa.decimal128(20, 4))]), value)

    found = table.blocks().statistics(1)
    assert found is not None
    assert (found.type, found.min.to_pylist()) == (pa.int64(), list(range(9)))
    other = table.zones(table.blocks()).statistics(2)
    assert other is not None
    assert other.type == pa.decimal128(20, 4)
    assert [int(value) for value in other.max.to_pylist()] == list(range(9))
    listed = table.segments().statistics(2)
    assert listed is not None
    assert listed.type == pa.decimal128(20, 4)
    check_invariants(table)
