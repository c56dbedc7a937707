"""What only Spark can evaluate is refused when it is read."""

import re
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import OpaqueError
from fuse_index.expressions import evaluable
from fuse_index.expressions.evaluable import check_evaluable, check_literals, may_raise
from fuse_index.plugin import Function
from fuse_index.predicate import Call, Column, Compare, Context, In, JsonPath, Like, Literal, Or
from fuse_index.sql.ddl import parse_schema
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema

SCHEMA = Schema.create(
    parse_schema("id BIGINT, s STRING, f FLOAT, at TIMESTAMP, part STRUCT<a: INT, b: STRUCT<c: STRING, d: DOUBLE>>")
)


def never(*_):
    raise AssertionError("a plugin's function is not called")


SAME = Function("same", (pa.string(), pa.string()), never)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rand() > 0.5", "rand() > 0.5"),
        ("id = 1 AND NOT (id = 2 OR s RLIKE '(?=a)')", "s RLIKE '(?=a)'"),
        ("CAST(f AS STRING) = 'x'", "CAST(f AS STRING): a cast from float to string"),
        ("CAST(part.b.d AS STRING) = part.b.c", "CAST(part.b.d AS STRING)"),
        ("s LIKE s", "s LIKE s"),
        ("lower('\u0130') = s", "the other case"),
        ("CAST(lower('X') AS INT) = id", "raises on CAST(lower('X') AS INT)"),
        ("nothing_known(s)", "nothing_known(s)"),
        ("same(s, CAST(f AS STRING))", "CAST(f AS STRING)"),
        ("CAST(at AS TIME) = CAST(s AS TIME)", "CAST(at AS TIME) = CAST(s AS TIME) (a cast to TIME)"),
        ("at::TIME(3) > s::TIME", "a cast to TIME"),
        ("at > TIME '2024-01-01 12:00:00'", "a cast to TIME"),
    ],
)
def test_what_only_spark_knows_is_named(text, told):
    predicate = parse_predicate(text, SCHEMA, functions=[SAME])

    with pytest.raises(OpaqueError) as refused:
        check_evaluable(predicate, Context(), {"same": SAME})
    assert told in str(refused.value)


def test_where_clocks_are_changed_date_trunc_is_refused():
    context = Context("Europe/Berlin")
    predicate = parse_predicate("date_trunc('day', at) = at", SCHEMA, context)

    check_evaluable(predicate, Context("+01:00"), {})
    with pytest.raises(OpaqueError, match="where clocks are changed"):
        check_evaluable(predicate, context, {})


@pytest.mark.parametrize(
    "leaf",
    [
        Call("gone", (Column(("s",), pa.string()),)),
        JsonPath(Column(("s",), pa.string()), "$.a", pa.int32(), "from_json"),
        Call("lower", (Call("gone", (), pa.string()),), pa.string()),
    ],
)
def test_conditions_made_in_python_are_checked_too(leaf):
    condition = leaf if leaf.type == pa.bool_() else Compare("=", leaf, Literal(None, leaf.type))

    with pytest.raises(OpaqueError, match="only Spark"):
        check_evaluable(Or((condition, Like(Column(("s",), pa.string()), Literal("a", pa.string())))), Context(), {})


@pytest.mark.parametrize(
    "condition",
    [
        Compare("=", Column(("id",), pa.int64()), Literal(1.5, pa.int64())),
        In(Column(("id",), pa.int64()), (Literal(2, pa.int64()), Literal(1.5, pa.int64()))),
        In(Call("abs", (Literal(1.5, pa.int64()),), pa.int64()), (Literal(2, pa.int64()),)),
    ],
)
def test_a_constant_that_its_type_cannot_hold_is_refused(condition):
    table = fuse.create_table(f"memory://{uuid4()}", "id BIGINT")
    table.append([{"id": 1}])
    with pytest.raises(fuse.InputError, match=re.escape("none of its type: 1.5 would lose a part as int64")):
        table.scan(condition)
    assert table.count(Compare("=", Column(("id",), pa.int64()), Literal(1.5, pa.float64()))) == 0


def test_many_constants_that_each_have_a_type_of_their_own_are_checked_once_each():
    """Arrow makes each type with a zone anew: twenty thousand took 8 seconds, looked through for each type."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    moments = [Literal(start + timedelta(seconds=n), pa.timestamp("us", "UTC")) for n in range(20_000)]
    began = time.process_time()
    check_literals(In(Column(("at",), pa.timestamp("us", "UTC")), tuple(moments)))
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    ["id = 1", "part.b.c LIKE 'a%' AND part.a > 1", "same(s, 'a') OR lower(s) = 'a'", "CAST(s AS INT) = 1",
     "part IS NULL", "CAST(at AS DATE) = '2024-01-01'", "get_json_object(s, '$.a') = '1'", "s = lower('A')",
     "TRUE", "NULL = 1"],
)  # fmt: skip
def test_what_is_known_is_not_refused(text):
    check_evaluable(parse_predicate(text, SCHEMA, functions=[SAME]), Context(), {"same": SAME})


def test_each_term_is_tried_once_however_many_conditions_are_on_it(monkeypatch):
    tried = []
    monkeypatch.setattr(evaluable, "evaluate_term", lambda term, *_: tried.append(term))
    lower = Call("lower", (Column(("s",), pa.string()),), pa.string())
    values = tuple(Literal(str(number), pa.string()) for number in range(1000))

    check_evaluable(Or((*(Compare("=", lower, value) for value in values), In(lower, values))), Context(), {})
    assert tried == [lower]


RAISES = {
    "CAST(s AS INT) = 1": (True, False),
    "CAST(n AS STRING) = '1'": (False, False),
    "n + 1 = 4": (True, False),
    "x * 2 = 4": (False, False),
    "10 / n = 5": (True, False),
    "n % 10 = 3": (False, False),
    "n div 10 = 3": (True, False),
    "make_date(n, 1, 1) = d": (True, False),
    "split_part(s, ',', n) = 'a'": (True, True),
    "date_trunc('day', t) = t": (False, False),
    "year(d) = 2026 AND NOT (abs(n) = 1 OR s LIKE 'a%')": (True, False),
}


@pytest.mark.parametrize("condition", RAISES)
def test_what_may_raise_is_known(condition: str) -> None:
    schema = Schema.create(
        pa.schema(
            [
                ("n", pa.int32()),
                ("x", pa.float64()),
                ("s", pa.string()),
                ("d", pa.date32()),
                ("t", pa.timestamp("us", "UTC")),
            ]
        )
    )
    found = []
    for context in (Context(ansi=True), Context(ansi=False)):
        predicate = parse_predicate(condition, schema, context)
        assert predicate is not None
        found.append(may_raise(predicate, context))
    assert tuple(found) == RAISES[condition]
