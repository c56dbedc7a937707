"""zone_map by itself: bounds that hold for each zone, of any type and length, and nothing said of what is not known."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.plugin import ALL, NONE, SOME, Input, NoOptions, Reason, Refusal
from fuse_index.predicate import Cast, Column, Compare, Context, In, Literal, StartsWith
from fuse_index.testing import IndexTests
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch, MemoryFiles
from fuse_plugins.zone_map import ZoneBounds
from tests.plugins.some_types import SuiteOfManyTypes, of_other_options

NAN = float("nan")
LAST_LETTER = "\U0010ffff"


class TestZoneBounds(SuiteOfManyTypes):
    index = ZoneBounds


@of_other_options
class TestZoneBoundsOnATerm(IndexTests):
    """The engine computes the term; the kind sees texts."""

    index = ZoneBounds
    inputs = (Input(Cast(Column(("c",), pa.int32()), pa.string()), pa.string()),)

    def literals(self, term):
        return ["", "-1", "0", "1", "2147483647", "00"]


def batch_of(data_type, *blocks):
    """Blocks, each a list of zones, each a list of values."""
    column = Column(("c",), data_type)
    subject = KindUnderTest(ZoneBounds(), (Input(column, data_type),), NoOptions())
    return MemoryBatch.index_blocks(
        subject, [[pa.table({"c": pa.array(zone, data_type)}) for zone in zones] for zones in blocks]
    )


def votes(batch, condition):
    probe = ZoneBounds().compile(condition, batch.kind_under_test.inputs, NoOptions(), Context())
    return ZoneBounds().probe(probe, batch).bits.tolist()


def equal(data_type, value):
    return Compare("=", Column(("c",), data_type), Literal(value, data_type))


@pytest.mark.parametrize(
    ("data_type", "low", "value", "high"),
    [
        (pa.int64(), -(2**63), 7, 2**63 - 1),
        (pa.float64(), float("-inf"), 0.5, NAN),
        (pa.float32(), -0.0, 0.0, 1.0),
        (pa.bool_(), False, True, True),
        (pa.string(), "", "m", LAST_LETTER * 100),
        (pa.binary(), b"", b"m", b"\xff" * 100),
        (pa.decimal128(38, 2), Decimal("-999999.99"), Decimal("0.01"), Decimal("999999.99")),
        (pa.timestamp("us", "UTC"), datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), None),
    ],
)
def test_a_zone_between_whose_bounds_a_value_lies_is_read_and_one_of_it_alone_holds(data_type, low, value, high):
    batch = batch_of(data_type, [[low, value, high], [value, value]], [[None, None], [value, None]])

    assert votes(batch, equal(data_type, value)) == [SOME, ALL, NONE, SOME]


def test_zones_above_and_below_a_value_are_left_out():
    batch = batch_of(pa.int64(), [[1, 2], [5, 9], [10, None]], [[], [7]])

    assert votes(batch, equal(pa.int64(), 7)) == [NONE, SOME, NONE, NONE, ALL]


def test_nan_is_greatest():
    batch = batch_of(pa.float64(), [[1.0, NAN], [1.0, float("inf")], [NAN], [None, NAN]])
    above = Compare(">", Column(("c",), pa.float64()), Literal(float("inf"), pa.float64()))

    assert votes(batch, equal(pa.float64(), NAN)) == [SOME, NONE, ALL, SOME]
    assert votes(batch, above) == [SOME, NONE, ALL, SOME]


def test_long_texts_are_bounded_by_short_ones():
    long, last = "a" * 1000, LAST_LETTER * 1000
    batch = batch_of(pa.string(), [[long + "x"], ["b"], [last], [long, "aab"]])
    begins = StartsWith(Column(("c",), pa.string()), Literal("aaaa", pa.string()))

    assert max(len(repr(each)) for each in batch.summaries.to_pylist()) < 500
    assert votes(batch, equal(pa.string(), long)) == [SOME, NONE, NONE, SOME]
    assert votes(batch, equal(pa.string(), last)) == [NONE, NONE, SOME, NONE]
    assert votes(batch, begins) == [ALL, NONE, NONE, SOME]


def test_a_segment_whose_greatest_text_is_unknown_is_read():
    batch = batch_of(pa.string(), [["a"], [LAST_LETTER * 100]], [["b"], [None]])
    rolled_up = ZoneBounds().roll_up(batch.summaries)

    assert rolled_up.as_py() == {"least": ["a"], "greatest": [None], "nulls": [1]}


def test_a_segment_of_nulls_alone_is_left_out():
    batch = batch_of(pa.int64(), [[None], [None, None]])
    whole = batch_of(pa.int64(), [[None, None, None]])
    rolled_up = ZoneBounds().roll_up(batch.summaries)

    assert rolled_up.as_py() == whole.summaries[0].as_py()
    assert votes(whole, equal(pa.int64(), 0)) == [NONE]


def test_summaries_of_another_number_of_zones_say_nothing():
    batch = batch_of(pa.int64(), [[1], [2]], [[3]])
    summaries = pa.array(
        [{"least": [1], "greatest": [1], "nulls": [0]}, {"least": [3], "greatest": None, "nulls": [0]}],
        batch.summaries.type,
    )
    other = MemoryBatch(batch.kind_under_test, batch.blocks, summaries, batch.locations, MemoryFiles({}))

    assert votes(other, equal(pa.int64(), 9)) == [SOME, SOME, SOME]


def test_long_lists_of_values_are_looked_for():
    numbers = [Literal(2 * number, pa.int64()) for number in range(5000)]
    batch = batch_of(pa.int64(), [[1], [5], [4]], [[9_999, 10_001], [20_000]])

    assert votes(batch, In(Column(("c",), pa.int64()), tuple(numbers))) == [NONE, NONE, ALL, NONE, NONE]


@pytest.mark.parametrize(
    ("types", "reason"),
    [([pa.list_(pa.int64())], Reason.TYPE_MISMATCH), ([pa.int64(), pa.int64()], Reason.LEAF_UNSUPPORTED)],
)
def test_columns_without_one_order_are_refused(types, reason):
    inputs = [Input(Column((f"c{number}",), each), each) for number, each in enumerate(types)]
    refusal = ZoneBounds().accepts(inputs, NoOptions())

    assert isinstance(refusal, Refusal)
    assert refusal.reason is reason
