"""Terms without a column are literals to everybody else, and whoever has not folded them answers alike."""

from itertools import cycle

import pyarrow as pa
import pytest

from fuse_index.errors import OpaqueError, WhereError
from fuse_index.expressions.constant_folding import fold_constants, fold_term
from fuse_index.expressions.evaluate import evaluate
from fuse_index.plugin import Function
from fuse_index.predicate import Call, Cast, Column, Compare, Context, Literal, Predicate
from fuse_index.sql.parse import parse_aggregate, parse_predicate, parse_predicate_as_written
from fuse_storage import Schema
from tests.index.constants import CONNECTIVES, leaves

ROWS = pa.table({"id": pa.array([1, 2, None], pa.int64()), "s": ["a", "b", None]})
SCHEMA = Schema.create(ROWS.schema)
SAME = Function("Same", (pa.string(), pa.string()), lambda left, right: pa.compute.equal(left, right))
CONTEXT = Context()


def test_a_condition_without_a_column_is_on_every_row_what_it_is_unfolded():
    wrong = []
    for leaf, connective in zip(leaves(), cycle(CONNECTIVES)):
        text = connective.format(leaf)
        written = parse_predicate_as_written(text, SCHEMA)
        if not evaluate(fold_constants(written, CONTEXT), ROWS).equals(evaluate(written, ROWS)):
            wrong.append(text)

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("s = lower('A')", "s = 'a'"),
        ("lower('A') = s", "s = 'a'"),
        ("s IN (lower('A'), 'b')", "s IN ('a', 'b')"),
        ("s LIKE lower('A%')", "s LIKE 'a%'"),
        ("startswith(s, lower('A'))", "startswith(s, 'a')"),
        ("id = length('abc')", "id = 3"),
        ("Same(s, lower('A'))", "Same(s, 'a')"),
        ("Same(lower('A'), 'a') OR id = 1", "TRUE OR id = 1"),
        ("NOT same('a', 'b')", "NOT FALSE"),
        ("same(NULL, 'b')", "CAST(NULL AS BOOLEAN)"),
        ("get_json_object(s, lower('$.A')) = 'x'", "get_json_object(s, '$.a') = 'x'"),
    ],
)
def test_a_constant_is_as_good_as_the_literal_that_it_is(text, folded):
    assert parse_predicate(text, SCHEMA, functions=[SAME]) == parse_predicate(folded, SCHEMA, functions=[SAME])


@pytest.mark.parametrize("text", ["lower('\u0130') = 'i'", "CAST(lower('X') AS INT) = 1", "same('a', 'a')"])
def test_what_only_spark_or_a_missing_plugin_knows_stays_as_it_is(text):
    written = parse_predicate_as_written(text, SCHEMA, functions=[SAME])

    assert fold_constants(written, CONTEXT) == written


def test_a_literal_beyond_what_python_holds_stays_a_term():
    term = Cast(Literal(10**15, pa.int64()), pa.timestamp("us", "UTC"))

    assert fold_term(term, CONTEXT) == term
    with pytest.raises(OpaqueError):
        evaluate(Compare("=", term, Literal(None, term.type)), ROWS)


def test_a_condition_that_is_made_in_python_may_have_parts_without_a_column():
    name = Column(("s",), pa.string())
    made: Predicate = Compare("=", name, Call("lower", (Literal("A", pa.string()),), pa.string()))

    assert fold_constants(made, CONTEXT) == Compare("=", name, Literal("a", pa.string()))


def test_a_count_of_a_constant_is_one_of_rows():
    assert parse_aggregate("count(lower('A'))", SCHEMA) == parse_aggregate("count(*)", SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["min(length('abc'))", "sum(1)", "avg(length('ab'))", "max(CAST(lower('X') AS INT))", "count(lower(NULL))"],
)
def test_other_aggregates_of_a_constant_are_refused_in_words(text):
    with pytest.raises(WhereError, match="of a constant"):
        parse_aggregate(text, SCHEMA)
