"""Statistics, held to a model that is too simple to be wrong: Python's own min and max under Spark's order."""

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import ColumnStatistics, Schema, statistics
from fuse_storage.bounds import MAX_BOUND_BYTES, prefix_end, truncate_bounds, truncate_bytes_up, truncate_text_up

MICROS = st.integers(-(2**62), 2**62)
DOUBLES = st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
LETTERS = st.one_of(st.integers(0, 0xD7FF), st.integers(0xE000, 0x10FFFF)).map(chr)
TEXTS = st.text(st.sampled_from("ab\x00é日😀\U0010ffff"), max_size=40) | st.text(LETTERS, max_size=6)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan]),
    pa.float64(): DOUBLES,
    pa.decimal128(10, 2): st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=40) | st.binary(max_size=40).map(lambda data: data.replace(b"\x00", b"\xff")),
    pa.date32(): st.integers(-(2**31), 2**31 - 1),
    pa.timestamp("us"): MICROS,
    pa.timestamp("us", "UTC"): MICROS,
}


def spark(value: Any) -> Any:
    """A key that sorts as Spark does."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def plain(array: pa.Array) -> list[Any]:
    """Python's values; days and microseconds where Python's calendar ends too early."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return array.to_pylist()


def filled(values: list[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
        return pa.array(values, pa.int32() if pa.types.is_date(data_type) else pa.int64()).cast(data_type)
    return pa.array(values, data_type)


columns = st.sampled_from(list(VALUES)).flatmap(
    lambda data_type: st.tuples(
        st.just(data_type),
        st.lists(st.lists(st.none() | VALUES[data_type], min_size=1, max_size=6), min_size=1, max_size=5),
    )
)


def check(found: ColumnStatistics, units: list[list[Any]]) -> None:
    """Each unit's statistics are those of its values."""
    assert len(found) == len(units)
    lows, highs = plain(found.min), plain(found.max)
    for place, unit in enumerate(units):
        present = [value for value in unit if value is not None]
        assert found.null_count[place].as_py() == len(unit) - len(present)
        assert found.nan_count[place].as_py() == sum(
            isinstance(value, float) and math.isnan(value) for value in present
        )
        low_cut, high_cut = found.min_cut[place].as_py(), found.max_cut[place].as_py()
        if not present:
            assert (lows[place], highs[place], low_cut, high_cut) == (None, None, False, False)
            continue
        least, most = min(present, key=spark), max(present, key=spark)
        if low_cut:
            assert spark(lows[place]) < spark(least)
        else:
            assert spark(lows[place]) == spark(least)
        if not high_cut:
            assert spark(highs[place]) == spark(most)
        elif highs[place] is not None:
            assert spark(highs[place]) > spark(most)
        for bound in (lows[place], highs[place]):
            if isinstance(bound, float) and bound == 0:
                assert math.copysign(1, bound) == 1
            if isinstance(bound, str | bytes):
                assert len(spark(bound)) <= MAX_BOUND_BYTES + 3


def offsets(units: list[list[Any]]) -> np.ndarray:
    return np.cumsum([0, *map(len, units)])


@given(columns)
def test_statistics_of_zones_are_those_of_their_values(column: tuple[pa.DataType, list[list[Any]]]) -> None:
    data_type, units = column
    values = filled([value for unit in units for value in unit], data_type)

    found = statistics.compute_statistics(values, offsets(units))

    assert (found.min.type, found.max.type) == (data_type, data_type)
    check(found, units)


@given(columns, st.data())
def test_reduced_statistics_are_those_of_all_values(
    column: tuple[pa.DataType, list[list[Any]]], draw: st.DataObject
) -> None:
    data_type, units = column
    values = filled([value for unit in units for value in unit], data_type)
    ends = sorted({*draw.draw(st.sets(st.integers(1, len(units)))), len(units)})
    groups = np.array([0, *ends])

    found = statistics.roll_up_statistics(
        statistics.compute_statistics(values, offsets(units)), groups, np.array([len(unit) for unit in units])
    )

    joined = [[value for unit in units[start:end] for value in unit] for start, end in pairwise(groups)]
    check(found, joined)


@given(columns)
def test_encoded_statistics_are_decoded_alike(column: tuple[pa.DataType, list[list[Any]]]) -> None:
    data_type, units = column
    found = statistics.compute_statistics(
        filled([value for unit in units for value in unit], data_type), offsets(units)
    )

    table = pa.table(statistics.encode_statistics(7, found))

    assert table.column_names == statistics.statistics_column_names(7, data_type)
    back = statistics.decode_statistics(table, 7, data_type)
    assert back is not None
    for part in statistics.STATISTICS_PARTS:
        assert str(getattr(back, part)) == str(getattr(found, part))  # NaN is not equal to itself in Arrow
    assert statistics.decode_statistics(table, 8, data_type) is None


@given(st.lists(TEXTS | st.binary(max_size=50), min_size=1, max_size=4))
def test_text_that_is_no_utf8_is_bounded_by_text(values: list[str | bytes]) -> None:
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    array = pa.array(raw, pa.binary()).view(pa.string())

    found = statistics.compute_statistics(array)

    (low,), (high,) = found.min.to_pylist(), found.max.to_pylist()  # both are valid, or this raises
    assert low.encode() <= min(raw)
    assert high is None or high.encode() >= max(raw)
    assert found.min_cut[0].as_py() == (low.encode() != min(raw))
    assert found.max_cut[0].as_py() == (high is None or high.encode() != max(raw))


@pytest.mark.parametrize(
    ("value", "above"),
    [
        ("a" * 33, "a" * 31 + "b"),
        ("é" * 20, "é" * 15 + "ê"),
        ("\ud7ff" * 20, "\ud7ff" * 9 + "\ue000"),
        ("a" + "\U0010ffff" * 20, "b"),
        ("\U0010ffff" * 20, None),
        ("x" * 31 + "日本", "x" * 30 + "y"),
    ],
)
def test_a_long_text_is_raised_to_a_short_one(value: str, above: str | None) -> None:
    found = truncate_text_up(value.encode())

    assert (found and found.decode()) == above


def test_long_bytes_are_raised_to_short_ones() -> None:
    assert truncate_bytes_up(b"a" * 40) == b"a" * 31 + b"b"
    assert truncate_bytes_up(b"a\xff" + b"\xff" * 40) == b"b"
    assert truncate_bytes_up(b"\xff" * 40) is None


def test_a_bound_of_32_bytes_is_not_cut() -> None:
    bounds, flags = truncate_bounds(pa.array(["a" * 32, "a" * 33]), upper=False)

    assert bounds.to_pylist() == ["a" * 32, "a" * 32]
    assert flags.to_pylist() == [False, True]


def one(values: list[Any], data_type: pa.DataType | None = None) -> ColumnStatistics:
    return statistics.compute_statistics(pa.array(values, data_type))


def test_a_bound_that_one_unit_has_whole_is_a_value_of_the_group() -> None:
    parts = ColumnStatistics.concat([one(["a" * 33, "b"]), one(["a" * 32, "c"])])

    found = statistics.roll_up_statistics(parts, np.array([0, 2]), np.array([2, 2]))

    assert (found.min.to_pylist(), found.min_cut.to_pylist()) == (["a" * 32], [False])


def test_what_is_unknown_of_one_unit_is_unknown_of_the_group() -> None:
    parts = ColumnStatistics.concat([one([1, 2]), ColumnStatistics.unknown(pa.int64(), 1)])

    found = statistics.roll_up_statistics(parts, np.array([0, 1, 2]), np.array([2, 5]))
    whole = statistics.roll_up_statistics(parts, np.array([0, 2]), np.array([2, 5]))

    assert found.min.to_pylist() == [1, None]
    for part in ("min", "max", "null_count", "nan_count", "distinct_count", "size"):
        assert getattr(whole, part).to_pylist() == [None]


def test_an_unbounded_maximum_leaves_the_group_unbounded() -> None:
    parts = ColumnStatistics.concat([one(["\U0010ffff" * 20]), one(["a"])])

    found = statistics.roll_up_statistics(parts, np.array([0, 2]), np.array([1, 1]))

    assert (found.max.to_pylist(), found.max_cut.to_pylist()) == ([None], [True])
    assert found.min.to_pylist() == ["a"]


def test_distinct_counts_survive_only_alone() -> None:
    known = ColumnStatistics.constant(pa.scalar(5), np.array([3, 4, 5]))

    found = statistics.roll_up_statistics(known, np.array([0, 1, 3]), np.array([3, 4, 5]))

    assert found.distinct_count.to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (pa.scalar(5), ([5, 5], [5, 5], [0, 0], [0, 0], [1, 1])),
        (pa.scalar(None, pa.int32()), ([None, None], [None, None], [3, 4], [0, 0], [0, 0])),
        (pa.scalar(math.nan), ([math.nan] * 2, [math.nan] * 2, [0, 0], [3, 4], [1, 1])),
        (pa.scalar("a" * 40), (["a" * 32] * 2, ["a" * 31 + "b"] * 2, [0, 0], [0, 0], [1, 1])),
    ],
)
def test_a_column_that_units_lack_is_constant(scalar: pa.Scalar, expected: tuple[list[Any], ...]) -> None:
    found = ColumnStatistics.constant(scalar, np.array([3, 4]))

    kept = (found.min, found.max, found.null_count, found.nan_count, found.distinct_count)
    assert str([part.to_pylist() for part in kept]) == str(list(expected))


@pytest.mark.parametrize(
    ("given", "data_type", "expected"),
    [
        ([1, 2], pa.int64(), [1]),
        ([1, 2], pa.float64(), [1.0]),
        ([1, 2], pa.decimal128(12, 2), [Decimal("1.00")]),
        ([1.5, math.nan], pa.float64(), [1.5]),
        ([Decimal("1.20")], pa.decimal128(20, 4), [Decimal("1.2000")]),
    ],
)
def test_statistics_widen_with_their_column(given: list[Any], data_type: pa.DataType, expected: list[Any]) -> None:
    narrow = {int: pa.int32(), float: pa.float32(), Decimal: pa.decimal128(10, 2)}[given[0].__class__]

    assert one(given, narrow).cast(data_type).min.to_pylist() == expected


def test_bounds_that_cannot_be_widened_become_unknown() -> None:
    days = statistics.compute_statistics(pa.array([2**31 - 1], pa.int32()).cast(pa.date32()))

    found = days.cast(pa.timestamp("us"))

    assert found.min.to_pylist() == [None]
    assert found.null_count.to_pylist() == [0]


def test_units_are_taken_and_joined() -> None:
    parts = ColumnStatistics.concat([one([1]), one([2]), one([3])])

    assert parts.take(np.array([2, 0])).min.to_pylist() == [3, 1]
    assert len(parts.take(np.array([], np.int64))) == 0


def test_fields_of_structs_have_statistics_and_a_null_struct_counts_as_null() -> None:
    rows = pa.table({"s": pa.array([{"x": 1, "t": {"y": "a"}}, None, {"x": None, "t": None}])})
    schema = Schema.create(rows.schema)
    found = {path: statistics.compute_statistics(statistics.column_values(rows, path)) for path, _ in schema.leaves()}

    assert {path: (s.min.to_pylist(), s.null_count.to_pylist()) for path, s in found.items()} == {
        ("s", "x"): ([1], [2]),
        ("s", "t", "y"): (["a"], [2]),
    }


def test_chunks_make_no_difference() -> None:
    chunked = pa.chunked_array([[1.0, None], [], [math.nan, -5.0]])

    parts = [
        statistics.encode_statistics(1, statistics.compute_statistics(values))
        for values in (chunked, chunked.combine_chunks())
    ]
    assert str(pa.table(parts[0])) == str(pa.table(parts[1]))


@pytest.mark.parametrize(
    "values", [pa.array([], pa.int64()), pa.chunked_array([], pa.string())], ids=["array", "chunks"]
)
def test_no_rows_have_no_bounds(values: pa.Array | pa.ChunkedArray) -> None:
    found = statistics.compute_statistics(values)

    assert (found.min.to_pylist(), found.null_count.to_pylist()) == ([None], [0])


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        *[("a", "b"), ("a\U0010ffff", "b"), ("\U0010ffff", None), ("", None), ("\ud7ff", "\ue000")],
        *[(b"a\xff", b"b"), (b"\xff", None), (b"\x00", b"\x01")],
    ],
)
def test_the_end_of_a_prefix_is_the_least_value_above_it(prefix, end):
    assert prefix_end(prefix) == end
