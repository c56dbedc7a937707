"""Columns are stored in the form that suits their values, and every mix of forms reads as what was written."""

import uuid
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import cycle, product
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import Cache, Corrupt, InvalidArgument, Schema, WriteOptions, open_store
from fuse_storage.parquet import column_encoding, writer
from fuse_storage.parquet.column_encoding import COMPRESSIONS, DELTA, ColumnEncoding, choose_encoding
from fuse_storage.parquet.writer import BlockFile, BlockOptions, read_block, write_block
from tests.effort import flips

RANDOM = np.random.default_rng(5)
ROWS = 20_000
HEX = [f"{number:012x}" for number in RANDOM.integers(0, 1 << 48, ROWS).tolist()]
ALLOWED = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", DELTA}
"""Encodings that Spark 4.0.1 reads of all that may be written; RLE is that of levels."""


def auto(values: Any) -> ColumnEncoding:
    return choose_encoding(pa.array(values), uses_dictionary=False, compression="auto", level=1)


@pytest.mark.parametrize(
    ("values", "codec", "encoding"),
    [
        (np.arange(ROWS), "uncompressed", DELTA),
        (np.arange(ROWS)[::-1].astype(np.int16), "uncompressed", DELTA),
        ([None if n % 5 == 0 else n for n in range(ROWS)], "uncompressed", DELTA),
        ([date(2020, 1, 1) + timedelta(n // 9) for n in range(ROWS)], "uncompressed", DELTA),
        ([datetime(2020, 1, 1, tzinfo=UTC) + timedelta(0, n) for n in range(ROWS)], "uncompressed", DELTA),
        ([Decimal(n).scaleb(-2) for n in range(ROWS)], "uncompressed", DELTA),
        (RANDOM.integers(0, 1 << 10, ROWS), "uncompressed", DELTA),
        (RANDOM.integers(-(1 << 63), 1 << 62, ROWS), "uncompressed", None),
        (RANDOM.random(ROWS), "uncompressed", None),
        (np.zeros(ROWS), "lz4", None),
        (HEX, "zstd", None),
        ([bytes(RANDOM.bytes(16)) for _ in range(ROWS)], "uncompressed", None),
        (["the same text again"] * ROWS, "lz4", None),
        (RANDOM.random(ROWS) < 0.5, "uncompressed", None),
        (pa.nulls(ROWS, pa.int64()), "zstd", None),
        (np.arange(100), "zstd", None),
        (np.arange(16), "uncompressed", None),
        ([], "uncompressed", None),
    ],
)
def test_values_are_stored_as_suits_them(values: Any, codec: str, encoding: str | None) -> None:
    assert auto(values) == ColumnEncoding(codec, encoding)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_table_may_do_without_differences(compression: str) -> None:
    numbers = pa.array(np.arange(ROWS))

    assert choose_encoding(numbers, False, compression, 1, "auto").encoding == DELTA
    assert choose_encoding(numbers, False, compression, 1, "plain").encoding is None
    with pytest.raises(InvalidArgument, match=r"encoding = 'delta': it must be one of auto, plain"):
        WriteOptions.from_properties({"encoding": "delta"})


def test_blocks_of_a_table_without_differences_have_none() -> None:
    rows, schema = pa.table({"id": np.arange(ROWS)}), Schema.create(pa.schema([("id", pa.int64())]))

    for encoding, expected in (("auto", True), ("plain", False)):
        data, _ = write_block(rows, schema, WriteOptions.from_properties({"encoding": encoding}))
        used = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0).encodings
        assert (DELTA in used) is expected
        assert pq.read_table(pa.BufferReader(data)).column(0).to_pylist() == list(range(ROWS))


def test_every_part_of_a_column_is_tried() -> None:
    half = ROWS // 2

    assert auto(np.append(RANDOM.integers(-(1 << 63), 1 << 62, half), np.arange(half))).encoding == DELTA
    assert auto(np.append(np.arange(half), RANDOM.integers(0, 1 << 62, half))).encoding == DELTA
    assert auto(["same"] * half + [RANDOM.bytes(8).hex() * 9 for _ in range(half)]).codec == "zstd"


def test_long_texts_are_tried_in_part() -> None:
    texts = pa.array([RANDOM.bytes(40_000).hex() for _ in range(2_000)])

    assert column_encoding._sample(texts).nbytes < 2 << 20
    assert auto(texts).codec == "zstd"


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_codec_may_be_asked_for(compression: str) -> None:
    rows = pa.table({"n": range(ROWS), "x": RANDOM.random(ROWS), "t": HEX, "few": ["a", "b"] * (ROWS // 2)})

    data, _ = write_block(rows, Schema.create(rows.schema), BlockOptions(compression=compression))

    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    codecs = {group.column(number).compression for number in range(4)}
    assert codecs == {{"lz4": "LZ4", "zstd": "ZSTD", "uncompressed": "UNCOMPRESSED"}[compression]}
    assert DELTA in group.column(0).encodings  # the codec is asked for, not the encoding


def test_another_codec_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match="compression = 'snappy': it must be one of auto, uncompressed, lz4, zstd"
    ):
        WriteOptions.from_properties({"compression": "snappy"})


def test_a_column_without_null_is_required_in_its_block_alone() -> None:
    rows = pa.table({"a": [1, 2], "b": [1, None], "s": [{"x": 1}, {"x": 2}], "l": [[1], [2]]})
    schema = Schema.create(rows.schema)

    def required(table: pa.Table) -> dict[str, bool]:
        file = pq.ParquetFile(pa.BufferReader(write_block(table, schema)[0]))
        return {field.name: not field.nullable for field in file.schema_arrow}

    assert required(rows) == {"a": True, "b": False, "s": False, "l": False}
    assert required(rows.slice(0, 1)) == {"a": True, "b": True, "s": False, "l": False}


# --- every mix of forms

FORMS = [ColumnEncoding(codec, encoding) for codec, encoding in product(COMPRESSIONS[1:], (None, DELTA))]
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "flag": (pa.bool_(), lambda n: n % 2 == 0),
    "tiny": (pa.int8(), lambda n: n % 200 - 100),
    "small": (pa.int16(), lambda n: -n),
    "whole": (pa.int32(), lambda n: (-1) ** n * (1 << 31) // (n + 1) if n else -(1 << 31)),
    "big": (pa.int64(), lambda n: (1 << 63) - 1 if n % 2 else -(1 << 63)),
    "real": (pa.float64(), lambda n: [-0.0, 0.0, float("inf"), 1.5][n % 4]),
    "price": (pa.decimal128(9, 2), lambda n: Decimal(n).scaleb(-2)),
    "long": (pa.decimal128(18, 4), lambda n: -Decimal(n).scaleb(-4)),
    "huge": (pa.decimal128(38, 0), lambda n: Decimal(n) * 10**30),
    "day": (pa.date32(), lambda n: date(1, 1, 1) + timedelta(n * 99)),
    "at": (pa.timestamp("us", "UTC"), lambda n: datetime(1500, 1, 1, tzinfo=UTC) + timedelta(n, n)),
    "local": (pa.timestamp("us"), lambda n: datetime(1969, 12, 31, 23) + timedelta(0, n * 999)),
    "text": (pa.string(), lambda n: "日本😀"[: n % 4] * (n % 9)),
    "bytes": (pa.binary(), lambda n: bytes([n % 256]) * (n % 3)),
}
NESTED = pa.schema(
    [
        *((name, data_type) for name, (data_type, _) in TYPES.items()),
        ("place", pa.struct([("x", pa.int64()), ("day", pa.date32())])),
        ("list", pa.list_(pa.int32())),
    ]
)
DELTAS = {"tiny", "small", "whole", "big", "price", "long", "day", "at", "local", "place.x", "place.day"}


def made(count: int, null_every: int) -> pa.Table:
    def value(name: str, n: int) -> Any:
        return None if null_every and n % null_every == null_every - 1 else TYPES[name][1](n)

    return pa.Table.from_pylist(
        [
            {name: value(name, n) for name in TYPES}
            | {"place": None if null_every and n % 3 == 0 else {"x": value("big", n), "day": value("day", n)}}
            | {"list": None if null_every and n % 4 == 3 else [n] * (n % 3)}
            for n in range(count)
        ],
        NESTED,
    )


def written(rows: pa.Table, forms: list[ColumnEncoding], **options: int) -> tuple[bytes, BlockFile, Schema]:
    """A block whose columns have these forms in turn, as far as their types allow."""
    schema, chosen = Schema.create(rows.schema), cycle(forms)

    def choose(values: pa.Array, uses_dictionary: bool, *_: Any) -> ColumnEncoding:
        form = next(chosen)
        integers = not uses_dictionary and column_encoding._has_integers(values.type)
        return form if integers else ColumnEncoding(form.codec)

    with mock.patch.object(writer, "choose_encoding", choose):
        data, layout = write_block(rows, schema, BlockOptions(**options))
    return data, BlockFile("_b/x.parquet", layout.footer_offset, layout.footer_length), schema


@given(
    st.integers(1, 40),
    st.sampled_from([0, 2, 5]),
    st.integers(1, 15),
    st.integers(1, 6),
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=7),
    st.data(),
)
def test_any_rows_of_any_mix_of_forms_read_as_a_filter_does(
    count: int, null_every: int, zone_rows: int, page_rows: int, forms: list[ColumnEncoding], draw: st.DataObject
) -> None:
    rows = made(count, null_every)
    data, block, schema = written(rows, forms, zone_rows=zone_rows, page_rows=page_rows)
    store = open_store(f"memory://{uuid.uuid4().hex}")
    store.create(block.key, data)
    wanted = np.array(draw.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    columns = draw.draw(st.permutations(NESTED.names))[: draw.draw(st.integers(1, len(NESTED)))]

    found = read_block(store, block, schema, columns, row_mask=wanted)
    whole = read_block(store, block, schema, NESTED.names)

    found.validate(full=True)
    assert whole.equals(rows)
    assert found.equals(rows.select(columns).filter(pa.array(wanted)))
    assert str(pq.read_table(pa.BufferReader(data)).to_pydict()) == str(rows.to_pydict())  # -0.0 is not 0.0
    encodings = {
        encoding
        for group in [pq.read_metadata(pa.BufferReader(data)).row_group(0)]
        for number in range(group.num_columns)
        for encoding in group.column(number).encodings
    }
    assert encodings <= ALLOWED


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.codec} {form.encoding}")
def test_every_flipped_byte_of_any_form_is_corrupt_or_harmless(form: ColumnEncoding) -> None:
    rows = pa.table({"n": [1, 2, 3, 4], "t": ["a", "b", None, "a"]})
    data, block, schema = written(rows, [form], zone_rows=2, page_rows=1)
    store = open_store(f"memory://{uuid.uuid4().hex}")
    second = np.array([False, True] * 2)
    for place, flip in flips(range(4, len(data)), (1, 0xFF)):
        damaged = bytearray(data)
        damaged[place] ^= flip
        store.create(block.key, bytes(damaged), overwrite=True)
        with pytest.raises(Corrupt):
            read_block(store, block, schema, rows.column_names, cache=Cache(0))
        with suppress(Corrupt):
            found = read_block(store, block, schema, rows.column_names, None, Cache(0), second)
            assert found == rows.filter(pa.array(second))
