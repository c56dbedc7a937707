"""Filters that Spark pushes are translated exactly, or not at all."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from fuse_index.predicate import And, Column, Compare, Contains, EndsWith, In, IsNull, Literal, Not, Opaque, StartsWith
from fuse_storage import Schema

SCHEMA = Schema.create(
    pa.schema(
        {
            "i": pa.int32(),
            "f": pa.float32(),
            "d": pa.float64(),
            "dc": pa.decimal128(10, 2),
            "day": pa.date32(),
            "ts": pa.timestamp("us", "UTC"),
            "ntz": pa.timestamp("us"),
            "s": pa.string(),
            "b": pa.binary(),
            "ok": pa.bool_(),
            "st": pa.struct({"x": pa.int64(), "y.z": pa.string()}),
            "a.b": pa.int32(),
            "list": pa.list_(pa.int32()),
        }
    )
)
UTC_OF_SPARK = ZoneInfo("UTC")

if hasattr(spark, "Filter"):  # from Spark 4.1 on, filters reach Python data sources
    from fuse_index.spark.source_filters import translate

    def only(one):
        (term,) = translate([one], SCHEMA).terms
        return term

    def column(*path):
        return Column(path, SCHEMA.find(path).type)

    def test_no_filters_are_an_empty_conjunction():
        assert translate([], SCHEMA) == And(())

    @pytest.mark.parametrize(
        ("filter_class", "operator"),
        [
            (spark.EqualTo, "="),
            (spark.EqualNullSafe, "<=>"),
            (spark.GreaterThan, ">"),
            (spark.GreaterThanOrEqual, ">="),
            (spark.LessThan, "<"),
            (spark.LessThanOrEqual, "<="),
        ],
    )
    def test_each_comparison_keeps_its_operator(filter_class, operator):
        assert only(filter_class(("i",), 5)) == Compare(operator, column("i"), Literal(5, pa.int32()))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("i", 5),
            ("f", 0.10000000149011612),
            ("d", 0.1),
            ("d", math.inf),
            ("dc", Decimal("1.50")),
            ("day", date(2020, 1, 1)),
            ("ts", datetime(2020, 1, 1, 5, tzinfo=UTC_OF_SPARK)),
            ("ntz", datetime(2020, 1, 1)),
            ("s", "😀"),
            ("b", b"\x00\xff"),
            ("ok", True),
        ],
    )
    def test_a_value_becomes_a_literal_of_the_columns_type(name, value):
        assert only(spark.EqualTo((name,), value)) == Compare("=", column(name), Literal(value, column(name).type))

    def test_not_a_number_is_a_value():
        assert str(only(spark.EqualTo(("d",), math.nan)).right.value) == "nan"

    def test_a_timestamp_is_an_instant():
        literal = only(spark.EqualTo(("ts",), datetime(2020, 1, 1, 5, tzinfo=ZoneInfo("America/New_York")))).right

        assert literal.value == datetime(2020, 1, 1, 10, tzinfo=UTC)

    def test_a_struct_field_is_named_by_its_path():
        assert only(spark.EqualTo(("st", "y.z"), "q")).left == column("st", "y.z")

    def test_a_dot_in_a_name_is_no_path():
        assert only(spark.IsNull(("a.b",))) == IsNull(column("a.b"))

    def test_negations_stay_on_top():
        assert only(spark.Not(spark.EqualTo(("i",), 1))) == Not(Compare("=", column("i"), Literal(1, pa.int32())))
        assert only(spark.IsNotNull(("i",))) == Not(IsNull(column("i")))
        assert only(spark.Not(spark.IsNotNull(("i",)))) == Not(Not(IsNull(column("i"))))

    def test_an_in_list_may_hold_null():
        assert only(spark.In(("i",), [1, None])) == In(column("i"), (Literal(1, pa.int32()), Literal(None, pa.int32())))

    @pytest.mark.parametrize(
        ("filter_class", "node"), [(spark.StringStartsWith, StartsWith), (spark.StringEndsWith, EndsWith), (spark.StringContains, Contains)]
    )
    def test_text_matchers_stay_what_they_are(filter_class, node):
        assert only(filter_class(("s",), "a")) == node(column("s"), Literal("a", pa.string()))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("i", 5.5),
            ("i", 1 << 40),
            ("i", "5"),
            ("f", 0.1),
            ("dc", Decimal("1.555")),
            ("ts", datetime(2020, 1, 1)),
            ("ntz", datetime(2020, 1, 1, tzinfo=UTC)),
            ("day", datetime(2020, 1, 1, 5)),
            ("list", [1, 2]),
            ("st", {"x": 1}),
        ],
    )
    def test_a_value_that_the_column_cannot_hold_exactly_never_prunes(name, value):
        assert isinstance(only(spark.EqualTo((name,), value)), Opaque)
        assert isinstance(only(spark.In((name,), [value])), Opaque)

    def test_an_unknown_column_never_prunes():
        assert isinstance(only(spark.EqualTo(("nobody",), 1)), Opaque)
        assert isinstance(only(spark.EqualTo(("I",), 1)), Opaque)

    def test_an_unknown_filter_never_prunes():
        class Later(spark.Filter):
            attribute = ("i",)

        assert isinstance(only(Later()), Opaque)
        assert isinstance(only(spark.Not(Later())), Not)
