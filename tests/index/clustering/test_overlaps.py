"""Depths and overlaps are those that counting each pair and each value gives, whatever the values; and curves fill
their space.
"""

import itertools
import math
from decimal import Decimal
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.clustering import overlaps
from fuse_index.clustering.curves import hilbert_positions, zorder_positions
from fuse_index.clustering.overlaps import Intervals
from fuse_storage import ColumnStatistics, compute_statistics
from tests.effort import effort

LONG = "x" * 40
KINDS = {
    pa.int32(): [-1, 0, 1, 2, None],
    pa.float64(): [-math.inf, -0.0, 0.0, 1.5, math.nan, None],
    pa.string(): ["", "a", "b", "ä", LONG, LONG + "a", None],
    pa.binary(): [b"", b"\xff", b"\xff" * 40, None],
    pa.bool_(): [False, True, None],
    pa.decimal128(5, 2): [Decimal("-1.25"), Decimal("0.00"), Decimal("7.50"), None],
}
"""A small world: few values, so that bounds touch, coincide and are cut."""


def rank(value, kind):
    """The place of a value in Spark's order, as something to compare."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value + 0.0)
    return (1, value.encode() if isinstance(value, str) else value)


def bounds(rows, kind):
    """What statistics can tell of the rows of a block, by their own cut bounds: the least and the greatest that may
    be.
    """
    found = compute_statistics(pa.array(rows, kind))
    low, high = found.min[0].as_py(), found.max[0].as_py()
    known = [row for row in rows if row is not None]
    first = (0,) if len(known) < len(rows) else rank(low, kind)
    last = (0,) if not known else (3,) if high is None else rank(high, kind)
    return first, last


def slow(blocks):
    """Overlaps and depths by looking at each pair and each point."""
    points = sorted({point for block in blocks for point in block})
    overlaps = [sum(a <= d and c <= b for c, d in blocks) - 1 for a, b in blocks]
    met = {point: sum(a <= point <= b for a, b in blocks) for point in points}
    return overlaps, [max(met[point] for point in points if a <= point <= b) for a, b in blocks]


def statistics(blocks, kind) -> ColumnStatistics:
    return ColumnStatistics.concat([compute_statistics(pa.array(rows, kind)) for rows in blocks])


@st.composite
def worlds(draw):
    kind = draw(st.sampled_from(list(KINDS)))
    return kind, draw(st.lists(st.lists(st.sampled_from(KINDS[kind]), min_size=1, max_size=3), max_size=9))


@settings(max_examples=effort(25), deadline=None)
@given(worlds())
def test_a_column_is_measured_as_brute_force_measures_it(world):
    kind, blocks = world
    if not blocks:
        return
    found = overlaps.column_intervals(statistics(blocks, kind), np.array([len(rows) for rows in blocks]))
    expected = slow([bounds(rows, kind) for rows in blocks])

    assert [list(part) for part in overlaps.overlaps_and_depths(found)] == list(expected)
    assert found.constant.tolist() == [
        len({rank(row, kind) for row in rows}) == 1
        and not any(row is not None and len(row) > 32 for row in rows if kind in CUT)
        for rows in blocks
    ]


CUT = (pa.string(), pa.binary())


PAIRS = st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([0, 1, 2]))


@settings(max_examples=effort(18), deadline=None)
@given(st.lists(st.lists(PAIRS, min_size=1, max_size=4), min_size=1, max_size=7))
def test_several_columns_are_an_order_that_holds_all_rows_of_a_block_and_surely_what_is_between_them(blocks):
    parts = [[[row[place] for row in rows] for rows in blocks] for place in (0, 1)]
    counts = np.array([len(rows) for rows in blocks])
    columns = [overlaps.column_intervals(statistics(part, pa.int32()), counts) for part in parts]
    around, within = overlaps.lexicographic_intervals(columns), overlaps.lexicographic_intervals(columns, certain=True)
    ends = [[tuple(rank(value, None) for value in row) for row in rows] for rows in blocks]
    corners = [[tuple(end(values) for values in zip(*one, strict=True)) for end in (min, max)] for one in ends]

    assert [list(part) for part in overlaps.overlaps_and_depths(around)] == list(slow(corners))
    true = [(min(one), max(one)) for one in ends]
    for one, other in itertools.permutations(range(len(blocks)), 2):
        apart = true[one][1] < true[other][0]
        assert not apart or within.high[one] < within.low[other]
        assert apart or around.high[one] >= around.low[other]
    assert (within.low <= within.high).all()


def test_bounds_that_are_not_known_overlap_with_everything():
    known = statistics([[1], [5], [None]], pa.int32())
    found = overlaps.column_intervals(
        ColumnStatistics.concat([known, ColumnStatistics.unknown(pa.int32(), 1)]), np.array([1, 1, 1, 1])
    )

    assert overlaps.overlaps_and_depths(found)[0].tolist() == [1, 1, 1, 3]
    assert (found.unknown.tolist(), found.constant.tolist()) == ([False, False, False, True], [True, True, True, False])
    assert overlaps.measure_overlaps(found).histogram == {2: 4}


def test_depths_are_counted_one_by_one_and_then_by_doubling():
    assert overlaps.depth_histogram(np.array([1, 1, 2, 16, 17, 32, 33, 64, 65])) == {
        1: 2,
        2: 1,
        16: 1,
        32: 2,
        64: 2,
        128: 1,
    }


def test_a_range_of_any_length_finds_its_greatest():
    values = np.random.default_rng(3).integers(0, 100, 70)
    pairs = np.array([(a, b) for a in range(70) for b in range(a + 1, 71)])

    assert overlaps.range_max(values, *pairs.T).tolist() == [values[a:b].max() for a, b in pairs]


def test_a_hundred_thousand_blocks_take_no_pairs():
    low = np.random.default_rng(1).integers(0, 10**6, 100_000)
    found = overlaps.measure_overlaps(Intervals(low, low + 50, np.zeros(100_000, bool), np.zeros(100_000, bool)))

    assert found.blocks == 100_000
    assert 8 < found.average_overlaps < 12


@pytest.mark.parametrize(("columns", "side"), [(2, 16), (3, 8)])
def test_a_hilbert_curve_goes_from_neighbour_to_neighbour_and_a_z_curve_by_bits(columns, side):
    cells = np.array(list(itertools.product(range(side), repeat=columns)))
    along = cells[np.argsort(hilbert_positions(list(cells.T)))]

    assert np.abs(np.diff(along, axis=0)).sum(axis=1).tolist() == [1] * (side**columns - 1)
    assert len(set(zorder_positions(list(cells.T)).tolist())) == side**columns
    assert cells[np.argsort(zorder_positions(list(cells.T)))][: 2**columns].max() == 1


def test_a_report_tells_of_the_key_and_of_any_other_that_might_be():
    schema = "id BIGINT, at STRUCT<x: INT>, name STRING"
    table = fuse.create_table(f"memory://clustering-{uuid4().hex}", schema, ["id", "at.x"], {"block_rows": 4})
    table.append(
        pa.table({"id": range(16), "at": [{"x": n % 2} for n in range(16)], "name": [f"n{n % 4}" for n in range(16)]})
    )

    found = table.inspect.clustering()
    assert (found.cluster_by, found.method, found.blocks, found.average_depth) == (("id", "at.x"), "linear", 4, 1.0)
    assert [order.name for order in found.orders] == ["id, at.x", "id", "at.x"]
    assert found.orders[2].overlaps.histogram == {4: 4}
    assert found.to_arrow().column("average_overlaps").to_pylist() == [0.0, 0.0, 3.0]
    assert found.to_dict()["orders"][0]["depth_histogram"] == [{"depth": 1, "blocks": 4}]
    assert table.inspect.clustering(["name"]).maximum_depth == 4
    curve = table.inspect.clustering(["id", "name"], "zorder")
    assert (len(curve.orders), curve.average_depth, curve.average_overlaps, curve.maximum_depth) == (2, 2.5, 1.5, 4)
    assert "id: depth 1.00 on average, 1 at most; overlaps with 0.00" in str(found)


def test_what_is_no_key_is_said_and_an_empty_table_has_no_depth():
    table = fuse.create_table(f"memory://clustering-{uuid4().hex}", "id BIGINT, tags ARRAY<INT>")

    with pytest.raises(fuse.InputError, match=r"no clustering key: give it one with cluster_by"):
        table.inspect.clustering()
    for by, method, error in [
        (["tags"], None, "plain types"),
        (["idd"], None, "id"),
        (["id", "id"], None, "twice"),
        ("id", None, "list"),
    ]:
        with pytest.raises((fuse.SchemaError, fuse.InputError), match=error):
            table.inspect.clustering(by, method)
    for method in ("hilbert", "snake"):
        with pytest.raises(fuse.InvalidArgument, match=method):
            table.inspect.clustering(["id"], method)
    found = table.inspect.clustering(["id"])
    assert (found.blocks, found.average_depth, found.maximum_depth, found.orders[0].overlaps.histogram) == (
        0,
        0.0,
        0,
        {},
    )
    assert found.to_svg().startswith("<svg")
