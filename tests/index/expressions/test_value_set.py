"""Domains and boxes, against the oracle: a value is in a domain exactly where its leaf is TRUE."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from itertools import product
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.value_set import Interval, ValueSet
from fuse_index.predicate import And, Column, Compare, Contains, In, IsNull, Like, Literal, Not, Or, StartsWith

NAN = math.nan
OPERATORS = ["=", "<=>", "<>", "<", "<=", ">", ">="]
WORLDS = {
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 2, 2**31 - 1]),
    "float": (pa.float64(), [-math.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, math.inf, NAN]),
    "decimal": (pa.decimal128(5, 2), [Decimal("-1.00"), Decimal("0.00"), Decimal("0.01"), Decimal("999.99")]),
    "bool": (pa.bool_(), [False, True]),
    "date": (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    ),
    "text": (
        pa.string(),
        ["", "a", "a ", "a\0", "ab", "b", "é", "\ud7ff", "\ue000", "\uffff", "😀", "\U0010ffff", "\U0010ffff" * 2],
    ),
    "bytes": (pa.binary(), [b"", b"\x00", b"a", b"a\xff", b"b", b"\xff", b"\xff\xff"]),
}


def column(kind):
    return Column(("c",), kind)


def true_on(predicate, kind, values):
    return [answer is True for answer in evaluate(predicate, pa.table({"c": pa.array(values, kind)})).to_pylist()]


def contained(domain, values):
    return [domain.contains(value) for value in values]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_domain_of_a_comparison_holds_what_the_oracle_calls_true(world, operator):
    kind, values = WORLDS[world]

    for value in values:
        leaf = Compare(operator, column(kind), Literal(value, kind))

        assert contained(ValueSet.of(leaf), values) == true_on(leaf, kind, values), leaf


@pytest.mark.parametrize("world", WORLDS)
def test_the_domain_of_a_list_holds_what_the_oracle_calls_true(world):
    kind, values = WORLDS[world]

    for first, second in product(values, repeat=2):
        leaf = In(column(kind), (Literal(first, kind), Literal(second, kind)))

        assert contained(ValueSet.of(leaf), values) == true_on(leaf, kind, values), leaf


@pytest.mark.parametrize("world", ["text", "bytes"])
def test_the_domain_of_a_prefix_holds_what_the_oracle_calls_true(world):
    kind, values = WORLDS[world]

    for prefix in values:
        leaf = StartsWith(column(kind), Literal(prefix, kind))

        assert contained(ValueSet.of(leaf), values) == true_on(leaf, kind, values), leaf


@pytest.mark.parametrize("pattern", ["", "%", "a%", "a%%", "a", "\\%", "\\%%", "a\\_%", "a\\\\%", "é%", "\U0001f600%"])
def test_the_domain_of_a_pattern_with_a_plain_prefix_is_exact(pattern):
    kind = pa.string()
    values = [*WORLDS["text"][1], "%", "%x", "a_", "a_b", "a\\", "a\\b", "\U0001f600x"]
    leaf = Like(column(kind), Literal(pattern, kind))

    assert contained(ValueSet.of(leaf), values) == true_on(leaf, kind, values)


@pytest.mark.parametrize("pattern", ["_", "a_", "a_%", "%a", "a%b", "%a%", "a\\b", "a\\"])
def test_other_patterns_have_no_domain(pattern):
    assert ValueSet.of(Like(column(pa.string()), Literal(pattern, pa.string()))) is None


def test_no_domain_where_it_could_not_be_exact():
    number = column(pa.int32())

    assert ValueSet.of(Compare("=", number, Literal(None, pa.int32()))) is None
    assert ValueSet.of(Compare("=", number, Literal(1, pa.int64()))) is None
    assert ValueSet.of(Compare("=", number, number)) is None
    assert ValueSet.of(In(number, (Literal(1, pa.int32()), Literal(None, pa.int32())))) is None
    assert ValueSet.of(In(number, ())) is None
    assert ValueSet.of(IsNull(number)) is None
    assert ValueSet.of(Contains(column(pa.string()), Literal("a", pa.string()))) is None


def test_nan_is_the_largest_value_and_zero_has_one_place():
    kind = pa.float64()

    assert ValueSet.of(Compare(">=", column(kind), Literal(NAN, kind))).points() == (NAN,)
    assert ValueSet.of(Compare(">", column(kind), Literal(NAN, kind))) == ValueSet.nothing()
    assert ValueSet.of(Compare("<=", column(kind), Literal(NAN, kind))) == ValueSet.everything()
    assert str(ValueSet.points_at([0.0, -0.0]).points()) == "(0.0,)"
    assert ValueSet.between(5.0).covers(6.0, NAN)
    assert not ValueSet.between(5.0, math.inf, True, True).covers(6.0, NAN)


def test_an_hour_shown_twice_is_two_hours():
    place = ZoneInfo("America/New_York")
    first, second = datetime(2024, 11, 3, 1, 30, tzinfo=place), datetime(2024, 11, 3, 1, 30, tzinfo=place, fold=1)
    domain = ValueSet.between(low=first, low_closed=False)

    assert domain.contains(second)
    assert not domain.contains(first)
    assert len(ValueSet.points_at([first, second]).intervals) == 2


values = st.sampled_from([None, 0, 2, 4, 6])
intervals = st.builds(
    lambda low, high, a, b: ValueSet.between(low, high, a, b), values, values, st.booleans(), st.booleans()
)
domains = st.recursive(
    intervals | st.lists(st.sampled_from([0, 2, 4, 6])).map(ValueSet.points_at),
    lambda inner: (
        st.builds(ValueSet.union, inner, inner)
        | st.builds(ValueSet.intersect, inner, inner)
        | st.builds(ValueSet.complement, inner)
    ),
)
POINTS = range(-1, 8)
"""Every value, and one between and beyond each two."""


@given(domains, domains)
def test_sets_are_united_cut_and_turned_over(a, b):
    for point in POINTS:
        assert a.union(b).contains(point) == (a.contains(point) or b.contains(point))
        assert a.intersect(b).contains(point) == (a.contains(point) and b.contains(point))
        assert a.complement().contains(point) == (not a.contains(point))


@given(domains, domains)
def test_equal_sets_are_equal_however_they_were_made(a, b):
    assert a.union(b) == b.union(a)
    assert a.union(b).complement() == a.complement().intersect(b.complement())
    assert a.complement().complement() == a
    assert hash(a.intersect(b)) == hash(b.intersect(a))


@given(domains)
def test_intervals_are_in_order_and_apart(domain):
    for before, after in zip(domain.intervals, domain.intervals[1:], strict=False):
        assert before.high is not None
        assert after.low is not None
        assert before.high < after.low or (before.high == after.low and not before.high_closed and not after.low_closed)


@given(domains, values, values)
def test_overlap_and_cover_of_a_range_are_those_of_its_points(domain, low, high):
    inside = [p for p in [-9, *POINTS, 9] if (low is None or p >= low) and (high is None or p <= high)]

    assert domain.overlaps(low, high) == any(map(domain.contains, inside))
    if inside:
        assert domain.covers(low, high) == all(map(domain.contains, inside))


def test_points_are_told_only_where_there_is_nothing_else():
    assert ValueSet.points_at([3, 1, 1]).points() == (1, 3)
    assert ValueSet.nothing().points() == ()
    assert ValueSet.between(1, 2, True, True).points() is None
    assert Interval.point(1).is_point
    assert not Interval(1, 2, True, True).is_point


# --- boxes ----------------------------------------------------------------------------------------------------

A, B, TEXT = Column(("a",), pa.int32()), Column(("b",), pa.float64()), Column(("t",), pa.string())
numbers, floats, texts = [None, -1, 0, 1], [None, 0.0, 1.0, NAN], [None, "", "a", "ab"]
ROWS = pa.table(
    {
        "a": pa.array([a for a in numbers for _ in floats for _ in texts], pa.int32()),
        "b": pa.array([b for _ in numbers for b in floats for _ in texts], pa.float64()),
        "t": pa.array([t for _ in numbers for _ in floats for t in texts], pa.string()),
    }
)
leaf = st.one_of(
    st.builds(lambda op, v: Compare(op, A, Literal(v, A.type)), st.sampled_from(OPERATORS), st.sampled_from(numbers)),
    st.builds(lambda op, v: Compare(op, B, Literal(v, B.type)), st.sampled_from(OPERATORS), st.sampled_from(floats)),
    st.builds(
        lambda vs: In(A, tuple(Literal(v, A.type) for v in vs)),
        st.lists(st.sampled_from(numbers), min_size=1, max_size=3),
    ),
    st.builds(lambda v: StartsWith(TEXT, Literal(v, TEXT.type)), st.sampled_from(texts)),
    st.builds(lambda v: Like(TEXT, Literal(v, TEXT.type)), st.sampled_from(["a%", "a", "%a", "_"])),
    st.sampled_from([IsNull(A), Compare("<", A, A), Compare("=", Literal(1, A.type), Literal(1, A.type))]),
)


def deeper(inner):
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(Not, inner) | several.map(And) | several.map(Or)


trees = st.recursive(leaf, deeper, max_leaves=6)


@given(st.lists(trees, min_size=1, max_size=4))
def test_a_box_says_what_its_leaves_say_and_never_more_than_its_group(terms):
    group = And(tuple(terms))
    box = Conjunction.of(group)
    if box is None:
        return
    leaves = evaluate(And(box.leaves), ROWS).to_pylist()
    whole = evaluate(group, ROWS).to_pylist()
    for row, said, answer in zip(ROWS.to_pylist(), leaves, whole, strict=True):
        named = {term: row[term.path[0]] for term, _ in box.domains}
        if None in named.values():
            assert said is not True
        else:
            assert said == all(domain.contains(named[term]) for term, domain in box.domains)
        assert answer is not True or said is True


def test_a_box_knows_jointly_what_no_leaf_knows_alone():
    group = And((Compare(">", A, Literal(10, A.type)), Not(Compare(">=", A, Literal(50, A.type)))))

    assert Conjunction.of(group).domain(A) == ValueSet.between(10, 50)
    assert not Conjunction.of(group).domain(A).overlaps(100, 100)
    assert not Conjunction.of(group).domain(A).overlaps(1, 1)


def test_a_box_excludes_point_by_point():
    group = And(tuple(Compare("<>", A, Literal(v, A.type)) for v in (1, 2, 3)))

    assert [Conjunction.of(group).domain(A).contains(v) for v in (0, 1, 2, 3, 4)] == [True, False, False, False, True]


def test_a_box_of_contradictions_holds_nothing():
    group = And((Compare(">", A, Literal(5, A.type)), Compare("<", A, Literal(3, A.type))))

    assert Conjunction.of(group).domain(A) == ValueSet.nothing()


def test_a_box_reads_alternatives_on_one_term():
    either = Or((Compare("<", A, Literal(0, A.type)), Compare(">", A, Literal(9, A.type))))

    box = Conjunction.of(And((either, Compare("<>", A, Literal(12, A.type)))))

    assert box.leaves == (either, Compare("<>", A, Literal(12, A.type)))
    assert [box.domain(A).contains(v) for v in (-1, 0, 9, 10, 12)] == [True, False, False, True, False]


def test_a_box_leaves_out_what_does_not_reject_null():
    assert Conjunction.of(And((Compare("<=>", A, Literal(1, A.type)), IsNull(B)))) is None


def test_a_box_is_restricted_to_terms():
    on_a, on_b = Compare(">", A, Literal(1, A.type)), Compare("<", B, Literal(1.0, B.type))
    box = Conjunction.of(And((on_a, on_b)))

    assert box.restrict((B,)) == Conjunction(((B, ValueSet.between(high=1.0)),), (on_b,))
    assert box.restrict((A, B)) == box
    assert box.restrict((TEXT,)) is None
    assert box.domain(TEXT) == ValueSet.everything()


def test_a_long_list_meets_a_range():
    long = In(A, tuple(Literal(v, A.type) for v in range(0, 20_000, 2)))
    box = Conjunction.of(And((long, Compare(">=", A, Literal(19_990, A.type)))))

    assert box.domain(A).points() == (19_990, 19_992, 19_994, 19_996, 19_998)


def test_many_sets_are_joined_as_two_at_a_time_are():
    ends = [
        (None, 2, False, True),
        (1, 3, True, False),
        (2, None, False, False),
        (3, 3, True, True),
        (0, 2, True, True),
    ]
    sets = [ValueSet.between(*each) for each in ends]
    for size in range(1, 5):
        for chosen in product(sets, repeat=size):
            assert ValueSet.union_of(chosen) == reduce(ValueSet.union, chosen)
            assert ValueSet.intersection_of(chosen) == reduce(ValueSet.intersect, chosen)
    assert ValueSet.intersection_of([]) == ValueSet.everything()


def test_boxes_travel():
    box = Conjunction.of(And((Compare(">", B, Literal(1.0, B.type)),)))

    assert pickle.loads(pickle.dumps(box)) == box
