"""States of rows, by hand: each expectation is what Spark answers."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.aggregates.finalize import finalize_state
from fuse_index.aggregates.state import COUNT_STAR_ARGUMENT, Aggregate, Aggregation, merge_states, state_of
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.predicate import Column

NAN = math.nan


def answer(values, kind, function, groups=None, cut=None):
    """Of one column; ``cut`` makes two states of the rows, which are merged."""
    column, by = Column(("c",), kind), Column(("g",), groups.type if groups is not None else pa.int8())
    asked = Aggregation((by,) if groups is not None else (), (Aggregate(function, column),))
    rows = pa.table({"c": pa.array(values, kind), **({"g": groups} if groups is not None else {})})
    parts = [rows] if cut is None else [rows.slice(0, cut), rows.slice(cut)]
    states = [state_of(asked, lambda term, part=part: part.column(term.path[0]), part.num_rows) for part in parts]
    found = finalize_state(asked, merge_states(asked, states))
    return found[-1].to_pylist() if groups is not None else found[0][0].as_py()


@pytest.mark.parametrize("cut", [None, 0, 1, 2])
@pytest.mark.parametrize(
    ("values", "kind", "function", "expected"),
    [
        ([NAN, 1.0, None], pa.float64(), "min", 1.0),
        ([NAN, 1.0, None], pa.float64(), "max", NAN),
        ([NAN, None, NAN], pa.float64(), "min", NAN),
        ([None, None, None], pa.float64(), "max", None),
        ([1.0, -math.inf, NAN], pa.float32(), "min", -math.inf),
        ([2**31 - 1, 2**31 - 1, None], pa.int32(), "sum", 2**32 - 2),
        ([1, 2, None], pa.int8(), "avg", 1.5),
        ([None, None, None], pa.int32(), "avg", None),
        ([None, None, None], pa.int32(), "sum", None),
        ([None, 5, None], pa.int32(), "count", 1),
        ([Decimal("0.01"), Decimal("0.02"), Decimal("0.02")], pa.decimal128(10, 2), "avg", Decimal("0.016667")),
        ([Decimal("-0.01"), Decimal("-0.02"), Decimal("-0.02")], pa.decimal128(10, 2), "avg", Decimal("-0.016667")),
        ([Decimal("99999999.99")] * 3, pa.decimal128(10, 2), "sum", Decimal("299999999.97")),
        (["b", "\U0001f600", "\uffff"], pa.string(), "max", "\U0001f600"),
        ([True, False, None], pa.bool_(), "min", False),
    ],
)
def test_an_aggregate_is_sparks_however_rows_are_divided(values, kind, function, expected, cut):
    found = answer(values, kind, function, cut=cut)

    assert found == expected or (found != found and expected != expected)


def test_null_is_a_group_nan_is_one_and_zeros_are_one():
    groups = pa.array([None, -0.0, 0.0, NAN, -NAN, None])

    assert sorted(answer([1] * 6, pa.int32(), "count", groups)) == [2, 2, 2]


def test_types_are_sparks():
    types = {
        ("sum", pa.int8()): pa.int64(),
        ("sum", pa.float32()): pa.float64(),
        ("sum", pa.decimal128(35, 2)): pa.decimal128(38, 2),
        ("avg", pa.int64()): pa.float64(),
        ("avg", pa.decimal128(10, 2)): pa.decimal128(14, 6),
        ("min", pa.date32()): pa.date32(),
        ("count", pa.string()): pa.int64(),
    }

    assert {about: Aggregate(about[0], Column(("c",), about[1])).type for about in types} == types


@pytest.mark.parametrize(
    ("function", "kind"),
    [("sum", pa.string()), ("avg", pa.date32()), ("max", pa.list_(pa.int8())), ("sum", pa.bool_())],
)
def test_what_spark_does_not_add_up_is_refused(function, kind):
    with pytest.raises(UnsupportedAggregate):
        Aggregation((), (Aggregate(function, Column(("c",), kind)),)).check()


def test_of_no_rows_there_is_one_answer_or_no_group():
    whole = Aggregation((), (Aggregate("count", COUNT_STAR_ARGUMENT), Aggregate("max", Column(("c",), pa.int8()))))

    assert [column.to_pylist() for column in finalize_state(whole, merge_states(whole, []))] == [[0], [None]]
    assert merge_states(Aggregation((Column(("c",), pa.int8()),), whole.aggregates), []).num_rows == 0
