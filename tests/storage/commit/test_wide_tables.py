"""Metadata of tables of many columns: what says nothing is not written, and what was just written is not read."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fuse_storage import Cache, StoredTable, meter_requests, process_cache, statistics
from fuse_storage.metadata.metadata_table import read_all_columns
from fuse_storage.metadata.segment_list import (
    read_segment_list,
    segment_files,
    statistics_columns,
    take_without_statistics,
    zone_files,
)
from fuse_storage.parquet.column_encoding import suits_dictionary
from fuse_storage.parquet.writer import write_block
from fuse_storage.schema.schema import Schema
from fuse_storage.statistics import compute_statistics
from fuse_storage.statistics.wide import StatisticsColumns
from fuse_storage.testing import check_invariants
from tests.storage.small import Totals, append, ids_of

INSTANT = datetime(2026, 3, 1, tzinfo=UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "tinyint": (pa.int8(), [1, None, 2]),
    "smallint": (pa.int16(), [1, 2, 3]),
    "int": (pa.int32(), [None, None, None]),
    "bigint": (pa.int64(), [5, 5, 5]),
    "float": (pa.float32(), [1.0, float("nan"), None]),
    "double": (pa.float64(), [1.0, 2.0, -0.0]),
    "decimal": (pa.decimal128(20, 3), [Decimal("1.5"), None, None]),
    "string": (pa.string(), ["a", "b" * 50, None]),
    "short": (pa.string(), ["a", "b", None]),
    "binary": (pa.binary(), [b"a", b"\xff" * 50, None]),
    "date": (pa.date32(), [date(2026, 3, 1)] * 3),
    "timestamp": (pa.timestamp("us", "UTC"), [INSTANT] * 3),
    "timestamp_ntz": (pa.timestamp("us"), [INSTANT.replace(tzinfo=None)] * 3),
    "struct": (pa.struct([("x", pa.int64())]), [{"x": 1}, None, {"x": None}]),
}
COLUMNS = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in VALUES.items())])


def rows(ids: Sequence[int], step: int = 0) -> pa.Table:
    """Rows of these ids, with the values of each other column in turn, from the ``step``-th on."""
    values = {name: [some[(step + n) % 3] for n in range(len(ids))] for name, (_, some) in VALUES.items()}
    return pa.table({"id": ids, **values}, COLUMNS)


def appended(table: StoredTable, ids: Sequence[int], step: int = 0, **limits: int) -> StoredTable:
    with table.writer([Totals()], **limits) as writer:
        writer.write(rows(ids, step))
        return table.transaction([Totals()]).append(writer.finish()).commit()


def files_of(table: StoredTable) -> list[pa.Table]:
    """What is in the files of the list and of all segments."""
    assert table.snapshot.segments is not None
    listed = read_segment_list(table.store, table.snapshot, Cache(0))
    return [listed, *(read_all_columns(table.store, file, Cache(0)) for file in segment_files(listed))]


@pytest.fixture
def table(url: str) -> StoredTable:
    definition = {"key": "70a1", "kind": "totals"}
    return StoredTable.create(url, COLUMNS).transaction().add_index("totals", definition).commit()


@pytest.mark.parametrize("merges", [False, True])
def test_the_list_that_a_commit_leaves_in_memory_is_the_one_in_its_file(table: StoredTable, merges: bool) -> None:
    for number in range(9 if merges else 3):
        table = appended(table, [number, 100 + number, 200 + number][: 1 + number % 3], number)
        kept, read = (read_segment_list(table.store, table.snapshot, cache) for cache in (None, Cache(0)))
        assert kept.schema.equals(read.schema)
        assert repr(kept.to_pylist()) == repr(read.to_pylist())  # NaN is not equal to itself
    check_invariants(table)


def test_an_append_reads_no_list_that_the_one_before_wrote(table: StoredTable) -> None:
    table = appended(table, [1])
    counted = meter_requests(table.store)
    again = StoredTable(counted, table.branch, table.entry, table.snapshot)

    appended(again, [2])

    assert not [key for _, key, _ in counted.reads if key.startswith(("_ss/", "_sg/")) and key.endswith(".parquet")]


def test_blocks_of_one_zone_have_no_zones_file_and_their_zones_are_known(table: StoredTable) -> None:
    table = appended(table, [1, 2, 3, 4], block_rows=2)
    process_cache.clear()

    assert zone_files(read_segment_list(table.store, table.snapshot)) == [None]
    zones = table.zones(table.blocks()).statistics(1)
    assert zones is not None
    assert (zones.min.to_pylist(), zones.max.to_pylist()) == ([1, 3], [2, 4])
    assert zones.null_count.to_pylist() == [0, 0]
    check_invariants(table)


@pytest.mark.parametrize("zone_rows", [1, 2, 3])
def test_segments_with_zones_files_and_without_merge_into_one_with_all_zones(
    table: StoredTable, zone_rows: int
) -> None:
    for number in range(8):
        table = appended(table, range(3 * number, 3 * number + 3), zone_rows=zone_rows if number % 2 else 3)
    assert table.snapshot.segment_count == 1
    process_cache.clear()

    assert zone_files(read_segment_list(table.store, table.snapshot)) != [None] or zone_rows == 3
    zones = table.zones(table.blocks())
    found = zones.statistics(1)
    assert found is not None
    ends = np.cumsum(zones.row_counts)
    assert found.max.to_pylist() == [end - 1 for end in ends.tolist()]
    assert ids_of(table) == list(range(24))
    check_invariants(table)


def test_statistics_that_say_nothing_are_in_no_file_and_are_read_as_before(table: StoredTable) -> None:
    table = appended(appended(table, [1, 2, 3], block_rows=2), [4, 5], 2, block_rows=1)
    table = append_plain(table, [6, 7])

    number = {field.name: field.id for field in table.snapshot.schema.fields}
    for rows_of_file in files_of(table)[1:]:
        names = set(rows_of_file.column_names)
        assert not {f"c.{number['short']}.min_cut", f"c.{number['short']}.max_cut"} & names
        assert {f"c.{number['id']}.{part}" for part in ("min", "max", "null_count", "size")} <= names
        assert f"c.{number['double']}.nan_count" in names  # missing, it might be taken for unknown
    first, second = files_of(table)[1:3]
    assert f"c.{number['string']}.max_cut" in first.column_names
    assert f"c.{number['string']}.max_cut" not in second.column_names
    assert f"c.{number['int']}.max" not in first.column_names
    process_cache.clear()
    known = (
        (table.segments(), [True, False, True], [3, 2, 2]),
        (table.blocks(), [True, *[False] * 3, True], [2, 1, 1, 1, 2]),
    )
    for frame, is_cut, nulls in known:
        cut, whole = frame.statistics(number["string"]), frame.statistics(number["short"])
        assert cut is not None
        assert whole is not None
        assert cut.max_cut.to_pylist() == is_cut
        assert whole.max_cut.to_pylist() == [False] * len(nulls)
        empty = frame.statistics(number["int"])
        assert empty is not None
        assert (empty.max.to_pylist(), empty.null_count.to_pylist()) == ([None] * len(nulls), nulls)
    check_invariants(table)


def append_plain(table: StoredTable, ids: Sequence[int]) -> StoredTable:
    with table.writer() as writer:
        writer.write(rows(ids))
        return table.transaction().append(writer.finish()).commit()


def test_columns_of_a_list_grow_with_what_is_known_and_not_with_what_is_not(url: str) -> None:
    columns = pa.schema(
        [("id", pa.int64()), ("name", pa.string()), *((f"c{number}", pa.int64()) for number in range(50))]
    )
    table = append(StoredTable.create(url, columns), 1, 2, 3)

    for path in (table.snapshot.segments, segment_files(read_segment_list(table.store, table.snapshot))[0].reference):
        assert path is not None
        found = pq.read_metadata(pa.BufferReader(table.store.read(path.path)))
        statistics = [name for name in found.schema.to_arrow_schema().names if name.startswith("c.")]
        assert len(statistics) <= 4 * len(columns)


def test_rows_of_a_list_are_taken_without_statistics(table: StoredTable) -> None:
    table = appended(appended(table, [1]), [2], 1)
    listed = read_segment_list(table.store, table.snapshot)

    taken = take_without_statistics(listed, np.array([1]))

    assert taken.column_names == [name for name in listed.column_names if not name.startswith("c.")]
    assert taken.to_pylist() == listed.select(taken.column_names).slice(1).to_pylist()


def test_the_list_has_the_statistics_of_a_segment_of_one_block(table: StoredTable) -> None:
    table = appended(appended(table, [1, 2, 3]), [7, 8, 9, 10], 1, block_rows=2)
    listed = read_segment_list(table.store, table.snapshot)
    one, two = (pq.read_table(pa.BufferReader(table.store.read(file.reference.path))) for file in segment_files(listed))
    process_cache.clear()

    assert not [name for name in one.column_names if name.startswith("c.")]
    assert "c.1.min" in two.column_names
    for frame in (table.blocks(), table.zones(table.blocks())):
        for _ in ("read", "kept"):
            ids = frame.statistics(1)
            assert ids is not None
            assert (ids.min.to_pylist(), ids.max.to_pylist()) == ([1, 7, 9], [3, 8, 10])
            assert ids.null_count.to_pylist() == [0, 0, 0]
    check_invariants(table)


def test_statistics_of_one_block_stay_when_its_segment_is_merged(table: StoredTable) -> None:
    for number in range(9):
        table = appended(table, [number])
    assert table.snapshot.segment_count < 9
    process_cache.clear()

    ids = table.blocks().statistics(1)
    assert ids is not None
    assert ids.min.to_pylist() == ids.max.to_pylist() == list(range(9))
    check_invariants(table)


def test_statistics_in_the_present_types_are_taken_as_they_are(
    table: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = appended(appended(table, [1, 2, 3]), [4, 5], 2)
    schema, listed = table.snapshot.schema, read_segment_list(table.store, table.snapshot)
    decoded, decode = list[int](), statistics.decode_statistics

    def counted(units: pa.Table, column_id: int, data_type: pa.DataType) -> Any:
        decoded.append(column_id)
        return decode(units, column_id, data_type)

    monkeypatch.setattr(statistics, "decode_statistics", counted)
    for units in (
        listed,
        listed.slice(1),
        listed.select([name for name in listed.column_names if name[-4:] != ".max"]),
    ):
        taken = pa.table(statistics_columns(schema, units))
        assert not decoded
        with monkeypatch.context() as patched:
            patched.setattr(StatisticsColumns, "are_in", lambda *_: False)
            apart = pa.table(statistics_columns(schema, units))
        assert decoded
        assert taken.schema.equals(apart.schema)
        assert repr(taken.to_pylist()) == repr(apart.to_pylist())  # NaN is not equal to itself
        decoded.clear()


FEW: list[pa.Array] = [
    pa.array(values, data_type)
    for data_type, values in [
        (pa.int64(), [5, 5, 5]),
        (pa.int64(), [5, None, 5]),
        (pa.int64(), [5, 6, 5]),
        (pa.int32(), [None, None]),
        (pa.string(), ["a", "a"]),
        (pa.string(), ["a" * 40, "a" * 40]),
        (pa.string(), ["a" * 40, "a" * 39 + "b"]),  # of one bound, as that is cut
        (pa.binary(), [b"\xff" * 40, b"\xff" * 41]),
        (pa.decimal128(20, 3), [Decimal("1.5"), Decimal("1.5")]),
        (pa.timestamp("us", "UTC"), [INSTANT, INSTANT]),
        (pa.timestamp("us"), [-(1 << 63), 1]),  # no time that Python has
        (pa.date32(), [date(2026, 3, 1), date(2026, 3, 2)]),
        (pa.bool_(), [True, True]),
        (pa.float64(), [1.0, 1.0]),
    ]
]


@pytest.mark.parametrize("values", FEW, ids=str)
def test_few_rows_have_a_dictionary_where_they_have_one_value_and_are_not_counted_for_it(values: pa.Array) -> None:
    table = pa.table({"x": values})
    _, layout = write_block(table, Schema.create(table.schema))

    counted = pc.count_distinct(values).as_py()
    has_dictionary = counted <= 1 and not pa.types.is_boolean(values.type) and not pa.types.is_floating(values.type)
    assert suits_dictionary(values, compute_statistics(values)) == has_dictionary == suits_dictionary(values, None)
    assert layout.block_statistics[1].distinct_count.to_pylist() == [counted if has_dictionary else None]


def test_other_processes_are_sent_the_columns_alone() -> None:
    schema = Schema.create(pa.schema([(f"c{number}", pa.int64()) for number in range(200)]))
    before = len(pickle.dumps(schema))

    assert (len(list(schema.leaves())), len(schema.parquet_schema)) == (200, 200)
    assert len(pickle.dumps(schema)) == before
    assert pickle.loads(pickle.dumps(schema)) == schema
