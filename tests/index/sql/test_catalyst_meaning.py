"""What index kinds are shown of conditions that Spark alone evaluates: what they are shown without Spark."""

import pyarrow as pa
import pytest

from fuse_index.predicate import Context, Not, Opaque
from fuse_index.reasons import Reason
from fuse_index.sql.catalyst import decode_filter
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema
from tests.index.sql.test_catalyst import attribute, literal, node

SCHEMA = Schema.create(
    pa.schema([("line", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string())), ("at", pa.timestamp("us"))])
)
TEXTS = {"type": "array", "elementType": "string", "containsNull": True}
LINE, N, TAGS = attribute("line", "string"), attribute("n", "long"), attribute("tags", TEXTS)
PLUS_ONE = node("Add", N, literal("1", "long"), data_type="long", evalMode="ANSI")
START = node("Substring", LINE, literal("1", "integer"), literal("3", "integer"), data_type="string")


def like(term, pattern):
    return node("Like", term, literal(pattern, "string"), escape="\\")


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (node("RLike", LINE, literal("a.c", "string")), "line RLIKE 'a.c'"),
        (node("ArrayContains", TAGS, literal("x", "string")), "array_contains(tags, 'x')"),
        (node("EqualTo", PLUS_ONE, literal("4", "long")), "n + 1 = 4"),
        (node("EqualTo", literal("4", "long"), PLUS_ONE), "n + 1 = 4"),
        (node("In", PLUS_ONE, literal("4", "long"), literal("5", "long")), "n + 1 IN (4, 5)"),
        (like(START, "a%c"), "substring(line, 1, 3) LIKE 'a%c'"),
        (node("GreaterThan", node("Size", TAGS, data_type="integer"), literal("2", "integer")), "size(tags) > 2"),
        (node("StartsWith", START, literal("a", "string")), "startswith(substring(line, 1, 3), 'a')"),
    ],
)
def test_kinds_are_shown_the_same_leaf_by_spark_and_by_our_sql(tree, text):
    read = decode_filter(tree, SCHEMA, Context())

    assert isinstance(read, Opaque)
    assert read.meaning == parse_predicate(text, SCHEMA)
    assert decode_filter(node("Not", tree), SCHEMA, Context()) == Not(read)


def test_a_case_that_is_ignored_is_that_of_lower_letters():
    lower = node("Lower", LINE, data_type="string")

    assert decode_filter(like(lower, "%abc%"), SCHEMA, Context()) == parse_predicate("line ILIKE '%ABC%'", SCHEMA)


def test_a_pattern_that_only_java_reads_is_shown_too():
    read = decode_filter(node("RLike", LINE, literal("(?=x)y", "string")), SCHEMA, Context())

    assert read.meaning.arguments[1].value == "(?=x)y"


@pytest.mark.parametrize(
    "tree",
    [
        node("Rand", data_type="boolean"),
        node("com.acme.RLike", LINE, literal("a", "string")),
        node("RLike", attribute("line", "string collate UNICODE_CI"), literal("a", "string")),
        node("RLike", attribute("line", "string", ours=False), literal("a", "string")),
        node("EqualTo", node("Add", N, N, data_type="long", evalMode="LEGACY"), literal("4", "long")),
        node("EqualTo", node("Hour", attribute("at", "timestamp_ntz"), data_type="integer", zone="+01:00"), N),
        node("RLike", literal("a", "string"), literal("a", "string")),
    ],
)
def test_what_is_not_known_by_its_class_and_type_has_no_meaning(tree):
    read = decode_filter(tree, SCHEMA, Context())

    assert isinstance(read, Opaque)
    assert read.meaning is None
    assert read.reason in Reason.__members__
