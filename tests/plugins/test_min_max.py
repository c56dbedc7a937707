"""min_max by itself: which units a range of values meets, and which it holds whole."""

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    ColumnStatistics,
    Conjunction,
    Input,
    NoOptions,
    Probe,
    Reason,
    Refusal,
    ValueSet,
)
from fuse_index.predicate import And, Column, Compare, Contains, Context, In, Like, Literal, Not, StartsWith
from fuse_plugins.min_max import MinMax
from fuse_plugins.min_max.integer_keys import integer_keys
from fuse_plugins.min_max.value_ranges import MAX_RANGES_ONE_BY_ONE, ValueRanges
from tests.plugins.some_types import SuiteOfManyTypes

NAN = float("nan")


class TestMinMax(SuiteOfManyTypes):
    index = MinMax


class Units:
    """A batch that has nothing but the bounds of one column."""

    def __init__(self, data_type, *bounds):
        low, high = pa.array([low for low, _ in bounds], data_type), pa.array([high for _, high in bounds], data_type)
        flags, counts = pa.array([False] * len(bounds)), pa.array([0] * len(bounds), pa.int64())
        self.known = ColumnStatistics(low, high, flags, flags, counts, counts, counts, counts)

    def __len__(self):
        return len(self.known)

    def statistics(self, number):
        return self.known


class Unknown:
    def __len__(self):
        return 3

    def statistics(self, number):
        return None


def compiled(leaf, data_type):
    return MinMax().compile(leaf, [Input(Column(("a",), data_type), data_type)], NoOptions(), Context())


def votes(leaf, data_type, *bounds):
    return (
        MinMax().probe(pickle.loads(pickle.dumps(compiled(leaf, data_type))), Units(data_type, *bounds)).bits.tolist()
    )


def compare(operator, value, data_type):
    return Compare(operator, Column(("a",), data_type), Literal(value, data_type))


def within(values, data_type):
    return In(Column(("a",), data_type), tuple(Literal(value, data_type) for value in values))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("=", [NONE, SOME, SOME, SOME, NONE, ALL]),
        ("<>", [ALL, SOME, SOME, SOME, ALL, NONE]),
        ("<", [ALL, SOME, SOME, NONE, NONE, NONE]),
        ("<=", [ALL, ALL, SOME, SOME, NONE, ALL]),
        (">", [NONE, NONE, SOME, SOME, ALL, NONE]),
        (">=", [NONE, SOME, SOME, ALL, ALL, ALL]),
    ],
)
@pytest.mark.parametrize(
    ("data_type", "make"),
    [
        (pa.int8(), int),
        (pa.int64(), int),
        (pa.float32(), float),
        (pa.float64(), float),
        (pa.decimal128(9, 1), lambda n: Decimal(n)),
        (pa.decimal128(38, 0), lambda n: Decimal(n)),
        (pa.string(), lambda n: chr(100 + n)),
        (pa.binary(), lambda n: bytes([100 + n])),
        (pa.date32(), lambda n: date(1970, 1, 10 + n)),
        (pa.timestamp("us", "UTC"), lambda n: datetime(1970, 1, 10 + n, tzinfo=UTC)),
        (pa.timestamp("us"), lambda n: datetime(1970, 1, 10 + n)),
    ],
)
def test_a_comparison_judges_units_by_their_bounds(data_type, make, operator, expected):
    bounds = [(make(low), make(high)) for low, high in [(1, 4), (1, 5), (4, 6), (5, 6), (6, 7), (5, 5)]]

    assert votes(compare(operator, make(5), data_type), data_type, *bounds) == expected


def test_booleans_are_ordered():
    bounds = [(False, False), (False, True), (True, True)]

    assert votes(compare("=", True, pa.bool_()), pa.bool_(), *bounds) == [NONE, SOME, ALL]
    assert votes(within([True, False], pa.bool_()), pa.bool_(), *bounds) == [ALL, ALL, ALL]


def test_nan_is_the_greatest_value_and_equal_to_itself():
    bounds = [(1.0, 2.0), (1.0, NAN), (NAN, NAN), (1.0, math.inf)]

    assert votes(compare(">", 2.0, pa.float64()), pa.float64(), *bounds) == [NONE, SOME, ALL, SOME]
    assert votes(compare("=", NAN, pa.float64()), pa.float64(), *bounds) == [NONE, SOME, ALL, NONE]
    assert votes(compare("<", NAN, pa.float64()), pa.float64(), *bounds) == [ALL, SOME, NONE, ALL]
    assert votes(compare(">", math.inf, pa.float64()), pa.float64(), *bounds) == [NONE, SOME, ALL, NONE]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_has_no_sign(zero):
    bounds = [(-0.0, 0.0), (0.0, 0.0), (-1.0, -0.0)]

    assert votes(compare("=", zero, pa.float64()), pa.float64(), *bounds) == [ALL, ALL, SOME]
    assert votes(compare("<", zero, pa.float64()), pa.float64(), *bounds) == [NONE, NONE, SOME]


def test_text_is_ordered_by_its_bytes_and_not_by_utf_16():
    bounds = [("～", "😀")]

    assert votes(compare(">", "～", pa.string()), pa.string(), *bounds) == [SOME]
    assert votes(compare("=", "😀", pa.string()), pa.string(), *bounds) == [SOME]


def test_a_cut_bound_is_never_taken_for_a_value():
    longer = "x" * 40
    bounds = [("x" * 32, "x" * 31 + "y")]  # what is kept of a unit that only holds the longer text

    assert votes(compare("=", longer, pa.string()), pa.string(), *bounds) == [SOME]
    assert votes(compare("<", "x" * 31 + "y", pa.string()), pa.string(), *bounds) == [SOME]
    assert votes(compare("<=", "x" * 31 + "y", pa.string()), pa.string(), *bounds) == [ALL]


def test_a_bound_that_is_not_known_is_no_bound():
    bounds = [(None, None), (5, None), (None, 5)]

    assert votes(compare(">", 4, pa.int64()), pa.int64(), *bounds) == [SOME, ALL, SOME]
    assert votes(compare("<", 5, pa.int64()), pa.int64(), *bounds) == [SOME, NONE, SOME]
    assert votes(compare("<=", 5, pa.int64()), pa.int64(), *bounds) == [SOME, SOME, ALL]
    assert votes(compare(">", "b", pa.string()), pa.string(), (None, None), ("c", None), (None, "a")) == [
        SOME,
        ALL,
        NONE,
    ]


def test_a_list_of_neighbours_holds_what_lies_between():
    assert votes(within([3, 4, 5], pa.int32()), pa.int32(), (3, 5), (3, 6), (6, 9), (4, 4)) == [ALL, SOME, NONE, ALL]


def test_an_and_group_is_judged_as_one():
    column = Column(("a",), pa.int64())
    five, fifty = Literal(10, pa.int64()), Literal(50, pa.int64())
    joint = Conjunction.of(And((Compare(">", column, five), Compare("<", column, fifty))))
    excluded = Conjunction.of(And(tuple(Not(Compare("=", column, Literal(n, pa.int64()))) for n in (1, 2, 3))))

    assert votes(joint, pa.int64(), (1, 10), (20, 30), (50, 100), (1, 100)) == [NONE, ALL, NONE, SOME]
    assert votes(excluded, pa.int64(), (1, 3), (1, 4), (4, 9)) == [NONE, SOME, ALL]


def test_a_prefix_is_a_range():
    column, text = Column(("a",), pa.string()), pa.string()
    bounds = [("a", "ab"), ("ab", "abz"), ("abx", "abz"), ("ac", "b")]

    assert votes(StartsWith(column, Literal("ab", text)), text, *bounds) == [SOME, ALL, ALL, NONE]
    assert votes(Like(column, Literal("ab%", text)), text, *bounds) == [SOME, ALL, ALL, NONE]


def test_a_pattern_that_goes_on_after_its_prefix_is_never_certain():
    column, text = Column(("a",), pa.string()), pa.string()

    assert votes(Like(column, Literal("ab%c", text)), text, ("ab", "abz"), ("ac", "b")) == [SOME, NONE]
    assert votes(Like(column, Literal("a_c", text)), text, ("aa", "az"), ("b", "b")) == [SOME, NONE]
    assert compiled(Like(column, Literal("%c", text)), text).reason == Reason.LEAF_UNSUPPORTED


def test_statistics_that_are_missing_say_nothing():
    probe = compiled(compare("=", 1, pa.int64()), pa.int64())

    assert MinMax().probe(probe, Unknown()).bits.tolist() == [SOME, SOME, SOME]


def test_what_has_no_range_is_refused_with_a_reason():
    column = Column(("a",), pa.string())

    refused = compiled(Contains(column, Literal("a", pa.string())), pa.string())

    assert refused == Refusal(Reason.LEAF_UNSUPPORTED, "no range of values says the same")
    assert MinMax().accepts([Input(column, pa.string())], NoOptions()).reason == Reason.NOT_NEEDED


short_text = st.text(st.sampled_from("ab\x00￿😀"), max_size=3)


@given(
    st.lists(short_text, min_size=MAX_RANGES_ONE_BY_ONE + 1, unique=True),
    st.lists(st.tuples(short_text, short_text), min_size=1),
)
def test_many_texts_are_judged_like_few(wanted, pairs):
    bounds = [tuple(sorted(pair)) for pair in pairs]
    long = votes(within(wanted, pa.string()), pa.string(), *bounds)
    each = [votes(within([value], pa.string()), pa.string(), *bounds) for value in wanted]

    assert long == [ALL if ALL in found else SOME if SOME in found else NONE for found in zip(*each, strict=True)]


@given(
    st.lists(st.decimals(-(10**30), 10**30, places=2), min_size=MAX_RANGES_ONE_BY_ONE + 1, unique=True),
    st.data(),
)
def test_many_decimals_are_judged_like_few(wanted, data):
    data_type = pa.decimal128(38, 2)
    near = st.sampled_from(wanted).flatmap(lambda value: st.sampled_from([value, value + Decimal("0.01"), -value]))
    bounds = [tuple(sorted(pair)) for pair in data.draw(st.lists(st.tuples(near, near), min_size=1))]
    long = votes(within(wanted, data_type), data_type, *bounds)
    each = [votes(within([value], data_type), data_type, *bounds) for value in wanted]

    assert long == [ALL if ALL in found else SOME if SOME in found else NONE for found in zip(*each, strict=True)]


@given(st.lists(st.floats(), min_size=1), st.floats(), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
def test_keys_of_floats_keep_their_order(values, literal, operator):
    order = integer_keys(pa.array([*values, literal]))
    for key, value in zip(order[:-1], values, strict=True):
        expected = literal == value or (math.isnan(literal) and math.isnan(value))
        assert (key == order[-1]) == expected
        if not math.isnan(value) and not math.isnan(literal):
            assert (key < order[-1]) == (value < literal)
        elif math.isnan(literal):
            assert key <= order[-1]


def test_a_long_literal_lies_between_short_bounds():
    texts = ["x" * 50 + str(i) for i in range(MAX_RANGES_ONE_BY_ONE + 1)]

    assert votes(within(texts, pa.string()), pa.string(), ("x", "xy"), ("y", "z"), ("x" * 32, "x" * 32)) == [
        SOME,
        NONE,
        NONE,
    ]


def test_what_is_wanted_may_be_nothing():
    nothing = Conjunction.of(And((compare("<", 1, pa.int64()), compare(">", 5, pa.int64()))))

    assert votes(nothing, pa.int64(), (1, 9)) == [NONE]


def test_a_probe_costs_nothing():
    probe = compiled(compare("=", 1, pa.int64()), pa.int64())

    assert isinstance(probe, Probe)
    assert probe.cost == 0
    assert isinstance(MinMax().probe(probe, Units(pa.int64(), (1, 1))), Ballot)
    assert np.uint8 == MinMax().probe(probe, Units(pa.int64(), (1, 1))).bits.dtype


def test_a_bound_that_nobody_writes_takes_no_memory_for_its_like():
    ranges = ValueRanges.from_value_set(ValueSet.points_at([f"v{number}" for number in range(20)]), pa.string(), True)
    least = pa.array([*(f"v{number}" for number in range(20)), "x" * 1_000_000, "a" * 1_000_000] * 10)
    greatest = pa.array([*(f"v{number}" for number in range(20)), "x" * 1_000_001, "w"] * 10)

    before = pa.total_allocated_bytes()
    meets, within = ranges.compare(least, greatest)
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert (meets[:20].all(), within[:20].all(), meets[21], within[20:22].any()) == (True, True, True, False)
