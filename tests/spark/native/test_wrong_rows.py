"""Rows that a native scan could lose or invent, each seen going wrong in some engine, and how ours answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession

from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_storage import Field, Schema
from fuse_storage.schema import types
from tests.spark.each import true_on
from tests.spark.executed import rows_scanned
from tests.spark.plain import Judge, Tree, read, write

pytestmark = pytest.mark.every_spark

NAN = float("nan")


def table(
    spark: SparkSession, folder: Path, tables: Sequence[pa.Table], schema: Schema | None = None, **options: Any
) -> DataFrame:
    """All files are kept by every vote: what is lost, Spark's reader loses."""
    jvm_bridge(spark).optimize(spark._jsparkSession)
    judge = Judge(lambda trees: np.ones(len(tables), np.bool_))
    files = write(folder, tables, **options)
    return read(spark, files, schema or Schema.create(tables[0].schema), judge, url=str(folder))


def counts(df: DataFrame, conditions: Iterable[Column | str]) -> list[int]:
    """How many rows each is true on."""
    return list(map(len, true_on(df, conditions, "0 value")))


def scanned(df: DataFrame) -> int:
    df.collect()
    return rows_scanned(df)


@pytest.fixture(scope="module")
def floats(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """With Arrow's own statistics and dictionaries, which leave out NaN and tell the zeros apart."""
    values = [[1.0, NAN], [6.0, 7.0], [-0.0, -1.0], [0.0, 2.0], [NAN, NAN], [None, 3.0]]
    column = [pa.array(part, pa.float64()) for part in values]
    return table(
        spark,
        tmp_path_factory.mktemp("floats") / "t",
        [
            pa.table({"d": part, "f": part.cast(pa.float32()), "s": pa.StructArray.from_arrays([part], ["d"])})
            for part in column
        ],
    )


OF_FLOATS = {
    "{} > 5": 5,
    "{} >= 7": 4,
    "NOT ({} <= 5)": 5,
    "{} = double('NaN')": 3,
    "{} <=> double('NaN')": 3,
    "{} <> 1": 10,
    "{} = -0.0D": 2,
    "{} = 0.0D": 2,
    "{} < 0": 1,
    "{} >= 0": 10,
    "{} IN (double('NaN'), -0.0D)": 5,
    "{} IS NULL": 1,
    "{} > double('Infinity')": 3,
}
"""How many rows conditions are true on."""


def test_nan_and_the_two_zeros_are_found(floats: DataFrame) -> None:
    for name in ("d", "f", "s.d"):
        found = counts(floats, [where.format(name) for where in OF_FLOATS])
        assert dict(zip(OF_FLOATS, found, strict=True)) == OF_FLOATS, name


@pytest.mark.parametrize("day", [5, 10, 14])
def test_days_that_the_julian_calendar_left_out_are_found(spark: SparkSession, tmp_path: Path, day: int) -> None:
    days = [
        datetime(1582, 10, day, 1, tzinfo=UTC),
        datetime(1582, 10, 15, 1, tzinfo=UTC),
        datetime(2024, 1, 1, tzinfo=UTC),
    ]
    rows = pa.table({"d": pa.array([each.date() for each in days]), "t": pa.array(days, pa.timestamp("us", "UTC"))})
    df = table(spark, tmp_path, [rows.slice(i, 1) for i in range(3)])
    text = f"1582-10-{day:02}"

    expected = {
        f"d = DATE'{text}'": 1,
        f"d IN (DATE'{text}', DATE'2020-01-01')": 1,
        f"d >= DATE'{text}'": 3,
        f"d > DATE'{text}'": 2,
        f"t = TIMESTAMP'{text} 01:00:00Z'": 1,
        f"t >= TIMESTAMP'{text} 01:00:00Z'": 3,
    }
    assert dict(zip(expected, counts(df, expected), strict=True)) == expected


def test_filters_on_other_columns_are_still_pushed(spark: SparkSession, tmp_path: Path) -> None:
    ids = np.arange(1000)
    rows = pa.table(
        {"id": ids, "d": ids.astype(np.float64), "s": pa.array([{"n": int(i), "d": float(i)} for i in ids])}
    )
    df = table(spark, tmp_path / "t", [rows], row_group_size=100)

    assert scanned(df.filter("id = 421")) == 100
    assert scanned(df.filter("s.n = 421")) == 100
    assert scanned(df.filter("d = 421")) == 1000
    assert scanned(df.filter("s.d = 421")) == 1000
    assert scanned(df.filter("id = 421 AND d = 421")) == 100
    assert scanned(df.filter("id = 421 OR d = 421")) == 1000


def test_swapped_names_read_the_columns_that_they_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2, 3], "b": [10, 20, 30]})
    first, second = Schema.create(rows.schema).fields
    swapped = Schema(1, (replace(first, name="b"), replace(second, name="a")))
    df = table(spark, tmp_path / "t", [rows], swapped)

    assert df.columns == ["b", "a"]
    assert df.filter("a = 20").collect() == [(2, 20)]
    assert df.filter("a > 15 AND b < 3").collect() == [(2, 20)]
    assert df.filter("a = 2").collect() == []


def test_a_column_that_was_dropped_and_added_again_is_another_one(spark: SparkSession, tmp_path: Path) -> None:
    old = pa.table({"id": [1, 2], "x": ["old", "old"]})
    new = pa.table({"id": [3], "x_7": ["new"]})
    schema = Schema(1, (Schema.create(old.schema).fields[0], Field(7, "x", "x_7", pa.string())))
    df = table(spark, tmp_path / "t", [old, new], schema)

    assert sorted(df.collect()) == [(1, None), (2, None), (3, "new")]
    assert df.filter("x = 'old'").collect() == []
    assert df.filter("x IS NULL").count() == 2
    assert df.filter("x = 'new'").collect() == [(3, "new")]


def test_renamed_fields_of_nested_columns_keep_their_values(spark: SparkSession, tmp_path: Path) -> None:
    inner = pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int64())])
    rows = pa.table(
        {
            "place": pa.array([{"city": "Rome", "zip": 1}, None, {"city": None, "zip": 3}], inner),
            "all": pa.array([[{"city": "Oslo", "zip": 5}], [], None], pa.list_(inner)),
        }
    )
    place, several = Schema.create(rows.schema).fields
    schema = Schema(1, (renamed(place, "city", "town"), renamed(several, "city", "town")))
    df = table(spark, tmp_path / "t", [rows], schema)

    assert df.select("place.town", "place.zip").collect() == [("Rome", 1), (None, None), (None, 3)]
    assert df.select("all.town").collect() == [(["Oslo"],), ([],), (None,)]
    assert df.filter("place.town = 'Rome'").count() == 1
    assert df.filter("place IS NULL").count() == 1
    assert df.filter("place.town IS NULL AND place IS NOT NULL").select("place.zip").collect() == [(3,)]


def renamed(field: Field, old: str, new: str) -> Field:
    """``field`` with a field below it renamed, in its own type too."""
    children = tuple(renamed(child, old, new) for child in field.children)
    name = new if field.name == old else field.name
    if pa.types.is_struct(field.type):
        return replace(field, name=name, children=children, type=pa.struct([child.arrow for child in children]))
    if pa.types.is_list(field.type):
        return replace(field, name=name, children=children, type=pa.list_(children[0].arrow))
    return replace(field, name=name)


def test_a_rename_is_not_seen_by_votes(spark: SparkSession, tmp_path: Path) -> None:
    inner = pa.struct([pa.field("city", pa.string())])
    rows = pa.table({"place": pa.array([{"city": "Rome"}], inner)})
    [place] = Schema.create(rows.schema).fields
    judge = Judge(lambda trees: np.ones(1, np.bool_))
    df = read(spark, write(tmp_path / "t", [rows]), Schema(1, (renamed(place, "city", "town"),)), judge)
    df.filter("place.town = 'Rome'").count()

    [equal] = [tree for tree in judge.asked[-1] if tree["node"] == "EqualTo"]
    field = equal["children"][0]
    assert (field["node"], field["ordinal"], [(child["node"], child["name"]) for child in field["children"]]) == (
        "GetStructField",
        0,
        [("AttributeReference", "place")],
    )


def test_names_of_any_letters_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"a.b": [1, 2], "c`d": [3, 4], "e f": [5, 6], "ß😀": [7, 8], "d.x": [1.0, NAN]})
    created = Schema.create(rows.schema)
    schema = Schema(1, (replace(created.fields[0], name="new.name"), *created.fields[1:]))
    rows = rows.rename_columns(created.parquet_schema.names)
    df = table(spark, tmp_path / "t", [rows], schema)

    assert df.columns == ["new.name", "c`d", "e f", "ß😀", "d.x"]
    assert df.filter("`new.name` = 2 AND `c``d` = 4 AND `e f` = 6 AND `ß😀` = 8 AND `d.x` > 5").count() == 1


WIDENED = [
    (pa.int8(), pa.int32(), [1, -5]),
    (pa.int32(), pa.int64(), [1, -5]),
    (pa.int32(), pa.float64(), [1, -5]),
    (pa.int32(), pa.decimal128(12, 2), [1, -5]),
    (pa.float32(), pa.float64(), [1.5, -5.0]),
    (pa.decimal128(10, 2), pa.decimal128(12, 2), [Decimal("1.25"), Decimal("-5.00")]),
    (pa.decimal128(10, 2), pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-5.00")]),
    (pa.decimal128(10, 2), pa.decimal128(20, 4), [Decimal("1.25"), Decimal("-5.00")]),
    (pa.date32(), pa.timestamp("us"), [date(2024, 2, 29), date(1900, 1, 1)]),
]


@pytest.mark.parametrize(
    ("narrow", "wide", "values"), WIDENED, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_filters_on_a_widened_column_find_rows_of_old_and_new_files(
    spark: SparkSession, tmp_path: Path, narrow: pa.DataType, wide: pa.DataType, values: list[Any]
) -> None:
    old = pa.table({"v": pa.array(values, narrow)})
    new = old.cast(pa.schema([("v", wide)])) if not pa.types.is_date(narrow) else pa.table({"v": old["v"].cast(wide)})
    schema = Schema(1, (Field(1, "v", "v", wide, type_changed=True),))
    df = table(spark, tmp_path / "t", [old, new], schema)
    first = new["v"][0].as_py()

    assert counts(df, [df.v == first, df.v != first, df.v < first]) == [2, 2, 2]
    assert sorted(row.v for row in df.collect()) == sorted([*new["v"].to_pylist()] * 2)


DEFAULTS = [
    (pa.bool_(), False),
    (pa.int8(), -3),
    (pa.int32(), 7),
    (pa.int64(), -(1 << 63)),
    (pa.float32(), 1.5),
    (pa.float64(), 1e300),
    (pa.float64(), float("inf")),
    (pa.float64(), NAN),
    (pa.decimal128(38, 10), Decimal("-1.0000000001")),
    (pa.date32(), date(1600, 2, 29)),
    (pa.string(), 'a\'b\\c\n😀 "q" ${x}'),
    (pa.string(), ""),
    (pa.timestamp("us", "UTC"), datetime(2024, 10, 27, 0, 30, 0, 123456, UTC)),
    (pa.timestamp("us"), datetime(2024, 3, 31, 2, 30)),
]


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows_older_than_a_column_hold_its_default(spark: SparkSession, tmp_path: Path, zone: str, ansi: str) -> None:
    old = pa.table({"id": [1]})
    added = [
        Field(n, f"c{n}", f"c{n}", data_type, initial_default=types.encode_default(value))
        for n, (data_type, value) in enumerate(DEFAULTS, start=2)
    ]
    expected = pa.table(
        {
            "id": [2],
            **{
                field.name: pa.array([value], data_type)
                for field, (data_type, value) in zip(added, DEFAULTS, strict=True)
            },
        }
    )
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = table(spark, tmp_path / "t", [old, expected], Schema(1, (Field(1, "id", "id", pa.int64()), *added)))
        old_row, new_row = df.filter("id = 1").alias("old"), df.filter("id = 2").alias("new")
        same = old_row.crossJoin(new_row).selectExpr(*[f"old.{field.name} <=> new.{field.name}" for field in added])
        assert same.collect() == [(True,) * len(added)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_dates_before_the_calendars_change_are_read_as_written(spark: SparkSession, tmp_path: Path) -> None:
    values = [date(1, 1, 1), date(1582, 10, 4), date(1900, 1, 1)]
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        df = table(spark, tmp_path / "t", [pa.table({"day": values})])
        assert sorted(row.day for row in df.collect()) == values
        assert df.filter("day = DATE'1582-10-04'").count() == 1
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")


def test_text_is_compared_by_bytes(spark: SparkSession, tmp_path: Path) -> None:
    df = table(spark, tmp_path / "t", [pa.table({"s": ["～", "😀"]}), pa.table({"s": ["a", "é"]})])

    assert df.filter("s > '～'").collect() == [("😀",)]
    assert df.filter("s = '😀'").count() == 1
    assert df.filter("s <> 'a'").count() == 3


def test_a_filter_whose_attribute_is_not_ours_never_prunes(spark: SparkSession, tmp_path: Path) -> None:
    def say(trees: list[Tree]) -> np.ndarray:
        mine = [tree for tree in trees if tree["node"] == "EqualTo" and tree["children"][0].get("ours")]
        return np.zeros(1, np.bool_) if mine else np.ones(1, np.bool_)

    rows = pa.table({"file_size": [1, 2, 3]})
    [file] = write(tmp_path / "t", [rows])
    df = read(spark, [file], Schema.create(rows.schema), Judge(say))

    assert df.filter(f"_metadata.file_size = {file.stat().st_size}").count() == 3
