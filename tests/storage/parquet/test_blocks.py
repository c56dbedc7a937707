"""Blocks give back the rows that were written, whole or in part, or say that they are damaged."""

import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import Cache, Corrupt, Field, NotFound, Schema, SchemaError, Store, meter_requests, open_store
from fuse_storage.parquet.column_chunks import read_column_chunks, written_column_chunks
from fuse_storage.parquet.column_encoding import COMPRESSIONS
from fuse_storage.parquet.pages import Pages
from fuse_storage.parquet.writer import BlockFile, BlockLayout, BlockOptions, read_block, write_block
from fuse_storage.schema.schema import assign_field_ids
from tests.effort import flips

EVERYTHING = pa.table(
    {
        "flag": pa.array([True, None, False]),
        "tiny": pa.array([1, None, -1], pa.int8()),
        "small": pa.array([1, None, -1], pa.int16()),
        "int": pa.array([1, None, -1], pa.int32()),
        "big": pa.array([2**62, None, -1]),
        "float": pa.array([1.5, None, float("nan")], pa.float32()),
        "double": pa.array([-0.0, None, float("nan")]),
        "price": pa.array([Decimal("1.20"), None, Decimal("-3.40")], pa.decimal128(10, 2)),
        "huge": pa.array([Decimal(10**37), None, Decimal(-1)], pa.decimal128(38, 0)),
        "text": pa.array(["a", None, "日本😀"]),
        "bytes": pa.array([b"\x00", None, b"\xff"]),
        "day": pa.array([date(2020, 1, 1), None, date(1500, 1, 1)]),
        "at": pa.array(
            [datetime(2020, 1, 1, tzinfo=UTC), None, datetime(1500, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")
        ),
        "local": pa.array([datetime(2020, 1, 1), None, datetime(1500, 1, 1)], pa.timestamp("us")),
        "place": pa.array([{"city": "x", "geo": {"lat": 1.0}}, None, {"city": None, "geo": None}]),
        "tags": pa.array([["a", None], None, []], pa.list_(pa.field("element", pa.string()))),
        "scores": pa.array([[("k", 1.0)], None, []], pa.map_(pa.string(), pa.float64())),
        "deep": pa.array([[{"x": [1]}], None, [None, {"x": None}]]),
    }
)

SOME_NESTED = pa.schema(
    [
        ("n", pa.int64()),
        ("t", pa.string()),
        ("few", pa.int64()),
        ("place", pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.int64()))])),
        ("list", pa.list_(pa.int64())),
        ("pair", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}")


def stored(
    store: Store, rows: pa.Table, schema: Schema | None = None, **options: int
) -> tuple[BlockFile, BlockLayout, Schema]:
    schema = schema or Schema.create(rows.schema)
    data, layout = write_block(rows, schema, BlockOptions(**options))
    key = f"_b/{uuid.uuid4().hex}.parquet"
    store.create(key, data)
    return BlockFile(key, layout.footer_offset, layout.footer_length), layout, schema


def test_rows_of_every_type_come_back(store: Store) -> None:
    block, layout, schema = stored(store, EVERYTHING)

    found = read_block(store, block, schema, EVERYTHING.column_names)

    found.validate(full=True)
    assert found.schema == schema.arrow
    assert str(found.to_pydict()) == str(EVERYTHING.to_pydict())  # NaN is not equal to itself
    assert layout.zone_rows == (3,)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_arrow_says_of_a_block_that_it_wrote_what_its_footer_says(compression: str) -> None:
    """Where its chunks are, with and without dictionaries, and how they are stored, in several zones."""
    repeated = EVERYTHING.append_column("again", pa.array(["x", "x", None]))
    rows = pa.concat_tables([repeated] * 40)
    data, _ = write_block(rows, Schema.create(rows.schema), BlockOptions(zone_rows=50, compression=compression))
    metadata = pq.read_metadata(pa.BufferReader(data))
    tail = memoryview(data)[-8 - int.from_bytes(data[-8:-4], "little") : -8]

    read = read_column_chunks(tail, metadata.num_row_groups, metadata.num_columns)

    flat = [metadata.schema.column(number).max_repetition_level == 0 for number in range(metadata.num_columns)]
    described = [
        (chunk.start, chunk.byte_count, chunk.data_offset - chunk.start, chunk.value_count, is_flat)
        for group in read
        for chunk, is_flat in zip(group, flat, strict=True)
    ]
    assert len(read) == 3
    assert [(*chunk[:4], chunk.is_flat) for chunk in written_column_chunks(metadata)] == described
    assert {chunk.dictionary_offset is None for group in read for chunk in group} == {True, False}


LONG_TEXTS = pa.table({"text": [f"{number:04d}" * 500 for number in range(2_000)], "n": range(2_000)})
"""Texts of 4 MB: a page of them ends by its bytes."""
RUNS = pa.table({"n": np.repeat(np.arange(10_000) * 7_919 % 10_007, 100)})
"""A million rows that take 60 KB: Arrow ends a page of them by what it thinks that they take."""


@pytest.mark.parametrize(
    ("rows", "options", "pages"),
    [
        (pa.concat_tables([EVERYTHING] * 40), BlockOptions(), 1),
        (pa.concat_tables([EVERYTHING] * 40), BlockOptions(zone_rows=50, page_rows=20), 3),
        (pa.table({"x": pa.array([None] * 3_000, pa.int64()), "y": ["y"] * 3_000}), BlockOptions(page_rows=1_024), 3),
        (LONG_TEXTS, BlockOptions(compression="zstd"), 2),
        (LONG_TEXTS, BlockOptions(compression="uncompressed", encoding="plain"), 2),
        (RUNS, BlockOptions(zone_rows=1 << 20, page_rows=1 << 20), 2),
    ],
    ids=["one page each", "by rows", "rows of one value", "by bytes, compressed", "by bytes", "by supposed bytes"],
)
def test_pages_that_are_known_unread_are_those_that_their_headers_tell(
    rows: pa.Table, options: BlockOptions, pages: int
) -> None:
    data, layout = write_block(rows, Schema.create(rows.schema), options)
    body = memoryview(data)[: layout.footer_offset]
    chunks = written_column_chunks(pq.read_metadata(pa.BufferReader(data)))

    known, walked = (Pages.from_body(body, chunks, *limits) for limits in ((options.page_rows, 1 << 20), (0, 0)))

    sealed = data[layout.footer_offset :][: len(walked.to_bytes())]
    assert known.to_bytes() == walked.to_bytes() == sealed
    data_pages = np.diff(walked.chunk_starts) - [chunk.dictionary > 0 for chunk in chunks]
    assert data_pages.max() == pages


def test_columns_come_in_the_order_asked_for(store: Store) -> None:
    block, _, schema = stored(store, EVERYTHING)

    assert read_block(store, block, schema, ["text", "big", "place"]).column_names == ["text", "big", "place"]


@given(st.integers(1, 50), st.integers(1, 12), st.data())
def test_any_zones_read_as_slices_do(rows: int, zone_rows: int, draw: st.DataObject) -> None:
    store = open_store("memory://any-zones")
    table = pa.table({"n": range(rows), "t": [None if n % 3 else str(n) for n in range(rows)]})
    block, layout, schema = stored(store, table, zone_rows=zone_rows)
    zones = draw.draw(st.lists(st.integers(0, len(layout.zone_rows) - 1), unique=True, max_size=6))

    found = read_block(store, block, schema, ["t", "n"], zones, Cache(1 << 20))

    assert sum(layout.zone_rows) == layout.row_count == rows
    expected = [row for zone in zones for row in table.slice(zone * zone_rows, zone_rows).to_pylist()]
    assert found.select(["n", "t"]).to_pylist() == expected


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 5), st.data())
def test_any_rows_of_any_zones_read_as_a_filter_does(
    rows: int, zone_rows: int, page_rows: int, draw: st.DataObject
) -> None:
    store = open_store("memory://any-rows")
    table = pa.Table.from_pylist(
        [
            {
                "n": n,
                "t": None if n % 3 else str(n),
                "few": n % 2,  # has a dictionary
                "place": None if n % 7 == 6 else {"x": n, "tags": [n] * (n % 4)},
                "list": None if n % 5 == 4 else list(range(n % 4)),
                "pair": None if n % 3 == 1 else {"a": n, "b": str(n)},
            }
            for n in range(rows)
        ],
        SOME_NESTED,
    )
    block, layout, schema = stored(store, table, zone_rows=zone_rows, page_rows=page_rows)
    zones = draw.draw(st.lists(st.integers(0, len(layout.zone_rows) - 1), unique=True, max_size=4))
    whole = [row for zone in zones for row in table.slice(zone * zone_rows, zone_rows).to_pylist()]
    wanted = draw.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
    columns = draw.draw(st.permutations(table.column_names))[: draw.draw(st.integers(1, 6))]

    found = read_block(store, block, schema, columns, zones, Cache(1 << 20), np.array(wanted, np.bool_))

    found.validate(full=True)
    assert found.to_pylist() == [
        {name: row[name] for name in columns} for row, keep in zip(whole, wanted, strict=True) if keep
    ]


def test_no_columns_still_count_rows(store: Store) -> None:
    block, _, schema = stored(store, EVERYTHING, zone_rows=2)

    assert read_block(store, block, schema, []).num_rows == 3
    assert read_block(store, block, schema, [], [1]).num_rows == 1
    assert read_block(store, block, schema, ["big"], []).num_rows == 0


def test_an_unknown_column_is_named(store: Store) -> None:
    block, _, schema = stored(store, EVERYTHING)

    with pytest.raises(SchemaError, match="bgi"):
        read_block(store, block, schema, ["bgi"])


def test_a_block_without_rows_is_refused() -> None:
    with pytest.raises(SchemaError, match="at least one row"):
        write_block(EVERYTHING.slice(0, 0), Schema.create(EVERYTHING.schema))


def test_rows_are_fitted_before_they_are_written(store: Store) -> None:
    schema = Schema.create(pa.schema([("a", pa.int64()), ("at", pa.timestamp("us"))]))
    rows = pa.table({"at": pa.array([1_000], pa.timestamp("ns")), "a": pa.array([1], pa.uint8())})

    block, _, _ = stored(store, rows, schema)

    assert read_block(store, block, schema, ["a", "at"]).to_pylist() == [
        {"a": 1, "at": datetime(1970, 1, 1, 0, 0, 0, 1)}
    ]
    with pytest.raises(SchemaError, match="'at'"):
        write_block(rows.set_column(0, "at", pa.array([1_001], pa.timestamp("ns"))), schema)


# --- what the file is like


def test_the_file_is_plain_parquet_to_others(store: Store) -> None:
    block, layout, schema = stored(store, EVERYTHING, zone_rows=2)
    data = store.read(block.key)

    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)

    assert str(file.read().to_pydict()) == str(EVERYTHING.to_pydict())
    assert file.num_row_groups == 2
    assert layout.hash == xxhash.xxh3_128_hexdigest(data)
    assert layout.size == len(data) == layout.footer_offset + layout.footer_length
    assert {column.name: column.metadata[b"PARQUET:field_id"] for column in file.schema_arrow} == {
        field.physical_name: str(field.id).encode() for field in schema.fields
    }
    assert file.schema_arrow.field("at").type == pa.timestamp("us", "UTC")
    assert file.schema_arrow.field("local").type == pa.timestamp("us")


def chunk(data: bytes, path: str, zone: int = 0) -> pq.ColumnChunkMetaData:
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(zone)
    return next(group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == path)


def test_floats_have_neither_parquet_statistics_nor_dictionaries() -> None:
    nested = pa.array([{"x": [1.0], "y": 1}] * 100)
    rows = pa.table({"d": [1.0] * 100, "f": pa.array([1.0] * 100, pa.float32()), "s": nested, "n": [1] * 100})

    data, _ = write_block(rows, Schema.create(rows.schema))

    for path in ("d", "f", "s.x.list.element"):
        assert not chunk(data, path).is_stats_set
        assert not chunk(data, path).has_dictionary_page
    for path in ("n", "s.y"):
        assert chunk(data, path).is_stats_set
        assert chunk(data, path).has_dictionary_page


def test_dictionaries_are_for_columns_that_repeat() -> None:
    rows = pa.table(
        {"unique": range(10_000), "few": [n % 100 for n in range(10_000)], "many": [n % 1_000 for n in range(10_000)]}
    )

    data, layout = write_block(rows, Schema.create(rows.schema))

    assert [chunk(data, path).has_dictionary_page for path in rows.column_names] == [False, True, False]
    assert [layout.block_statistics[row_id].distinct_count[0].as_py() for row_id in (1, 2, 3)] == [None, 100, None]


def test_long_texts_get_no_parquet_statistics() -> None:
    rows = pa.table({"long": ["x" * 1_000], "short": ["x"]})

    data, _ = write_block(rows, Schema.create(rows.schema))

    assert [chunk(data, path).is_stats_set for path in rows.column_names] == [False, True]


def test_statistics_are_those_of_zones_and_of_the_block() -> None:
    rows = pa.table(
        {"n": [5, None, 7, 1, 1], "s": [{"x": "a"}, None, {"x": "c"}, {"x": "b"}, {"x": None}], "l": [[1]] * 5}
    )

    data, layout = write_block(rows, Schema.create(rows.schema), BlockOptions(zone_rows=2))

    assert layout.zone_statistics.keys() == layout.block_statistics.keys() == {1, 3}
    assert layout.zone_statistics[1].min.to_pylist() == [5, 1, 1]
    assert layout.block_statistics[1].max.to_pylist() == [7]
    assert layout.block_statistics[3].null_count.to_pylist() == [2]
    sizes = [chunk(data, "n", zone).total_compressed_size for zone in range(3)]
    assert layout.zone_statistics[1].size.to_pylist() == sizes
    assert layout.block_statistics[1].size.to_pylist() == [sum(sizes)]


# --- what is read


def test_only_what_is_needed_is_read() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    rows = np.random.default_rng(1)
    table = pa.table({name: rows.integers(0, 2**60, 100_000) for name in "abc"})
    block, layout, schema = stored(store, table, zone_rows=25_000)
    cache = Cache(1 << 20)
    store.reset()

    read_block(store, block, schema, ["b"], [2], cache)
    read_block(store, block, schema, ["b"], [1, 3], cache)

    sizes = layout.zone_statistics[2].size.to_pylist()
    assert [size for _, _, size in store.reads] == [layout.footer_length, sizes[2], sizes[1], sizes[3]]


def test_only_the_pages_of_wanted_rows_are_read() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    rows = np.random.default_rng(1)
    table = pa.table({"a": rows.integers(0, 2**60, 100_000), "b": rows.integers(0, 200, 100_000).astype(str)})
    block, layout, schema = stored(store, table, zone_rows=50_000)
    cache = Cache(1 << 20)
    read_block(store, block, schema, [], cache=cache)
    wanted = np.zeros(50_000, np.bool_)
    wanted[[5, 9_000, 49_999]] = True
    store.reset()

    found = read_block(store, block, schema, ["a"], [1], cache, wanted)

    assert found["a"].to_pylist() == table["a"].to_numpy()[[50_005, 59_000, 99_999]].tolist()
    page = 8_192 * 8
    first, last = (size for _, _, size in store.reads)  # the first two pages lie together
    assert 2 * page < first < 2.02 * page
    assert (50_000 - 6 * 8_192) * 8 < last < (50_000 - 6 * 8_192) * 8 + 100

    store.reset()
    read_block(store, block, schema, ["b"], [1], cache, wanted)
    assert store.bytes_read < layout.zone_statistics[2].size[1].as_py()  # its dictionary, and three of seven pages

    store.reset()
    assert read_block(store, block, schema, ["a", "b"], [0], cache, np.zeros(50_000, np.bool_)).num_rows == 0
    assert not store.reads


# --- damage


def small(store: Store) -> tuple[bytes, BlockFile, Schema, pa.Table]:
    rows = pa.table({"n": [1, 2, 3, 4], "t": ["a", "b", None, "a"], "d": [0.5, 1.5, None, 2.5]})
    block, _, schema = stored(store, rows, zone_rows=2, page_rows=1)
    return store.read(block.key), block, schema, rows


def reading(store: Store, block: BlockFile, schema: Schema) -> pa.Table:
    return read_block(store, block, schema, schema.names, cache=Cache(0))


def test_every_flipped_byte_is_corrupt_or_harmless(store: Store) -> None:
    data, block, schema, rows = small(store)
    harmless = set()
    second = np.array([False, True] * 2)
    for place, flip in flips(range(len(data)), (1, 0x80, 0xFF)):
        damaged = bytearray(data)
        damaged[place] ^= flip
        store.create(block.key, bytes(damaged), overwrite=True)
        with suppress(Corrupt):
            assert read_block(store, block, schema, rows.column_names, None, Cache(0), second) == rows.filter(
                pa.array(second)
            )
        with suppress(Corrupt):
            assert reading(store, block, schema) == rows
            harmless.add(place)

    assert harmless == {0, 1, 2, 3}  # the magic word at the beginning, which nobody reads


def test_every_truncation_is_corrupt(store: Store) -> None:
    data, block, schema, _ = small(store)
    for length in range(len(data)):
        store.create(block.key, data[:length], overwrite=True)
        with pytest.raises(Corrupt, match=block.key):
            reading(store, block, schema)


def test_a_footer_that_is_not_where_it_was_is_corrupt(store: Store) -> None:
    _, block, schema, _ = small(store)
    for moved in (
        replace(block, footer_offset=block.footer_offset - 1),
        replace(block, footer_offset=block.footer_offset + 4, footer_length=block.footer_length - 4),
        replace(block, footer_length=block.footer_length - 1),
        replace(block, footer_length=4),
        replace(block, footer_length=0),
    ):
        with pytest.raises(Corrupt):
            reading(store, moved, schema)


def test_another_blocks_chunks_are_corrupt(store: Store) -> None:
    _, block, schema, rows = small(store)
    other, _ = write_block(
        rows.slice(0, 3).append_column("x", pa.array([1, 2, 3])).select(["n", "t", "d"]),
        schema,
        BlockOptions(zone_rows=2),
    )
    data = store.read(block.key)

    store.create(block.key, other[: block.footer_offset] + data[block.footer_offset :], overwrite=True)

    with pytest.raises(Corrupt):
        reading(store, block, schema)


def test_a_missing_file_is_not_found(store: Store) -> None:
    _, block, schema, _ = small(store)
    store.delete([block.key])

    with pytest.raises(NotFound, match=block.key):
        reading(store, block, schema)


# --- columns that changed since


def changed(schema: Schema, *fields: Field) -> Schema:
    return Schema(schema.id + 1, fields)


def test_renamed_columns_are_read_by_their_physical_names(store: Store) -> None:
    block, _, schema = stored(store, pa.table({"a": [1], "b": [2]}))
    a, b = schema.fields
    swapped = changed(schema, replace(a, name="b"), replace(b, name="a"))

    assert read_block(store, block, swapped, ["a", "b"]).to_pylist() == [{"a": 2, "b": 1}]


def test_a_column_of_an_old_name_is_not_taken_for_the_new_one(store: Store) -> None:
    block, _, schema = stored(store, pa.table({"a": [1], "b": [2]}))
    (again,) = assign_field_ids([pa.field("b", pa.int64())], iter([3]), used_names=["a", "b"])

    assert read_block(store, block, changed(schema, schema.fields[0], again), ["a", "b"]).to_pylist() == [
        {"a": 1, "b": None}
    ]


@pytest.mark.parametrize(
    ("data_type", "default", "expected"),
    [
        (pa.int64(), 7, 7),
        (pa.string(), "x", "x"),
        (pa.decimal128(5, 2), "1.50", Decimal("1.50")),
        (pa.int64(), None, None),
        (pa.struct([("x", pa.int64())]), None, None),
        (pa.list_(pa.int64()), None, None),
        (pa.timestamp("us", "UTC"), "2020-01-01T00:00:00+00:00", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_columns_that_a_file_lacks_hold_their_default(
    store: Store, data_type: pa.DataType, default: Any, expected: Any
) -> None:
    block, _, schema = stored(store, pa.table({"a": [1, 2]}))
    (added,) = assign_field_ids([pa.field("z", data_type)], iter(range(2, 9)))
    grown = changed(schema, *schema.fields, replace(added, initial_default=default))

    assert read_block(store, block, grown, ["z", "a"]).to_pylist() == [{"z": expected, "a": 1}, {"z": expected, "a": 2}]
    assert read_block(store, block, grown, ["z"]).schema.field("z").type == added.type


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.int8(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(20, 4)),
        (pa.date32(), pa.timestamp("us")),
    ],
)
def test_narrower_columns_are_widened(store: Store, narrow: pa.DataType, wide: pa.DataType) -> None:
    values = pa.array([1, None, 3], pa.int32())
    values = values.cast(pa.decimal128(38, 2)).cast(narrow) if pa.types.is_decimal(narrow) else values.cast(narrow)
    block, _, schema = stored(store, pa.table({"a": values}))
    widened = changed(schema, replace(schema.fields[0], type=wide, type_changed=True))

    found = read_block(store, block, widened, ["a"])

    assert found.column("a").combine_chunks() == values.cast(wide)


def test_nested_fields_may_be_renamed_added_dropped_and_widened(store: Store) -> None:
    item = pa.struct([("x", pa.int32()), ("gone", pa.string()), ("y", pa.string())])
    rows = pa.table(
        {
            "s": pa.array([{"x": 1, "gone": "g", "y": "a"}, None, {"x": None, "gone": "g", "y": "b"}], item),
            "l": pa.array([[{"x": 2, "gone": "g", "y": "c"}], None, []], pa.list_(item)),
            "m": pa.array([[("k", {"x": 3, "gone": "g", "y": "d"})], None, []], pa.map_(pa.string(), item)),
        }
    )
    block, _, schema = stored(store, rows, zone_rows=2)

    def evolve(struct: Field, row_id: int) -> Field:
        x, _, y = struct.children
        wider = replace(x, type=pa.int64(), type_changed=True)
        added = Field(row_id, "z", "z", pa.float64())
        children = (added, replace(y, name="why"), wider)
        return replace(struct, children=children, type=pa.struct([child.arrow for child in children]))

    s, list_, map_ = schema.fields
    element = evolve(list_.children[0], 101)
    value = evolve(map_.children[1], 102)
    grown = changed(
        schema,
        evolve(s, 100),
        replace(list_, children=(element,), type=pa.list_(element.arrow)),
        replace(map_, children=(map_.children[0], value), type=pa.map_(pa.string(), value.arrow)),
    )

    for zones in (None, [0, 1], [1]):
        found = read_block(store, block, grown, ["s", "l", "m"], zones)
        found.validate(full=True)
        expected = [
            {
                "s": {"z": None, "why": "a", "x": 1},
                "l": [{"z": None, "why": "c", "x": 2}],
                "m": [("k", {"z": None, "why": "d", "x": 3})],
            },
            {"s": None, "l": None, "m": None},
            {"s": {"z": None, "why": "b", "x": None}, "l": [], "m": []},
        ]
        assert found.to_pylist() == (expected[2:] if zones == [1] else expected)


def test_a_struct_whose_every_field_is_new_is_still_null_where_it_was(store: Store) -> None:
    block, _, schema = stored(store, pa.table({"s": pa.array([{"x": 1}, None])}))
    added = Field(9, "x", "x_9", pa.int64())
    grown = changed(schema, replace(schema.fields[0], children=(added,), type=pa.struct([added.arrow])))

    assert read_block(store, block, grown, ["s"]).to_pylist() == [{"s": {"x": None}}, {"s": None}]


def test_columns_whose_names_begin_alike_are_told_apart(store: Store) -> None:
    block, _, schema = stored(store, pa.table({"a": [{"b": 1}], "a.b": [2], "a_b": [3]}))

    assert read_block(store, block, schema, ["a.b", "a"]).to_pylist() == [{"a.b": 2, "a": {"b": 1}}]
