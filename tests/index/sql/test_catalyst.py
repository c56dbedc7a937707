"""Spark's filters as trees: those that Spark made of the corpus, and those that must not be understood."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.predicate import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Context,
    In,
    IsNull,
    JsonPath,
    Literal,
    Not,
    Opaque,
    Or,
)
from fuse_index.reasons import Reason
from fuse_index.sql.catalyst import decode_filter
from fuse_storage import Schema

UTC_ANSI = Context()
SCHEMA = Schema.create(
    pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("ok", pa.bool_()),
            ("at", pa.timestamp("us", "UTC")),
            ("f", pa.float32()),
            ("st", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
        ]
    )
)
STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
        {
            "name": "y",
            "type": {"type": "struct", "fields": [{"name": "z", "type": "string", "nullable": True, "metadata": {}}]},
            "nullable": True,
            "metadata": {},
        },
    ],
}
ID, NAME = Column(("id",), pa.int64()), Column(("name",), pa.string())


def node(kind, /, *children, data_type="boolean", **parameters):
    return {"node": kind, "type": data_type, "children": list(children), **parameters}


def attribute(name, data_type, ours=True, **metadata):
    return node("AttributeReference", data_type=data_type, name=name, metadata=metadata, ours=ours)


def literal(value, data_type):
    return node("Literal", data_type=data_type, value=value)


def on_id(name, value):
    return node(name, attribute("id", "long"), literal(value, "long"))


@pytest.mark.parametrize("plan", ["analyzed", "optimized"])
def test_every_filter_of_the_corpus_is_on_every_row_what_it_was_to_spark(golden, plan):
    wrong, judged = {}, 0
    for case, answers in golden.plain:
        if getattr(case, plan) is None:
            continue
        predicate = decode_filter(getattr(case, plan), golden.schema, case.context)
        try:
            ours = evaluate(predicate, golden.rows, case.context).to_pylist()
        except OpaqueError:
            continue
        judged += 1
        # of a filter only the rows count that it lets through: Spark may make FALSE of NULL
        same = [a is True for a in ours] == [a is True for a in answers] if plan == "optimized" else ours == answers
        if not same:
            wrong[str(case)] = predicate_sql(predicate)

    assert wrong == {}
    assert judged > 2_200


@pytest.mark.parametrize(
    ("tree", "predicate"),
    [
        (on_id("EqualTo", "5"), Compare("=", ID, Literal(5, pa.int64()))),
        (on_id("EqualNullSafe", None), Compare("<=>", ID, Literal(None, pa.int64()))),
        (node("LessThan", literal("5", "long"), attribute("id", "long")), Compare(">", ID, Literal(5, pa.int64()))),
        (node("IsNotNull", attribute("id", "long")), Not(IsNull(ID))),
        (node("Not", on_id("GreaterThanOrEqual", "5")), Not(Compare(">=", ID, Literal(5, pa.int64())))),
        (attribute("ok", "boolean"), Compare("=", Column(("ok",), pa.bool_()), Literal(True, pa.bool_()))),
        (
            node("InSet", attribute("id", "long"), values=["1", "2", None]),
            In(ID, tuple(Literal(v, pa.int64()) for v in (1, 2, None))),
        ),
        (node("In", attribute("id", "long"), literal("1", "long")), In(ID, (Literal(1, pa.int64()),))),
        (
            node("EqualTo", attribute("at", "timestamp"), literal("-1", "timestamp")),
            Compare(
                "=",
                Column(("at",), pa.timestamp("us", "UTC")),
                Literal(datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), pa.timestamp("us", "UTC")),
            ),
        ),
        (
            node("EqualTo", attribute("f", "float"), literal("0.1", "float")),
            Compare("=", Column(("f",), pa.float32()), Literal(0.10000000149011612, pa.float32())),
        ),
        (
            node("IsNaN", attribute("f", "float")),
            Compare("<=>", Column(("f",), pa.float32()), Literal(math.nan, pa.float32())),
        ),
        (
            node(
                "EqualTo",
                node("GetJsonObject", attribute("name", "string"), literal("$.a", "string"), data_type="string"),
                literal("x", "string"),
            ),
            Compare("=", JsonPath(NAME, "$.a"), Literal("x", pa.string())),
        ),
        (
            node(
                "EqualTo",
                node("Cast", attribute("name", "string"), data_type="integer", evalMode="TRY", zone=""),
                literal("5", "integer"),
            ),
            Compare("=", Cast(NAME, pa.int32(), "try"), Literal(5, pa.int32())),
        ),
        (
            [on_id("EqualTo", "5"), node("IsNotNull", attribute("id", "long"))],
            And((Compare("=", ID, Literal(5, pa.int64())), Not(IsNull(ID)))),
        ),
        (
            node("EqualTo", node("Lower", attribute("name", "string"), data_type="string"), literal("x", "string")),
            Compare("=", Call("lower", (NAME,), pa.string()), Literal("x", pa.string())),
        ),
        ([], Compare("=", Literal(True, pa.bool_()), Literal(True, pa.bool_()))),
    ],
)
def test_trees_are_understood(tree, predicate):
    assert decode_filter(tree, SCHEMA, UTC_ANSI) == predicate


def struct(name, kind):
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}]}


def from_json(document, name="b c", **changed):
    inner, outer = struct(name, "long"), struct("a", struct(name, "long"))
    parsed = node("JsonToStructs", document, data_type=outer, schema=outer, options={}, zone="UTC") | changed
    return node(
        "GetStructField", node("GetStructField", parsed, data_type=inner, ordinal=0), data_type="long", ordinal=0
    )


def variant(document, path, kind="integer", **changed):
    value = "org.apache.spark.sql.catalyst.expressions.variant.VariantExpressionEvalUtils$"
    parsed = (
        node(
            "StaticInvoke",
            document,
            literal("false", "boolean"),
            data_type="variant",
            object=value,
            function="parseJson",
        )
        | changed
    )
    return node("VariantGet", parsed, literal(path, "string"), data_type=kind, failOnError=False, zone="UTC")


DOCUMENT = attribute("name", "string")


@pytest.mark.parametrize(
    ("tree", "term"),
    [
        (from_json(DOCUMENT), JsonPath(NAME, "$['a']['b c']", pa.int64(), "from_json")),
        (variant(DOCUMENT, "$.a[0]"), JsonPath(NAME, "$.a[0]", pa.int32(), "try_variant_get")),
        (variant(attribute("v", "variant"), "$.a", function="toJson"), None),
        (
            node("Cast", variant(DOCUMENT, "$.a", "variant"), data_type="integer", evalMode="ANSI", zone="UTC"),
            JsonPath(NAME, "$.a", pa.int32(), "variant_get"),
        ),
        (from_json(DOCUMENT, "it's"), None),
        (from_json(DOCUMENT, "*"), None),
        (from_json(DOCUMENT, " b"), None),
        (from_json(DOCUMENT, options={"mode": "FAILFAST"}), None),
        (from_json(attribute("id", "long")), None),
        (variant(DOCUMENT, "$[*]"), None),
        (variant(DOCUMENT, "$.a?"), None),
        (variant(DOCUMENT, "$[' a']"), None),
        (variant(DOCUMENT, "$['*']"), None),
        (variant(DOCUMENT, "$.a", function="toJson"), None),
    ],
)
def test_values_that_other_functions_find_in_documents_are_terms(tree, term):
    kind = "long" if term is None or term.type == pa.int64() else "integer"
    found = decode_filter(
        node("EqualTo", tree, literal("5", kind if tree["node"] == "GetStructField" else "integer")), SCHEMA, UTC_ANSI
    )

    assert isinstance(found, Opaque) if term is None else found.left == term


@pytest.mark.parametrize(
    ("data_type", "kind", "value", "read"),
    [
        ("byte", pa.int8(), "-5", -5),
        ("double", pa.float64(), "1.0E10", 1e10),
        ("double", pa.float64(), "-Infinity", -math.inf),
        ("decimal(5,2)", pa.decimal128(5, 2), "1E+1", Decimal("10.00")),
        ("date", pa.date32(), "-719162", date(1, 1, 1)),
        ("timestamp_ntz", pa.timestamp("us"), "0", datetime(1970, 1, 1)),
        ("binary", pa.binary(), {"hex": "00ff"}, b"\x00\xff"),
        ("string", pa.string(), "é\U0001f600", "é\U0001f600"),
    ],
)
def test_literals_are_read_from_their_internal_values(data_type, kind, value, read):
    schema = Schema.create(pa.schema([("c", kind)]))

    predicate = decode_filter(node("EqualTo", attribute("c", data_type), literal(value, data_type)), schema, UTC_ANSI)

    assert predicate == Compare("=", Column(("c",), kind), Literal(read, kind))


STRANGE = {
    "a class that is not listed": node(
        "EqualTo", node("Ascii", attribute("name", "string"), data_type="integer"), literal("1", "integer")
    ),
    "somebody else's class of a known name": node(
        "org.stranger.EqualTo", attribute("id", "long"), literal("5", "long")
    ),
    "a column of another relation, or a hidden one": node(
        "EqualTo", attribute("id", "long", ours=False), literal("5", "long")
    ),
    "a column that the schema does not have": node("EqualTo", attribute("nosuch", "long"), literal("5", "long")),
    "a column of another type than it has by now": node("EqualTo", attribute("id", "integer"), literal("5", "integer")),
    "CHAR": node("EqualTo", attribute("name", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)"), literal("a", "string")),
    "a collated column": node(
        "EqualTo", attribute("name", "string collate UTF8_LCASE"), literal("a", "string collate UTF8_LCASE")
    ),
    "a collated literal": node("EqualTo", attribute("name", "string"), literal("a", "string collate UTF8_LCASE")),
    "two types": node("EqualTo", attribute("id", "long"), literal("5", "integer")),
    "a type that is not known": node("EqualTo", attribute("id", "long"), literal("5", "interval day")),
    "text that is no text": node("EqualTo", attribute("name", "string"), literal({"hex": "ff"}, "string")),
    "a value that was not understood": node(
        "EqualTo", attribute("id", "long"), literal({"unsupported": "java.lang.Object"}, "long")
    ),
    "an instant that Python cannot hold": node(
        "EqualTo", attribute("at", "timestamp"), literal(str(2**62), "timestamp")
    ),
    "an empty list": node("InSet", attribute("id", "long"), values=[]),
    "a list with a column in it": node("In", attribute("id", "long"), attribute("id", "long")),
    "a pattern that is a column": node("Like", attribute("name", "string"), attribute("name", "string"), escape="\\"),
    "a pattern that Spark raises on": node("Like", attribute("name", "string"), literal("a\\b", "string"), escape="\\"),
    "a cast in another zone": node(
        "EqualTo",
        node("Cast", attribute("at", "timestamp"), data_type="date", evalMode="ANSI", zone="Asia/Tokyo"),
        literal("1", "date"),
    ),
    "a cast to an instant in another zone": node(
        "EqualTo",
        attribute("at", "timestamp"),
        node("Cast", literal("2024", "string"), data_type="timestamp", evalMode="ANSI", zone="Asia/Tokyo"),
    ),
    "a number as a condition": attribute("id", "long"),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_what_is_not_surely_understood_is_opaque(strange):
    assert isinstance(decode_filter(STRANGE[strange], SCHEMA, UTC_ANSI), Opaque)


def test_an_opaque_part_leaves_the_rest_and_says_why():
    collated = STRANGE["a collated column"]

    predicate = decode_filter(node("Or", node("Not", collated), on_id("EqualTo", "5")), SCHEMA, UTC_ANSI)

    assert predicate == Or(
        (Not(Opaque("EqualTo(name, a)", Reason.COLLATION)), Compare("=", ID, Literal(5, pa.int64())))
    )
    assert decode_filter(STRANGE["a cast in another zone"], SCHEMA, UTC_ANSI).reason == Reason.SESSION_SEMANTICS
    assert decode_filter(STRANGE["two types"], SCHEMA, UTC_ANSI).reason == Reason.TYPE_MISMATCH


def test_text_with_a_limit_compares_as_any_text():
    column = attribute("name", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)")

    assert decode_filter(node("EqualTo", column, literal("a", "string")), SCHEMA, UTC_ANSI) == Compare(
        "=", Column(("name",), pa.string()), Literal("a", pa.string())
    )


def test_fields_are_found_by_name_when_spark_leaves_some_out():
    pruned = {"type": "struct", "fields": [STRUCT["fields"][1]]}
    inner = node("GetStructField", attribute("st", pruned), data_type=STRUCT["fields"][1]["type"], ordinal=0)
    tree = node("EqualTo", node("GetStructField", inner, data_type="string", ordinal=0), literal("a", "string"))

    assert decode_filter(tree, SCHEMA, UTC_ANSI) == Compare(
        "=", Column(("st", "y", "z"), pa.string()), Literal("a", pa.string())
    )


def test_a_special_field_of_a_struct_is_opaque():
    field = {"name": "x", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}}
    tree = node(
        "IsNull",
        node("GetStructField", attribute("st", {"type": "struct", "fields": [field]}), data_type="string", ordinal=0),
    )

    assert isinstance(decode_filter(tree, SCHEMA, UTC_ANSI), Opaque)


def test_columns_are_known_by_their_own_names_and_not_by_those_of_files():
    renamed = replace(SCHEMA, fields=(replace(SCHEMA.fields[0], name="number"), *SCHEMA.fields[1:]))
    tree = node("EqualTo", attribute("number", "long"), literal("5", "long"))

    assert decode_filter(tree, renamed, UTC_ANSI) == Compare(
        "=", Column(("number",), pa.int64()), Literal(5, pa.int64())
    )
    assert isinstance(decode_filter(on_id("EqualTo", "5"), renamed, UTC_ANSI), Opaque)


def test_casts_of_literals_are_done_at_once_unless_spark_would_raise():
    def compared(text):
        return node(
            "EqualTo",
            attribute("id", "long"),
            node("Cast", literal(text, "string"), data_type="long", evalMode="ANSI", zone=""),
        )

    assert decode_filter(compared("5"), SCHEMA, UTC_ANSI) == Compare("=", ID, Literal(5, pa.int64()))
    assert decode_filter(compared("five"), SCHEMA, UTC_ANSI).right == Cast(
        Literal("five", pa.string()), pa.int64(), "ansi"
    )


def test_a_deep_chain_of_alternatives_is_read():
    tree = on_id("GreaterThan", "0")
    for i in range(1, 5_000):
        tree = node("Or", tree, on_id("GreaterThan", str(i)))

    predicate = decode_filter(tree, SCHEMA, UTC_ANSI)

    assert len(predicate.terms) == 5_000
