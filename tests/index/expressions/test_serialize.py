"""Terms as they are stored with an index, and predicates as they are shown to people."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.errors import TermError
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.serialize import decode_predicate, decode_term, encode_predicate, encode_term
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.types import spark_type_name, type_from_spark_json, type_from_spark_name
from fuse_index.predicate import And, Call, Cast, Column, Compare, In, IsNull, JsonPath, Like, Literal, Not, Opaque, Or
from fuse_storage import Schema, SchemaError

SCHEMA = Schema.create(pa.schema([("id", pa.int32()), ("doc", pa.string()), ("st", pa.struct([("x", pa.int32())]))]))
ID, DOC, X = Column(("id",), pa.int32()), Column(("doc",), pa.string()), Column(("st", "x"), pa.int32())
LITERALS = [
    Literal(None, pa.string()),
    Literal(True, pa.bool_()),
    Literal(-5, pa.int64()),
    Literal(0.1, pa.float64()),
    Literal(math.inf, pa.float64()),
    Literal(Decimal("1.50"), pa.decimal128(5, 2)),
    Literal("it's", pa.string()),
    Literal(b"\x00\xff", pa.binary()),
    Literal(date(2024, 1, 2), pa.date32()),
    Literal(datetime(2024, 1, 2, 3, 4, 5, 6, UTC), pa.timestamp("us", "UTC")),
    Literal(datetime(2024, 1, 2), pa.timestamp("us")),
]


@pytest.mark.parametrize(
    "term", [ID, X, Cast(ID, pa.int64(), "try"), JsonPath(DOC, "$.a"), Call("lower", (DOC, *LITERALS), pa.string())]
)
def test_terms_come_back_from_json_as_they_were(term):
    stored = json.loads(json.dumps(encode_term(term, SCHEMA)))

    assert decode_term(stored, SCHEMA) == term


@pytest.mark.parametrize(
    "predicate",
    [
        And(
            (
                Compare("<=", ID, LITERALS[2]),
                Not(Or((IsNull(DOC), In(DOC, (Literal("a", pa.string()), Literal(None, pa.string())))))),
            )
        ),
        Like(DOC, Literal("a%", pa.string()), "#"),
        Call("match", (DOC, Literal("late", pa.string()))),
    ],
)
def test_conditions_come_back_from_json_as_they_were(predicate):
    stored = json.loads(json.dumps(encode_predicate(predicate, SCHEMA)))

    assert decode_predicate(stored, SCHEMA) == predicate


def test_a_condition_that_only_spark_knows_is_not_stored():
    with pytest.raises(TermError):
        encode_predicate(Not(Opaque("a RLIKE b")), SCHEMA)
    with pytest.raises(TermError, match="upgrade"):
        decode_predicate({"node": "Xor"}, SCHEMA)


def test_a_stored_term_survives_renames_and_widening():
    stored = encode_term(Cast(X, pa.int64()), SCHEMA)
    field = replace(SCHEMA.fields[2].children[0], name="y", type=pa.int64())
    changed = replace(SCHEMA, fields=(*SCHEMA.fields[:2], replace(SCHEMA.fields[2], name="renamed", children=(field,))))

    assert decode_term(stored, changed) == Cast(Column(("renamed", "y"), pa.int64()), pa.int64())


def test_a_term_on_a_dropped_column_is_refused():
    stored = encode_term(ID, SCHEMA)

    with pytest.raises(TermError, match="no longer in the table"):
        decode_term(stored, replace(SCHEMA, fields=SCHEMA.fields[1:]))


@pytest.mark.parametrize(
    "stored",
    [
        {"window": 1},
        {"cast": {"column": 1}, "type": "geometry", "mode": "legacy"},
        {"cast": {"column": 1}, "type": "int", "mode": "new"},
    ],
)
def test_a_term_of_a_newer_version_is_refused(stored):
    with pytest.raises(TermError, match="upgrade"):
        decode_term(stored, SCHEMA)


def test_a_column_that_is_not_there_cannot_be_stored():
    with pytest.raises(SchemaError, match="nosuch"):
        encode_term(Column(("nosuch",), pa.int32()), SCHEMA)


def number(value):
    return Literal(value, pa.int32())


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (
            And((Compare("=", ID, number(1)), Or((IsNull(ID), Not(IsNull(X)))))),
            "id = 1 AND (id IS NULL OR st.x IS NOT NULL)",
        ),
        (
            Or((And((IsNull(ID), IsNull(X))), Not(Compare("<", ID, X)))),
            "id IS NULL AND st.x IS NULL OR NOT (id < st.x)",
        ),
        (Not(In(ID, (number(1), number(None)))), "id NOT IN (1, NULL)"),
        (Like(DOC, Literal("a'%", pa.string()), "!"), "doc LIKE 'a\\'%' ESCAPE '!'"),
        (And((Opaque("a OR b"), IsNull(ID))), "(a OR b) AND id IS NULL"),
        (
            Compare("=", Column(("a b", "c`d"), pa.float32()), Literal(0.10000000149011612, pa.float32())),
            "`a b`.`c``d` = 0.1F",
        ),
        (In(ID, tuple(number(i) for i in range(10_000))), "id IN (0, 1, 2, 3, 4, 5, 6, 7, … 10,000 values)"),
        (Conjunction.of(And((Compare(">", ID, number(1)), Compare("<", ID, number(9))))), "id > 1 AND id < 9"),
        (Call("match", (DOC, Literal("x", pa.string()))), "match(doc, 'x')"),
    ],
)
def test_predicates_are_shown_as_sql(predicate, text):
    assert predicate_sql(predicate) == text


def test_types_have_spark_s_names():
    for name in ("boolean", "tinyint", "bigint", "decimal(10,2)", "timestamp", "timestamp_ntz", "binary"):
        assert spark_type_name(type_from_spark_name(name)) == name
    assert (
        spark_type_name(pa.struct([("a", pa.list_(pa.int32())), ("b", pa.map_(pa.string(), pa.date32()))]))
        == "struct<a:array<int>,b:map<string,date>>"
    )
    assert type_from_spark_name("DEC ( 5 , 1 )") == pa.decimal128(5, 1)
    assert type_from_spark_name("Decimal") == pa.decimal128(10, 0)
    assert [
        type_from_spark_name(name)
        for name in ("decimal(39,0)", "decimal(5,6)", "varchar(5)", "string collate UTF8_LCASE", "interval")
    ] == [None] * 5


def test_types_are_read_from_spark_s_json():
    described = {
        "type": "struct",
        "fields": [
            {
                "name": "a",
                "type": {"type": "array", "elementType": "long", "containsNull": True},
                "nullable": False,
                "metadata": {},
            }
        ],
    }
    entries = {"type": "map", "keyType": "string", "valueType": "decimal(5,1)", "valueContainsNull": True}

    assert type_from_spark_json("integer") == pa.int32()
    assert type_from_spark_json(described) == pa.struct(
        [pa.field("a", pa.list_(pa.field("element", pa.int64())), nullable=False)]
    )
    assert type_from_spark_json(entries) == pa.map_(pa.string(), pa.decimal128(5, 1))
    assert type_from_spark_json({**entries, "keyType": "interval"}) is None
    assert type_from_spark_json({"type": "udt"}) is None
    assert type_from_spark_json("string collate UTF8_LCASE") is None
