"""Kernels against one value at a time: NaN, zeros, NULL, slices, and lists of any length."""

import math
from datetime import UTC, date, datetime
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.expressions import membership
from fuse_index.expressions.kernels import COMPARISON_KERNELS, in_list
from fuse_index.expressions.membership import IntegerSet
from fuse_index.predicate import Literal, LongTuple

EDGES = [None, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf]


def spark_compare(operator: str, left: float | None, right: float | None) -> bool | None:
    """By rank: NaN above all numbers and equal to itself, one zero."""
    if left is None or right is None:
        return (left is None and right is None) if operator == "<=>" else None
    ranks = [(math.isnan(value), 0.0 if math.isnan(value) else value) for value in (left, right)]
    match operator:
        case "=" | "<=>":
            return ranks[0] == ranks[1]
        case "<>":
            return ranks[0] != ranks[1]
        case "<":
            return ranks[0] < ranks[1]
        case "<=":
            return ranks[0] <= ranks[1]
        case ">":
            return ranks[0] > ranks[1]
        case _:
            return ranks[0] >= ranks[1]


@pytest.mark.parametrize("operator", COMPARISON_KERNELS)
@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64()], ids=str)
def test_floats_compare_as_in_spark_beside_a_literal_and_beside_each_other(
    operator: str, data_type: pa.DataType
) -> None:
    kernel, column = COMPARISON_KERNELS[operator], pa.array(EDGES, data_type)
    pairs = list(product(EDGES, EDGES))

    both = kernel(pa.array([left for left, _ in pairs], data_type), pa.array([right for _, right in pairs], data_type))

    assert both.to_pylist() == [spark_compare(operator, left, right) for left, right in pairs]
    for edge in EDGES:
        literal = pa.scalar(edge, data_type)
        assert kernel(column, literal).to_pylist() == [spark_compare(operator, each, edge) for each in EDGES]
        assert kernel(literal, column).to_pylist() == [spark_compare(operator, edge, each) for each in EDGES]
        for other in EDGES:
            assert kernel(literal, pa.scalar(other, data_type)).as_py() == spark_compare(operator, edge, other)


def listed(value: Any, literals: list[Any]) -> bool | None:
    if value is None:
        return None
    return True if value in literals else None if None in literals else False


INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


@given(st.sampled_from(list(INTEGERS)), st.data())
def test_integers_are_found_in_lists_of_any_length(data_type: pa.DataType, draw: st.DataObject) -> None:
    end = 1 << INTEGERS[data_type]
    value = st.none() | st.integers(-4, 4) | st.integers(-end, end - 1) | st.sampled_from([-end, end - 1])
    values = draw.draw(st.lists(value, max_size=40))
    literals = draw.draw(st.lists(value, min_size=1, max_size=40))
    wrapped = draw.draw(st.sampled_from([tuple, LongTuple]))([Literal(each, data_type) for each in literals])
    first = draw.draw(st.integers(0, len(values)))

    for array, expected in (
        (pa.array(values, data_type), values),
        (pa.array(values, data_type).slice(first), values[first:]),
    ):
        assert in_list(array, wrapped).to_pylist() == [listed(each, literals) for each in expected]


def test_many_values_are_found_among_few_many_and_too_many_needles() -> None:
    random = np.random.default_rng(3)
    values = np.append(random.integers(-(1 << 63), (1 << 63) - 1, 30_000), np.arange(-5_000, 5_000) << 48)
    for count in (1, 50, membership.MAX_INTEGER_SET, membership.MAX_INTEGER_SET + 1):
        needles = random.choice(values, count, replace=False)
        literals = tuple(Literal(each, pa.int64()) for each in needles.tolist())

        found = in_list(pa.array(values), literals)

        assert np.array_equal(found.to_numpy(zero_copy_only=False), np.isin(values, needles))


def test_times_are_integers() -> None:
    at, zoned = pa.timestamp("us"), pa.timestamp("us", "UTC")
    days, times = [date(1500, 1, 1), None, date(2020, 1, 1)], [datetime(1960, 1, 1, 1), None, datetime(2020, 1, 1)]
    for values, data_type in ((days, pa.date32()), (times, at), ([t and t.replace(tzinfo=UTC) for t in times], zoned)):
        literals = (
            Literal(values[0], data_type),
            Literal(date(1, 1, 1) if data_type == pa.date32() else None, data_type),
        )
        expected = [listed(value, [literal.value for literal in literals]) for value in values]
        assert in_list(pa.array(values, data_type), literals).to_pylist() == expected


def test_nearly_all_values_are_passed_over_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    search = np.searchsorted
    monkeypatch.setattr(
        np, "searchsorted", lambda needles, values: searched.append(len(values)) or search(needles, values)
    )
    values = np.random.default_rng(1).integers(0, 1 << 60, 65_536)

    found = IntegerSet.of(pa.array(values[:50])).contains(pa.array(values))

    assert found.true_count == 50
    assert sum(searched) < len(values) // 32
