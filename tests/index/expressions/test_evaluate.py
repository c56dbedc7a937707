"""The oracle, against what Spark answered, and on what it must refuse."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate, evaluate_constant, evaluate_term
from fuse_index.plugin import Function
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
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from fuse_index.sql.parse import parse_predicate_as_written

NAN = math.nan
A = Column(("a",), pa.int32())
ROWS = pa.table({"a": pa.array([1, None, 3], pa.int32())})


def number(value):
    return Literal(value, pa.int32())


def test_the_corpus_of_answers_is_large(golden):
    assert len(golden.cases) > 2_500
    assert sum(1 for _ in golden.plain) > 2_500
    assert golden.rows.num_rows == 32
    assert {letter for _, answers in golden.answered for letter in answers} == {True, False, None}


def test_every_predicate_is_on_every_row_what_it_was_to_spark(golden):
    wrong, judged = {}, 0
    for case, answers in golden.plain:
        try:
            ours = evaluate(
                parse_predicate_as_written(case.sql, golden.schema, case.context), golden.rows, case.context
            ).to_pylist()
        except OpaqueError:
            continue
        judged += 1
        if ours != answers:
            wrong[str(case)] = [
                (row, mine, spark) for row, (mine, spark) in enumerate(zip(ours, answers, strict=True)) if mine != spark
            ]

    assert wrong == {}
    assert judged > 2_500


def test_three_valued_logic_of_and_or_not():
    sides = [Compare("=", Literal(value, pa.bool_()), Literal(True, pa.bool_())) for value in (True, False, None)]
    table = [[(evaluate_constant(And((a, b))), evaluate_constant(Or((a, b)))) for b in sides] for a in sides]

    assert table == [
        [(True, True), (False, True), (None, True)],
        [(False, True), (False, False), (False, None)],
        [(None, True), (False, None), (None, None)],
    ]
    assert [evaluate_constant(Not(side)) for side in sides] == [False, True, None]


def test_nan_equals_itself_and_is_the_largest_and_zero_has_no_sign():
    column = Column(("d",), pa.float64())
    rows = pa.table({"d": [-math.inf, -0.0, 0.0, math.inf, NAN, None]})
    nan, zero = Literal(NAN, pa.float64()), Literal(-0.0, pa.float64())

    assert evaluate(Compare("=", column, nan), rows).to_pylist() == [False, False, False, False, True, None]
    assert evaluate(Compare(">", column, Literal(math.inf, pa.float64())), rows).to_pylist() == [
        False,
        False,
        False,
        False,
        True,
        None,
    ]
    assert evaluate(Compare(">=", column, zero), rows).to_pylist() == [False, True, True, True, True, None]
    assert evaluate(In(column, (nan, zero)), rows).to_pylist() == [False, True, True, False, True, None]


def test_a_null_in_a_list_makes_unknown_of_no():
    assert evaluate(In(A, (number(1), number(None))), ROWS).to_pylist() == [True, None, None]
    assert evaluate(Not(In(A, (number(1), number(None)))), ROWS).to_pylist() == [False, None, None]


def test_rows_come_in_any_number_of_chunks_none_too():
    chunks = pa.concat_tables([ROWS, ROWS.slice(2), ROWS.slice(0, 0)])

    assert evaluate(Compare(">", A, number(1)), chunks).to_pylist() == [False, None, True, True]
    assert evaluate(Compare(">", A, number(1)), ROWS.slice(0, 0)) == pa.array([], pa.bool_())


def test_a_constant_stands_on_every_row():
    assert evaluate(Compare("=", number(1), number(1)), ROWS).to_pylist() == [True, True, True]
    assert evaluate(And((Compare("=", number(1), number(2)), IsNull(A))), ROWS).to_pylist() == [False, False, False]


def test_fields_of_a_null_struct_are_null():
    kind = pa.struct([("x", pa.int32())])
    rows = pa.table({"s": pa.array([{"x": 1}, None, {"x": None}], kind)})

    assert evaluate(IsNull(Column(("s", "x"), pa.int32())), rows).to_pylist() == [False, True, True]


def test_texts_are_compared_by_their_bytes():
    column = Column(("t",), pa.string())
    rows = pa.table({"t": ["\uffff", "\U0001f600"]})

    assert evaluate(Compare(">", column, Literal("\uffff", pa.string())), rows).to_pylist() == [False, True]


def test_a_pattern_is_the_whole_text_over_all_its_lines():
    column = Column(("t",), pa.string())
    rows = pa.table({"t": ["a\nb", "ab\n", "a.b", "axb"]})

    assert evaluate(Like(column, Literal("a_b", pa.string())), rows).to_pylist() == [True, False, True, True]
    assert evaluate(Like(column, Literal("a.b", pa.string())), rows).to_pylist() == [False, False, True, False]
    assert evaluate(Like(column, Literal("a!_%", pa.string()), "!"), rows).to_pylist() == [False, False, False, False]


def test_a_text_may_be_looked_for_in_another_column():
    rows = pa.table({"t": ["abc", "abc", None], "u": ["ab", "b", "a"]})
    t, u = Column(("t",), pa.string()), Column(("u",), pa.string())

    assert evaluate(StartsWith(t, u), rows).to_pylist() == [True, False, None]


@pytest.mark.parametrize(
    "predicate",
    [
        Opaque("a + 1 = 2"),
        Compare("=", A, Literal(1, pa.int64())),
        Compare("=", Cast(Column(("d",), pa.float64()), pa.string()), Literal("1.0", pa.string())),
        Compare("=", JsonPath(Column(("j",), pa.string()), "$.a"), Literal("1", pa.string())),
        Compare("=", JsonPath(Column(("t",), pa.string()), "$[99999999999999999999]"), Literal("1", pa.string())),
        Call("match", (A,)),
        Like(Column(("t",), pa.string()), Column(("t",), pa.string())),
        Like(Column(("t",), pa.string()), Literal("a\\b", pa.string())),
    ],
)
def test_what_only_spark_can_evaluate_is_refused(predicate):
    rows = pa.table({"a": pa.array([1], pa.int32()), "d": [1.0], "t": ["x"], "j": ['{"a":2e23}']})

    with pytest.raises(OpaqueError):
        evaluate(predicate, rows)


def test_functions_of_plugins_are_called_with_arrays_and_constants():
    def matches(values, wanted):
        return pa.array([value is not None and wanted.as_py() in value.split() for value in values.to_pylist()])

    match = Function("match", (pa.string(), pa.string()), matches)
    call = Call("match", (Column(("t",), pa.string()), Literal("b", pa.string())))
    rows = pa.table({"t": ["a b", "c", None]})

    assert evaluate(call, rows, functions={"match": match}).to_pylist() == [True, False, False]
    assert evaluate(Not(call), rows, functions={"match": match}).to_pylist() == [False, True, True]


def test_a_call_of_constants_is_computed_once_and_handed_on_as_a_constant():
    given = []

    def longer(values, others):
        given.append(others)
        return pa.array([len(others.as_py())] * len(values), pa.int64())

    array = Call("array", tuple(Literal(each, pa.float64()) for each in (1.0, 2.0)), pa.list_(pa.float64()))
    call = Call("longer", (Column(("id",), pa.int64()), array), pa.int64())
    functions = {"longer": Function("longer", (None, None), longer, returns=pa.int64())}
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})

    for part in (rows, rows.slice(0, 1), rows.slice(0, 0)):
        assert evaluate_term(call, part, functions=functions).to_pylist() == [2] * len(part)
        assert evaluate_term(array, part).to_pylist() == [[1.0, 2.0]] * len(part)
    assert {type(each) for each in given} == {pa.ListScalar}


def test_functions_of_spark_are_done_where_they_are_sure():
    column = Column(("t",), pa.string())
    lower = Call("lower", (column,), pa.string())

    assert evaluate_term(lower, pa.table({"t": ["Straße É", None, "A"]})).to_pylist() == ["straße é", None, "a"]
    for unsure in ("ΟΔΟΣ", "İstanbul", "\u0378"):
        with pytest.raises(OpaqueError, match="not sure"):
            evaluate_term(lower, pa.table({"t": ["a", unsure]}))


def test_a_json_path_finds_text_or_null():
    path = JsonPath(Column(("t",), pa.string()), "$.a")
    rows = pa.table({"t": ['{"a":1}', '{"a":"1"}', '{"a":1.0}', '{"a":null}', "{}", "no json", None]})

    assert evaluate_term(path, rows).to_pylist() == ["1", "1", "1.0", None, None, None, None]
    assert (
        evaluate(Compare("=", Cast(path, pa.int32()), Literal(1, pa.int32())), rows).to_pylist()
        == [True] * 3 + [None] * 4
    )


def test_a_float_that_javas_spell_differently_is_still_a_number_and_not_null():
    path = JsonPath(Column(("t",), pa.string()), "$.a")
    rows = pa.table({"t": ['{"a":2e23}', '{"a":2.5}']})

    assert evaluate(Compare(">", Cast(path, pa.float64()), Literal(1e23, pa.float64())), rows).to_pylist() == [
        True,
        False,
    ]
    assert evaluate(IsNull(path), rows).to_pylist() == [False, False]


def test_values_of_a_term_have_its_type():
    made = evaluate_term(Cast(A, pa.int64()), ROWS)

    assert made.type == pa.int64()
    assert made.to_pylist() == [1, None, 3]
    assert evaluate_term(number(7), ROWS).to_pylist() == [7, 7, 7]


def test_a_cast_depends_on_the_session():
    column = Column(("ts",), pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC"))})
    day = Cast(column, pa.string())
    east, west = Context("+01:00"), Context("America/New_York")

    assert evaluate_term(day, rows, east).to_pylist() == ["1970-01-01 01:00:00"]
    assert evaluate_term(day, rows, west).to_pylist() == ["1969-12-31 19:00:00"]


def test_a_like_pattern_that_no_engine_takes_is_left_to_spark():
    column, texts = Column(("t",), pa.string()), pa.table({"t": ["x" * 20_000]})

    def found(pattern):
        return evaluate(Like(column, Literal(pattern, pa.string())), texts, Context()).to_pylist()

    assert found("_x" * 4999 + "y") == [False]
    assert found("x" * 20_000) == [True]
    assert found("x" * 19_999 + "%") == [True]
    with pytest.raises(OpaqueError, match="a LIKE pattern of 200000 characters, 10000 being the most here"):
        found("_" * 200_000)
