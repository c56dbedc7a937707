import math
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuse_storage import Schema, SchemaError
from fuse_storage.schema.conform import conform_rows, rename_table_fields


def fitted(values: pa.Array, data_type: pa.DataType, nullable: bool = True) -> pa.Array:
    schema = Schema.create(pa.schema([pa.field("c", data_type, nullable)]))
    return conform_rows(pa.table({"c": values}), schema).column("c").combine_chunks()


def test_columns_are_matched_by_name_and_put_in_order() -> None:
    schema = Schema.create(pa.schema([("a", pa.int64()), ("b", pa.string())]))

    found = conform_rows(pa.record_batch({"b": ["x"], "a": [1]}), schema)

    assert found.schema == schema.arrow
    assert found.to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"a": [1]}), "lack column 'b', which is NOT NULL and has no default"),
        (pa.table({"a": [1], "b": ["x"], "z": [0]}), "'z' that the table lacks: it has \\['a', 'b'\\]"),
        (pa.table({"a": [1], "b": ["x"], "bb": [0]}), "'bb' that the table lacks: did you mean 'b'"),
        (pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), "more than one column called 'a'"),
        (pa.table({"A": [1], "b": ["x"]}), "'A' that the table lacks: did you mean 'a'"),
    ],
    ids=["missing", "unknown", "misspelt", "twice", "case"],
)
def test_columns_that_do_not_match_are_named(rows: pa.Table, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        conform_rows(rows, Schema.create(pa.schema([("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])))


def test_what_rows_lack_is_its_default_or_null() -> None:
    schema = Schema.create(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())]))
    fields = (*schema.fields[:2], replace(schema.fields[2], nullable=False, write_default="2026-01-02"))

    found = conform_rows(pa.table({"a": [1, 2]}), Schema(0, fields))

    assert found.to_pylist() == [{"a": row, "b": None, "c": date(2026, 1, 2)} for row in (1, 2)]


PERSON = pa.struct(
    [("name", pa.string()), ("born", pa.date32()), ("home", pa.struct([("x", pa.int32()), ("y", pa.int32())]))]
)


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize(
    ("given", "data_type", "expected"),
    [
        (
            pa.array([{"name": "z"}, {"name": "a"}, None, {"name": None}]),
            PERSON,
            [
                *({"name": name, "born": None, "home": None} for name in "za"),
                None,
                dict.fromkeys(("name", "born", "home")),
            ],
        ),
        (
            pa.array([{"home": {"y": 1}, "name": "a"}, {"home": None, "name": "b"}]),
            PERSON,
            [{"name": "a", "born": None, "home": {"x": None, "y": 1}}, {"name": "b", "born": None, "home": None}],
        ),
        (
            pa.array([[{"y": 0}], [{"y": 1}, None], None, [], [{"y": 2}]]),
            pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())])),
            [[{"x": None, "y": 0}], [{"x": None, "y": 1}, None], None, [], [{"x": None, "y": 2}]],
        ),
        (
            pa.array(
                [[("j", {"y": 9})], [("k", {"y": 1})], None, []], pa.map_(pa.string(), pa.struct([("y", pa.int16())]))
            ),
            pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())])),
            [[("j", {"x": None, "y": 9})], [("k", {"x": None, "y": 1})], None, []],
        ),
    ],
    ids=["fields", "within", "list", "map"],
)
def test_fields_that_structs_lack_are_null(
    given: pa.Array, data_type: pa.DataType, expected: list[Any], cut: int
) -> None:
    assert fitted(given.slice(cut), data_type).to_pylist() == expected[cut:]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.array([{"name": "a", "borne": 1}]), "column 'c' has in the rows a field 'borne' .* did you mean 'born'"),
        (pa.array([{"home": {"z": 1}}]), "column 'c.home' has in the rows a field 'z'"),
    ],
)
def test_fields_that_the_table_lacks_are_named(given: pa.Array, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        fitted(given, PERSON)


def test_a_field_that_may_not_be_null_may_not_be_missing() -> None:
    with pytest.raises(SchemaError, match="lack field 'x' of column 'c', which is NOT NULL"):
        fitted(pa.array([{"y": 1}]), pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.int64())]))


CATEGORIES = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint8()), pa.array(["a", "b"], pa.string_view()))
"""Texts as Polars has those of its Categorical and Enum."""
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["a", None], pa.string_view()))


@pytest.mark.parametrize(
    ("values", "data_type", "expected"),
    [
        (pa.array([1, None], pa.int64()), pa.int8(), [1, None]),
        (pa.array([255], pa.uint8()), pa.int16(), [255]),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
        (pa.array([7], pa.int64()), pa.decimal128(10, 2), [Decimal("7.00")]),
        (pa.array([7], pa.int64()), pa.float64(), [7.0]),
        (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
        (pa.array([Decimal("1.50")]), pa.decimal128(10, 1), [Decimal("1.5")]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (CATEGORIES, pa.string(), ["a", "b", None]),
        (CATEGORIES[1:], pa.string(), ["b", None]),
        (
            pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), CATEGORIES),
            pa.list_(pa.string()),
            [["a", "b"], [None]],
        ),
        (
            pa.StructArray.from_arrays([CATEGORIES], ["x"]),
            pa.struct([("x", pa.string())]),
            [{"x": "a"}, {"x": "b"}, {"x": None}],
        ),
        (
            pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pa.array(["k", "l", "m"]), CATEGORIES),
            pa.map_(pa.string(), pa.string()),
            [[("k", "a")], [("l", "b"), ("m", None)]],
        ),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), pa.array([b"a"], pa.binary_view())),
            pa.binary(),
            [b"a", None],
        ),
        (
            pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["a", None], pa.string_view()))[
                1:
            ],
            pa.string(),
            ["a", None, None],
        ),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array([[1], [2, None]], pa.list_(pa.int32()))),
            pa.list_(pa.int64()),
            [[2, None], None, [1]],
        ),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([{"x": 1}], pa.struct([("x", pa.int16())]))),
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
            [{"x": 1, "y": None}] * 2,
        ),
        (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
        (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array([date(2020, 1, 1)], pa.date64()), pa.date32(), [date(2020, 1, 1)]),
        (pa.array([1_000], pa.timestamp("ns")), pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([1], pa.timestamp("s")), pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 1)]),
        (pa.nulls(2), pa.int64(), [None, None]),
        (pa.nulls(1), pa.list_(pa.int64()), [None]),
        (pa.array([[1], None, []], pa.large_list(pa.uint8())), pa.list_(pa.int16()), [[1], None, []]),
        (pa.array([{"x": 1}], pa.struct([("x", pa.uint8())])), pa.struct([("x", pa.int16())]), [{"x": 1}]),
        (
            pa.array([[("k", 1)]], pa.map_(pa.large_string(), pa.uint8())),
            pa.map_(pa.string(), pa.int16()),
            [[("k", 1)]],
        ),
    ],
)
def test_values_that_fit_exactly_are_taken(values: pa.Array, data_type: pa.DataType, expected: list[Any]) -> None:
    assert fitted(values, data_type).to_pylist() == expected


def test_an_instant_stays_the_same_instant() -> None:
    values = pa.array([0], pa.timestamp("ms", "America/New_York"))

    assert fitted(values, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist() == [0]


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (pa.array([128], pa.int64()), pa.int8()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([1.0]), pa.int64()),
        (pa.array([1.1], pa.float64()), pa.float32()),
        (pa.array([math.nan]), pa.float32()),
        (pa.array([Decimal("1.55")]), pa.decimal128(10, 1)),
        (pa.array([10**9]), pa.decimal128(5, 0)),
        (pa.array(["5"]), pa.int64()),
        (pa.array([5]), pa.string()),
        (pa.array([True]), pa.int64()),
        (pa.array([b"a"]), pa.string()),
        (pa.array([1_001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([date(2020, 1, 1)]), pa.timestamp("us")),
        (pa.array([0], pa.time64("us")), pa.int64()),
        (pa.array([{"y": 1}]), pa.struct([("x", pa.int64())])),
        (pa.array([{"x": "1"}]), pa.struct([("x", pa.int64())])),
        (pa.array([["1"]]), pa.list_(pa.int64())),
        (pa.array([[1]]), pa.int64()),
        (pa.array([1]), pa.list_(pa.int64())),
    ],
)
def test_values_that_would_change_are_refused_by_column(values: pa.Array, data_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="'c"):
        fitted(values, data_type)


STRUCT = pa.struct([pa.field("x", pa.int64(), nullable=False)])
ENTRIES = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))


@pytest.mark.parametrize(
    ("values", "data_type", "where"),
    [
        (pa.array([1, None]), pa.int64(), "'c'"),
        (pa.array([{"x": None}], pa.struct([("x", pa.int64())])), STRUCT, "'c.x'"),
        (pa.array([[1, None]]), pa.list_(pa.field("element", pa.int64(), nullable=False)), "'c.element'"),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())), ENTRIES, "'c.value'"),
    ],
)
def test_null_in_not_null_is_refused_by_field(values: pa.Array, data_type: pa.DataType, where: str) -> None:
    with pytest.raises(SchemaError, match=f"column {where} is NOT NULL"):
        fitted(values, data_type, nullable=False)


def test_a_null_struct_may_lack_what_it_must_not_have_null() -> None:
    assert fitted(pa.array([None, {"x": 1}], pa.struct([("x", pa.int64())])), STRUCT).to_pylist() == [None, {"x": 1}]


def test_a_null_struct_fits_where_a_field_of_it_is_not_null_whatever_else_is_cast() -> None:
    values = pa.array([None, {"x": 1}, {"x": None}], pa.struct([("x", pa.int32())])).slice(0, 2)  # x itself is NULL
    assert fitted(values, STRUCT).to_pylist() == [None, {"x": 1}]
    entries = pa.array([[("k", 1)], None, [("l", 2)]], pa.map_(pa.string(), pa.int32()))
    assert fitted(entries, ENTRIES).to_pylist() == [[("k", 1)], None, [("l", 2)]]
    items = pa.array([[None, {"x": 1}], None], pa.list_(pa.struct([("x", pa.int32())])))
    assert fitted(items, pa.list_(STRUCT)).to_pylist() == [[None, {"x": 1}], None]


def test_renaming_reaches_every_depth_and_copies_nothing() -> None:
    rows = pa.table({"s": pa.array([None, {"x": [{"y": 1}]}, {"x": None}]), "n": pa.array([1, 2, None])})
    inner = pa.list_(pa.field("element", pa.struct([("Y", pa.int64())])))
    schema = pa.schema([pa.field("S", pa.struct([("X", inner)])), pa.field("N", pa.int64())])

    found = rename_table_fields(rows.slice(1), schema)

    found.validate(full=True)
    assert found.schema == schema
    assert found.to_pylist() == [{"S": {"X": [{"Y": 1}]}, "N": 2}, {"S": {"X": None}, "N": None}]
    assert found.column("N").chunk(0).buffers()[1].address == rows.column("n").chunk(0).buffers()[1].address
