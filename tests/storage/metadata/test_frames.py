"""How segments, blocks and zones are seen as frames."""

import uuid
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage import (
    Field,
    Schema,
    StoredTable,
    meter_requests,
    open_store,
    process_cache,
)
from fuse_storage.commit.head import write_snapshot
from fuse_storage.metadata.refs import Branch
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Totals, append, staged


@pytest.fixture
def table(url: str) -> StoredTable:
    return StoredTable.create(url, COLUMNS)


# --- frames ---------------------------------------------------------------------------------------------------


@pytest.fixture
def many(url: str) -> StoredTable:
    """30 blocks of 3 rows in 3 segments, zones of 2 rows, all indexed but every fifth block."""
    table = StoredTable.create(url, COLUMNS, properties={"block_rows": 3, "zone_rows": 2})
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()
    unable = frozenset(range(0, 90, 15))
    parts = staged(table, range(90), [Totals(unable=unable)], segment_blocks=3)
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
    assert zones.min.to_pylist() == [row_id for row_id in range(90) if row_id % 3 != 1]
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
        assert zones.max.to_pylist() == [row_id for block in chosen for row_id in (3 * block + 1, 3 * block + 2)]
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
        Field(3, "more", "more", pa.int64(), initial_default=7),
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
    for row_id in range(7):
        table = append(table, row_id)
    table = altered(
        table, Schema(1, (*table.snapshot.schema.fields, Field(3, "more", "more", pa.int64(), initial_default=7)))
    )
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
