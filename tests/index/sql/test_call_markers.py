"""Marks of calls: what was written is read back, and nothing else is taken for one."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.predicate import And, Call, Column, Compare, Context, In, IsNull, Literal, Not, Opaque, Or
from fuse_index.sql.call_markers import (
    CALL_MARK_PREFIX,
    CALL_VALUE,
    VALUE_MARK_PREFIX,
    name_marked_calls,
    render_call_mark,
)
from fuse_index.sql.catalyst import decode_filter
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema
from tests.index.sql.test_catalyst import attribute, literal, node

SCHEMA = Schema.create(pa.schema([("id", pa.int64()), ("name", pa.string()), ("other", pa.string())]))
ID, NAME, OTHER = (Column((field.name,), field.type) for field in SCHEMA.arrow)
CONSTANTS = [
    Literal("a 'q' \\ ü😀", pa.string()),
    Literal(None, pa.string()),
    Literal(-5, pa.int32()),
    Literal(True, pa.bool_()),
    Literal(float("-inf"), pa.float64()),
    Literal(Decimal("1.50"), pa.decimal128(5, 2)),
    Literal(b"\x00\xff", pa.binary()),
    Literal(date(1960, 2, 29), pa.date32()),
    Literal(datetime(2024, 10, 27, 1, 30, 0, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
    Literal(datetime(1900, 1, 1), pa.timestamp("us")),
]


def tree(text):
    """What Spark sends of a mark: a reader of our own for the little SQL that marks are made of."""
    assert isinstance(parse_predicate(text, SCHEMA), In), "a mark is one leaf, and nothing plainer"
    operands = [
        part.strip("() ")
        for part in text.partition(" IN ")[0].removeprefix("coalesce").removesuffix(", false)").split(" OR ")
    ]
    compared = [
        node("EqualTo", column(left), literal(sign(right), "string"))
        for left, right in (part.split(" = ") for part in operands)
    ]
    inner = compared[0]
    for other in compared[1:]:
        inner = node("Or", inner, other)
    if text.startswith("coalesce"):
        inner = node("Coalesce", inner, literal("false", "boolean"))
    return node("In", inner, literal("true", "boolean"), literal("false", "boolean"))


def column(text):
    if text.startswith("CAST("):
        return node("Cast", attribute("id", "long"), data_type="string", evalMode="ANSI", zone="UTC")
    return attribute(text, "string")


def sign(text):
    return bytes.fromhex(text.removeprefix("CAST(X'").partition("'")[0]).decode()


@pytest.mark.parametrize("null_on_null", [True, False])
@pytest.mark.parametrize(
    "call",
    [Call("f", (NAME, constant)) for constant in CONSTANTS]
    + [
        Call("f", (ID,)),
        Call("f", (CONSTANTS[0], ID, CONSTANTS[2], NAME)),
        Call("f", (NAME, OTHER)),
        Call("f", (NAME, NAME)),
    ],
)
def test_what_was_written_is_read(call, null_on_null):
    operands = [argument.path[0] for argument in call.arguments if isinstance(argument, Column)]

    assert decode_filter(tree(render_call_mark(call, operands, null_on_null)), SCHEMA, Context()) == call


def test_a_mark_is_the_call_wherever_it_stands():
    call = Call("f", (NAME, CONSTANTS[0]))
    marked = tree(render_call_mark(call, ["name"], True))
    meaning = node("SomePythonUDF", attribute("name", "string"))
    opaque = Opaque("SomePythonUDF(name)")

    assert decode_filter(node("And", meaning, marked), SCHEMA, Context()) == And((opaque, call))
    assert decode_filter(node("Not", node("And", meaning, marked)), SCHEMA, Context()) == Not(And((opaque, call)))
    assert decode_filter(node("Or", node("Not", meaning), node("Not", marked)), SCHEMA, Context()) == Or(
        (Not(opaque), Not(call))
    )


@pytest.mark.parametrize("text", ["x", CALL_MARK_PREFIX, CALL_MARK_PREFIX + "1", "{}"])
def test_other_lists_of_truths_are_no_marks(text):
    compared = node("EqualTo", attribute("name", "string"), literal(text, "string"))
    found = decode_filter(
        node("In", compared, literal("true", "boolean"), literal("false", "boolean")), SCHEMA, Context()
    )

    assert isinstance(found, Opaque | In)


def test_a_mark_on_what_is_no_column_of_the_table_is_not_understood():
    marked = tree(render_call_mark(Call("f", (NAME, CONSTANTS[0])), ["name"], True))
    marked["children"][0]["children"][0]["ours"] = False

    assert isinstance(decode_filter(marked, SCHEMA, Context()), Opaque)


VECTOR = pa.list_(pa.float64())
VALUE = {**attribute(CALL_VALUE, "double"), "ours": False}


def condition_mark(condition, call, operands):
    """The mark of a call as ``CallConditions.java`` makes it stand for a condition on its value."""
    marked = tree(render_call_mark(call, operands, False, VALUE_MARK_PREFIX))
    [compared] = [each for each in marked["children"][0]["children"] if each["node"] == "EqualTo"]
    text = compared["children"][1]["value"].removeprefix(VALUE_MARK_PREFIX)
    compared["children"][1]["value"] = VALUE_MARK_PREFIX + json.dumps({"condition": condition, **json.loads(text)})
    return marked


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (
            node("LessThan", VALUE, literal("1.5", "double")),
            lambda call: Compare("<", call, Literal(1.5, pa.float64())),
        ),
        (
            node("LessThan", literal("1.5", "double"), VALUE),
            lambda call: Compare(">", call, Literal(1.5, pa.float64())),
        ),
        (
            node("Not", node("LessThan", VALUE, literal("1.5", "double"))),
            lambda call: Not(Compare("<", call, Literal(1.5, pa.float64()))),
        ),
        (node("IsNull", VALUE), IsNull),
    ],
)
def test_a_mark_of_a_value_stands_for_the_condition_in_its_text(condition, read):
    call = Call("f", (NAME, Literal([0.5, 2.0], VECTOR)), pa.float64())
    marked = condition_mark(condition, call, ["name"])

    found = decode_filter(marked, SCHEMA, Context())

    array = Call("array", tuple(Literal(each, pa.float64()) for each in (0.5, 2.0)), VECTOR)
    assert found == read(Call("f", (NAME, array), pa.float64()))
    assert decode_filter([marked, marked], SCHEMA, Context()) == found  # which is hashed


def test_what_is_computed_of_a_value_is_for_index_kinds_alone():
    computed = node("LessThan", node("Sqrt", VALUE, data_type="double"), literal("1.5", "double"))
    call = Call("f", (NAME,), pa.float64())
    marked = condition_mark(computed, call, ["name"])

    found = decode_filter(marked, SCHEMA, Context())

    assert isinstance(found, Opaque)
    assert found.meaning == Compare("<", Call("sqrt", (call,), pa.float64()), Literal(1.5, pa.float64()))


def test_a_mark_of_a_value_without_a_condition_is_no_condition():
    marked = tree(render_call_mark(Call("f", (NAME,), pa.float64()), ["name"], False, VALUE_MARK_PREFIX))

    assert not isinstance(decode_filter(marked, SCHEMA, Context()), Call)


def test_calls_in_what_spark_writes_are_named_once_each():
    said = [json.dumps({"call": "near", "arguments": [{"type": "string"}, {"type": "int", "constant": 3}]}), '{"call"']
    said = [*said, json.dumps({"call": "m", "arguments": [{"type": "string", "constant": "it's \\"}, {"type": "int"}]})]
    texts = ["'fuse_index call " + each.replace("\\", "\\\\").replace("'", "\\'") + "'" for each in said]

    assert name_marked_calls(f"(a = {texts[0]}) OR (NOT (b = {texts[2]})) OR (a = {texts[0]}) OR (c = 'x')") == (
        'a condition with near(…, 3) and m("it\'s \\\\", …)'
    )
    assert name_marked_calls(f"(a = {texts[1]})") == f"(a = {texts[1]})"
