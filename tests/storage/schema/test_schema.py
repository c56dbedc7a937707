import json
import math
import pickle
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuse_storage import Field, Schema, SchemaError, StoredTable, Unsupported
from fuse_storage import location as location_module
from fuse_storage.schema.names import check_names
from fuse_storage.schema.schema import assign_field_ids
from fuse_storage.schema.types import encode_default

NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        (
            "address",
            pa.struct([pa.field("city", pa.string(), nullable=False), ("geo", pa.struct([("lat", pa.float64())]))]),
        ),
        ("tags", pa.list_(pa.string())),
        ("scores", pa.map_(pa.string(), pa.struct([("value", pa.float32())]))),
        pa.field("at", pa.timestamp("ns", "Europe/Berlin"), metadata={"comment": "when it happened"}),
    ]
)


def test_columns_are_numbered_in_order_parents_first() -> None:
    schema = Schema.create(NESTED)

    numbered = [(field.id, field.name) for top in schema.fields for field in top.walk()]
    assert numbered == [
        (1, "id"),
        (2, "address"),
        (3, "city"),
        (4, "geo"),
        (5, "lat"),
        (6, "tags"),
        (7, "element"),
        (8, "scores"),
        (9, "key"),
        (10, "value"),
        (11, "value"),
        (12, "at"),
    ]


def test_a_schema_survives_json_and_pickle() -> None:
    schema = Schema.create(NESTED, schema_id=3)

    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_json_is_readable() -> None:
    schema = Schema.create(
        pa.schema([pa.field("price", pa.decimal128(10, 2), nullable=False), ("tags", pa.list_(pa.string()))])
    )

    assert schema.to_json() == {
        "id": 0,
        "fields": [
            {"id": 1, "name": "price", "type": "decimal(10,2)", "nullable": False},
            {
                "id": 2,
                "name": "tags",
                "type": "array",
                "nullable": True,
                "fields": [{"id": 3, "name": "element", "type": "string", "nullable": True}],
            },
        ],
    }


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "tinyint"),
        (pa.int16(), "smallint"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.binary(), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(38, 38), "decimal(38,38)"),
        (pa.struct([("a", pa.int8())]), "struct"),
        (pa.list_(pa.int8()), "array"),
        (pa.map_(pa.int8(), pa.int8()), "map"),
    ],
)
def test_types_have_sparks_names(arrow: pa.DataType, name: str) -> None:
    (field,) = Schema.create(pa.schema([("c", arrow)])).fields

    assert field.to_json()["type"] == name
    assert Field.from_json(field.to_json()).type == field.type


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "+02:00"), pa.timestamp("us", "UTC")),
        (pa.decimal256(30, 2), pa.decimal128(30, 2)),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.large_list(pa.uint8()), pa.list_(pa.field("element", pa.int16()))),
        (pa.list_(pa.uint8(), 3), pa.list_(pa.field("element", pa.int16()))),
        (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
        (pa.uuid(), pa.binary()),
    ],
)
def test_types_that_spark_lacks_are_widened(given: pa.DataType, kept: pa.DataType) -> None:
    assert Schema.create(pa.schema([("c", given)])).arrow.field("c").type == kept


@pytest.mark.parametrize(
    "given",
    [
        pa.null(),
        pa.duration("us"),
        pa.time64("us"),
        pa.month_day_nano_interval(),
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.struct([]),
    ],
)
def test_types_without_an_equivalent_are_refused_by_name(given: pa.DataType) -> None:
    for data_type, where in [(given, "'c'"), (pa.list_(given), "'c.element'"), (pa.struct([("x", given)]), "'c.x'")]:
        with pytest.raises(SchemaError, match=f"column {where}"):
            Schema.create(pa.schema([("c", data_type)]))


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(SchemaError, match="called 'a'"):
        Schema.create(pa.schema([("a", pa.int8()), ("a", pa.int8())]))
    with pytest.raises(SchemaError, match=r"struct 's'.*'x'"):
        Schema.create(pa.schema([("s", pa.struct([("x", pa.int8()), ("x", pa.int8())]))]))


def test_physical_names_differ_even_without_case_and_hold_no_dots() -> None:
    schema = Schema.create(pa.schema([("a", pa.int8()), ("A", pa.int8()), ("x.y", pa.int8()), ("x_y", pa.int8())]))

    assert schema.names == ["a", "A", "x.y", "x_y"]
    assert schema.parquet_schema.names == ["a", "A_2", "x_y", "x_y_4"]


def test_a_physical_name_is_never_used_again() -> None:
    (again,) = assign_field_ids([pa.field("City", pa.string())], iter([7]), used_names=["city"])

    assert (again.id, again.name, again.physical_name) == (7, "City", "City_7")


def test_a_made_up_physical_name_never_meets_a_given_one() -> None:
    schema = Schema.create(pa.schema([("a_2", pa.int8()), ("A", pa.int8()), ("a", pa.int8()), ("a_3", pa.int8())]))

    assert len({name.lower() for name in schema.parquet_schema.names}) == 4


def test_the_physical_schema_carries_ids() -> None:
    physical = Schema.create(NESTED).parquet_schema

    assert physical.field("id").metadata == {b"PARQUET:field_id": b"1"}
    assert physical.field("address").type.field("city").metadata == {b"PARQUET:field_id": b"3"}
    assert physical.field("tags").type.value_field.metadata == {b"PARQUET:field_id": b"7"}
    assert physical.field("scores").type.item_field.metadata == {b"PARQUET:field_id": b"10"}


@pytest.mark.parametrize("path", ["address.geo.lat", ("address", "geo", "lat"), ["address", "geo", "lat"]])
def test_nested_fields_are_found(path: Any) -> None:
    assert Schema.create(NESTED).find(path).id == 5


def test_a_name_with_dots_is_found_before_a_path() -> None:
    schema = Schema.create(pa.schema([("a.b", pa.int8()), ("a", pa.struct([("b", pa.int8())]))]))

    assert (schema.find("a.b").id, schema.find(("a", "b")).id) == (1, 3)


def test_case_counts_only_if_asked_to() -> None:
    schema = Schema.create(pa.schema([("City", pa.string()), ("x", pa.int8()), ("X", pa.int8())]))

    assert schema.find("city", case_sensitive=False).id == 1
    assert schema.find("X").id == 3
    with pytest.raises(SchemaError, match="did you mean"):
        schema.find("city")
    with pytest.raises(SchemaError, match="ambiguous"):
        schema.find("x", case_sensitive=False)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("adress", "did you mean ['address']"),
        ("address.town", "struct 'address'"),
        ("tags.element", "has no fields"),
        ((), "empty path"),
        ("id.x", "has no fields"),
    ],
)
def test_what_is_not_found_says_what_there_is(path: Any, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        Schema.create(NESTED).find(path)

    assert message in str(raised.value)


def test_leaves_are_plain_fields_outside_lists_and_maps() -> None:
    assert [(path, field.id) for path, field in Schema.create(NESTED).leaves()] == [
        (("id",), 1),
        (("address", "city"), 3),
        (("address", "geo", "lat"), 5),
        (("at",), 12),
    ]


def test_fields_are_found_by_id() -> None:
    schema = Schema.create(NESTED)

    assert schema.by_id(5).name == "lat"
    with pytest.raises(SchemaError, match="id 99"):
        schema.by_id(99)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (pa.int64(), 5),
        (pa.bool_(), True),
        (pa.string(), "x"),
        (pa.binary(), b"\x00\xff"),
        (pa.float64(), 1.5),
        (pa.float64(), math.inf),
        (pa.float64(), math.nan),
        (pa.decimal128(10, 2), Decimal("1.20")),
        (pa.date32(), date(2020, 2, 29)),
        (pa.timestamp("us"), datetime(2020, 1, 1, 12, 30, 0, 5)),
        (pa.timestamp("us", "UTC"), datetime(2020, 1, 1, tzinfo=UTC)),
        (pa.int64(), None),
    ],
)
def test_defaults_survive_json(data_type: pa.DataType, value: Any) -> None:
    field = Field(1, "c", "c", data_type, initial_default=encode_default(value))

    back = Field.from_json(json.loads(json.dumps(field.to_json())))

    assert str(back.initial_scalar) == str(pa.scalar(value, data_type))


def test_a_default_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(SchemaError, match="cannot be a default"):
        encode_default([1])


def test_a_type_of_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="geography"):
        Schema.from_json({"id": 0, "fields": [{"id": 1, "name": "g", "type": "geography", "nullable": True}]})


def test_two_columns_under_one_name_in_files_are_refused() -> None:
    fields = [Field(1, "a", "a_b", pa.int64()), Field(2, "b", "A_b", pa.int64())]

    check_names([replace(fields[0], physical_name="c"), fields[1]])
    with pytest.raises(SchemaError, match="'a' and 'b' under one name in files"):
        check_names(fields)


def test_comments_are_kept() -> None:
    assert Schema.create(NESTED).find("at").comment == "when it happened"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"": pa.int64()}, "the table would have a column without a name"),
        ({"s": pa.struct({"": pa.int64()})}, "'s' would have a column without a name"),
        ({"id": pa.int64(), "ID": pa.int64()}, "table would have columns 'id' and 'ID', which differ only in case"),
        (
            {"s": pa.struct([("a", pa.int8()), ("b", pa.int8()), ("A", pa.int8())])},
            "'s' would have columns 'a' and 'A'",
        ),
        ({"l": pa.list_(pa.struct([("é", pa.int8()), ("É", pa.int8())]))}, "'element' would have columns 'é' and 'É'"),
    ],
)
def test_no_table_is_made_of_names_that_are_empty_or_differ_only_in_case(
    monkeypatch: pytest.MonkeyPatch, url: str, columns: dict[str, pa.DataType], says: str
) -> None:
    schema = pa.schema(list(columns.items()))
    with pytest.raises(SchemaError, match=says):
        StoredTable.create(url, schema)

    monkeypatch.setattr(location_module, "check_names", lambda fields: None)  # as an earlier version made it
    table = StoredTable.create(url, schema)
    assert [table.snapshot.schema.find([name]).name for name in columns] == list(columns)
