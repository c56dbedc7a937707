"""Rows that know fewer or other columns than the table: filled, refused by name, or added in the commit of the rows."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_storage.testing import check_invariants

PLACE = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])


def read(table: fuse.Table, where: str | None = None) -> list[dict[str, Any]]:
    """Matching rows, the same with indexes as without."""
    found = table.scan(where).to_arrow()
    assert found.equals(table.scan(where, indexes=False).to_arrow())
    return found.to_pylist()


@pytest.fixture
def table() -> fuse.Table:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("city", pa.string()), ("at", PLACE)])
    made = fuse.create_table(f"memory://less-{uuid4().hex}", schema, properties={"block_rows": 2}, key=["id"])
    made.append([{"id": row, "city": "Bonn", "at": {"lat": 1.0, "lon": 2.0}} for row in (1, 2)])
    made.add_column("country", "string", default="DE", nullable=False)
    made.create_index("by_country", "bloom", ["country"])
    return made


WRITES = {
    "append": lambda table, rows, **named: table.append(rows, **named),
    "overwrite": lambda table, rows, **named: table.overwrite(rows, "id > 2", **named),
    "merge": lambda table, rows, **named: table.merge(rows, **named),
}


@pytest.mark.parametrize("write", WRITES)
def test_columns_that_rows_lack_are_null_or_their_default(table, write):
    WRITES[write](table, [{"id": 3}, {"id": 4, "city": "Oslo"}])

    filled = {"at": None, "country": "DE"}
    assert read(table, "id >= 3") == [{"id": 3, "city": None} | filled, {"id": 4, "city": "Oslo"} | filled]
    assert len(read(table, "country = 'DE'")) == 4
    check_invariants(table.stored)


@pytest.mark.parametrize("write", WRITES)
def test_a_column_that_may_not_be_null_may_not_be_missing(table, write):
    before = table.snapshot
    with pytest.raises((fuse.SchemaError, fuse.InputError), match=r"lacks? column 'id'"):
        WRITES[write](table, pa.table({"city": ["Rome"]}))

    assert table.refresh().snapshot is before


@pytest.mark.parametrize("write", WRITES)
def test_a_field_that_a_struct_lacks_is_null(table, write):
    places = pa.array([{"lon": 3.0}], pa.struct([("lon", pa.float64())]))
    WRITES[write](table, pa.table({"id": pa.array([3], pa.int32()), "at": places}))

    assert read(table, "id = 3")[0]["at"] == {"lat": None, "lon": 3.0}
    assert len(read(table, "at.lat IS NULL")) == 1


@pytest.mark.parametrize("write", WRITES)
def test_columns_that_the_table_lacks_are_refused_with_near_names(table, write):
    before = table.snapshot
    with pytest.raises(fuse.SchemaError, match="'citty' that the table lacks: did you mean 'city'"):
        WRITES[write](table, [{"id": 3, "citty": "Oslo"}])

    assert table.refresh().snapshot is before


@pytest.mark.parametrize("write", WRITES)
def test_what_the_table_lacks_is_added_in_the_commit_of_the_rows(table, write):
    before = table.snapshot
    places = pa.array([{"lon": 3.0, "height": 7}], pa.struct([("lon", pa.float64()), ("height", pa.int64())]))
    rows = pa.table({"id": pa.array([3], pa.int64()), "at": places, "tags": [["a", "b"]], "price": [Decimal("1.50")]})
    WRITES[write](table, rows, merge_schema=True)

    assert table.snapshot.sequence == before.sequence + 1
    assert table.schema.names == ["id", "city", "at", "country", "tags", "price"]
    assert table.schema.field("id") == pa.field("id", pa.int64(), nullable=False)
    old = {"city": "Bonn", "at": {"lat": 1.0, "lon": 2.0, "height": None}, "country": "DE", "tags": None, "price": None}
    new = {
        "id": 3,
        "city": None,
        "at": {"lat": None, "lon": 3.0, "height": 7},
        "country": "DE",
        "tags": ["a", "b"],
        "price": Decimal("1.50"),
    }
    assert sorted(read(table), key=lambda row: row["id"]) == [{"id": row} | old for row in (1, 2)] + [new]
    assert [row["id"] for row in read(table, "at.height = 7")] == [3]
    assert [row["id"] for row in read(table, "id > 1")] == [2, 3]
    check_invariants(table.stored)


@pytest.mark.parametrize("write", WRITES)
def test_names_with_dots_are_added_and_widened_as_they_are(table, write):
    place = pa.struct([*PLACE, pa.field("of.lat", pa.int32())])
    at = pa.array([{"lat": 3.0, "lon": 4.0, "of.lat": 5}], place)
    one = pa.table({"id": pa.array([7], pa.int32()), "at": at, "at.lat": pa.array([6], pa.int32())})
    WRITES[write](table, one, merge_schema=True)
    wide = pa.array([{**at[0].as_py(), "of.lat": 1 << 40}], pa.struct([*PLACE, pa.field("of.lat", pa.int64())]))
    two = {"id": pa.array([8], pa.int32()), "at": wide, "at.lat": pa.array([1 << 41])}
    table.append(pa.table(two), merge_schema=True)

    assert read(table, "`at.lat` = 6") == read(table, "id = 7")
    assert read(table, "id = 7")[0].items() >= one.to_pylist()[0].items()
    assert read(table, "`at.lat` > 6")[0].items() >= {"id": 8, "at": wide[0].as_py(), "at.lat": 1 << 41}.items()
    assert read(table, "at.lat = 3.0 AND id = 7") == read(table, "id = 7")
    check_invariants(table.stored)


def test_a_merge_gives_rows_that_match_the_new_columns(table):
    table.merge([{"id": 2, "note": "known"}, {"id": 5, "note": "new"}], merge_schema=True)

    assert [(row["id"], row["city"], row["note"]) for row in read(table)] == [
        (1, "Bonn", None),
        (2, "Bonn", "known"),
        (5, None, "new"),
    ]


def test_rows_that_fit_and_no_rows_change_no_column(table):
    before = table.snapshot.schema
    table.append([{"id": 3}], merge_schema=True)
    snapshot = table.snapshot
    table.append(pa.schema([("id", pa.int32()), ("more", pa.int32())]).empty_table(), merge_schema=True)
    table.append([], merge_schema=True)

    assert table.snapshot is snapshot
    assert table.snapshot.schema == before


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        ({"id": [3], "City": ["x"]}, fuse.SchemaError, "'city', from which 'City' differs only in case"),
        ({"id": [3], "more": pa.nulls(1)}, fuse.SchemaError, "'more' of the rows has only NULLs"),
        ({"id": [True]}, fuse.SchemaError, "column 'id' is int32"),
        ({"id": [3], "city": [7]}, fuse.SchemaError, "column 'city' is string, and the rows have int64"),
        ({"id": [3], "wait": pa.array([1], pa.duration("s"))}, fuse.SchemaError, "'wait' has type duration"),
    ],
)
def test_what_cannot_be_added_is_refused(table, rows, error, says):
    before = table.snapshot
    with pytest.raises(error, match=says):
        table.append(pa.table(rows), merge_schema=True)

    assert table.refresh().snapshot is before


def test_a_column_with_an_index_is_not_widened_by_the_way(table):
    table.create_index("by_id", "bloom", ["id"])

    with pytest.raises(fuse.DefinitionError, match="column 'id' would become int64, and has index 'by_id' on it"):
        table.append(pa.table({"id": [1 << 40]}), merge_schema=True)
    table.append(pa.table({"id": [7]}))  # a value that fits needs no wider type
    assert len(read(table, "id = 7")) == 1


def test_rows_go_together_with_columns_that_others_add_meanwhile(table):
    other = fuse.open_table(table.stored.store)
    other.add_column("more", "int", default=4)
    other.add_column("at.height", "int")

    table.append([{"id": 3, "at": {"lat": 5.0}}])
    assert read(table, "id = 3") == [
        {"id": 3, "city": None, "at": {"lat": 5.0, "lon": None, "height": None}, "country": "DE", "more": 4}
    ]
    check_invariants(table.stored)


def test_two_who_add_columns_at_once_are_told(table):
    other = fuse.open_table(table.stored.store)
    other.append([{"id": 3, "x": 1}], merge_schema=True)

    with pytest.raises(fuse.Conflict, match="columns or indexes were changed by"):
        table.append([{"id": 4, "y": "a"}], merge_schema=True)
    table.refresh().append([{"id": 4, "y": "a"}], merge_schema=True)
    assert [(row["id"], row["x"], row["y"]) for row in read(table, "id > 2")] == [(3, 1, None), (4, None, "a")]
