"""bloom by itself: the hash, the filter, the matrix, what is kept, what is read."""

import io
import math
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.plugin import ALL, NONE, SOME, Input, Reason
from fuse_index.predicate import Cast, Column, Compare, Context, In, Literal
from fuse_index.testing import IndexTests
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch, MemoryFiles
from fuse_plugins.bloom import Bloom, BloomOptions, zone_index
from fuse_plugins.bloom.bit_matrix import BitMatrix, transpose_filters
from fuse_plugins.bloom.filters import HashFilter, filter_capacity
from fuse_plugins.bloom.hashing import canonical_bytes, hash_family, hash_values
from fuse_storage import NotFound
from tests.plugins.some_types import SuiteOfManyTypes, of_other_options

SLICES = 7
"""Bits that a filter of 1 % asks of each key."""


class TestBloom(SuiteOfManyTypes):
    index = Bloom
    payload_bytes = 2.6  # the fifth of a column's usual bytes; measured closer below


@of_other_options
class TestBloomOfFewWrongReads(IndexTests):
    index = Bloom
    inputs = (Input(Column(("c",), pa.string()), pa.string()),)
    options = {"fpp": 0.0001, "long_text": True}  # noqa: RUF012
    payload_bytes = 6


@of_other_options
class TestBloomOnATerm(IndexTests):
    """The engine computes the term; the kind sees texts."""

    index = Bloom
    inputs = (Input(Cast(Column(("c",), pa.int32()), pa.string()), pa.string()),)

    def literals(self, term):
        return ["", "-1", "0", "1", "2147483647", "00"]


# --- hashing
# ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_have_the_xxh3_of_their_eight_bytes(numbers):
    expected = [xxhash.xxh3_64_intdigest(number.to_bytes(8, "little", signed=True)) for number in numbers]

    assert hash_values(pa.array(numbers, pa.int64())).tolist() == expected


@given(st.lists(st.text()))
def test_texts_have_the_xxh3_of_their_utf8(texts):
    assert hash_values(pa.array(texts, pa.string())).tolist() == [
        xxhash.xxh3_64_intdigest(text.encode()) for text in texts
    ]


@pytest.mark.parametrize(
    ("narrow", "wide", "values"),
    [
        (pa.int8(), pa.int64(), [-128, 0, 127]),
        (pa.int32(), pa.int64(), [-1, 0, 7]),
        (pa.float32(), pa.float64(), [0.1, -0.0, math.nan, math.inf]),
        (pa.decimal128(9, 2), pa.decimal128(38, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("1234567.89")]),
    ],
)
def test_a_widened_column_keeps_its_hashes(narrow, wide, values):
    before = pa.array(values, narrow)

    assert hash_family(narrow) == hash_family(wide)
    assert hash_values(before).tolist() == hash_values(before.cast(wide)).tolist()


def test_what_spark_calls_equal_has_equal_bytes():
    negative_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]

    assert len(set(canonical_bytes(pa.array([0.0, -0.0])))) == 1
    assert len(set(canonical_bytes(pa.array([math.nan, negative_nan, -math.nan])))) == 1
    assert len(set(canonical_bytes(pa.array([0.0, math.nan, 5e-324])))) == 3


@given(st.lists(st.integers(1 - 10**38, 10**38 - 1), min_size=1))
def test_wide_decimals_and_narrow_ones_may_stand_together(unscaled):
    values = pa.array([Decimal(number) for number in unscaled], pa.decimal128(38, 0))
    sizes = [8 if -(2**63) <= number < 2**63 else 16 for number in unscaled]

    assert canonical_bytes(values) == [
        n.to_bytes(size, "little", signed=True) for n, size in zip(unscaled, sizes, strict=True)
    ]
    assert hash_values(values).tolist() == [xxhash.xxh3_64_intdigest(found) for found in canonical_bytes(values)]


def test_nulls_have_no_hash_and_slices_none_of_their_neighbours():
    values = pa.array([1, None, 2, 3, None, 4])

    assert hash_values(values.slice(1, 4)).tolist() == hash_values(pa.array([2, 3])).tolist()
    assert hash_values(pa.array(["a", "b", None, "c"]).slice(1)).tolist() == hash_values(pa.array(["b", "c"])).tolist()


# --- the filter
# ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(), unique=True), st.sampled_from([0.3, 0.01, 0.001]))
def test_a_filter_filled_at_once_is_the_filter_filled_one_by_one(keys, fpp):
    at_once, one_by_one = HashFilter(100, fpp), HashFilter(100, fpp)
    at_once.fill(np.array([xxhash.xxh3_64_intdigest(key) for key in keys], np.uint64))
    for key in keys:
        one_by_one.add(key, skip_check=True)

    assert at_once.bitarray == one_by_one.bitarray
    assert at_once.count == one_by_one.count == len(keys)
    assert all(key in at_once for key in keys)


def test_a_filter_is_as_wrong_as_it_says():
    held, others = pa.array(np.arange(65_536)), pa.array(np.arange(10**9, 10**9 + 20_000))
    bloom_filter = HashFilter(65_536, 0.01)
    bloom_filter.fill(hash_values(held))

    wrong = sum(key in bloom_filter for key in canonical_bytes(others)) / len(others)

    assert wrong == pytest.approx(0.01, rel=0.25)
    assert all(key in bloom_filter for key in canonical_bytes(held.slice(0, 2000)))


def test_a_filter_stays_what_it_is_through_a_copy_a_union_a_pickle_and_a_file():
    bloom_filter, other = HashFilter(50, 0.01), HashFilter(50, 0.01)
    bloom_filter.add(b"one")
    other.add(b"two")
    file = io.BytesIO()
    bloom_filter.tofile(file)
    file.seek(0)

    assert b"one" in pickle.loads(pickle.dumps(bloom_filter))
    assert b"one" in bloom_filter.copy()
    assert {b"one" in (bloom_filter | other), b"two" in (bloom_filter | other)} == {True}
    assert b"one" in HashFilter.fromfile(file)
    assert b"two" not in bloom_filter


@given(st.integers(1, 10**7))
def test_sizes_are_few_and_never_too_small(distinct):
    capacity = filter_capacity(distinct)

    assert capacity >= distinct
    assert filter_capacity(capacity) == capacity
    assert capacity <= max(16, 2 * distinct) if distinct <= 4096 else capacity <= distinct * 17 / 16


# --- the matrix
# ---------------------------------------------------------------------------------------------------------


class Bytes:
    """A payload that remembers what was read of it."""

    def __init__(self, data):
        self.data, self.size, self.reads = data, len(data), []

    def read(self, ranges):
        self.reads += ranges
        return [self.data[start : start + length] for start, length in ranges]


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 31, 200])
def test_a_matrix_says_what_its_filters_say(columns):
    filters = [HashFilter(256, 0.01) for _ in range(columns)]
    for number, bloom_filter in enumerate(filters):
        bloom_filter.fill(hash_values(pa.array(np.arange(200 * number, 200 * number + 200))))
    data = transpose_filters([np.frombuffer(bloom_filter.tobytes(), np.uint8) for bloom_filter in filters])
    one = filters[0]
    matrix, payload = BitMatrix(3, columns, one.num_slices, one.bits_per_slice), Bytes(b"abc" + data)

    assert matrix.size == len(data)
    for value in (0, 199, 200, 5000, 200 * columns - 1):
        found = asked(matrix, hash_values(pa.array([value])), payload)
        assert found.tolist() == [canonical_bytes(pa.array([value]))[0] in bloom_filter for bloom_filter in filters]


@pytest.mark.parametrize("columns", [1, 8, 9, 150])
def test_a_matrix_has_the_bits_of_each_row_of_all_filters_one_after_the_other(columns):
    filters = np.random.default_rng(columns).integers(0, 256, (columns, 2061), np.uint8)  # more than are laid at once

    rows = np.unpackbits(filters, axis=1, bitorder="little").T

    assert transpose_filters(list(filters)) == np.packbits(rows, bitorder="little").tobytes() + bytes(2)


def test_many_keys_are_found_as_each_would_be():
    filters = [HashFilter(4096, 0.01) for _ in range(20)]
    for number, bloom_filter in enumerate(filters):
        bloom_filter.fill(hash_values(pa.array(np.arange(4000 * number, 4000 * number + 4000))))
    payload = Bytes(transpose_filters([np.frombuffer(bloom_filter.tobytes(), np.uint8) for bloom_filter in filters]))
    matrix = BitMatrix(0, 20, filters[0].num_slices, filters[0].bits_per_slice)
    keys = hash_values(pa.array([1, 9_000_001, 9_000_002, 4001]))

    each = [asked(matrix, keys[i : i + 1], payload) for i in range(4)]

    assert asked(matrix, keys, payload).tolist() == np.logical_or.reduce(each).tolist()
    assert asked(matrix, hash_values(pa.array(np.arange(30_000))), payload)[:7].all()


def test_a_filter_is_asked_only_for_the_keys_that_it_may_hold():
    filters = [HashFilter(16, 0.01) for _ in range(3)]
    for bloom_filter in filters:
        bloom_filter.fill(hash_values(pa.array([1, 2, 3])))
    payload = Bytes(transpose_filters([np.frombuffer(bloom_filter.tobytes(), np.uint8) for bloom_filter in filters]))
    matrix = BitMatrix(0, 3, filters[0].num_slices, filters[0].bits_per_slice)
    keys = hash_values(pa.array([10**6, 2, 10**9]))

    assert matrix.may_contain(keys, payload, np.array([0, 1, 2]), np.array([2, 2, 3])).tolist() == [True, True, False]
    assert matrix.may_contain(keys, payload, np.array([3, 3, 3]), np.array([0, 0, 0])).tolist() == [False, False, False]


def asked(matrix, keys, payload):
    return matrix.may_contain(keys, payload, np.zeros(matrix.columns, np.int64), np.full(matrix.columns, len(keys)))


# --- what is kept
# -------------------------------------------------------------------------------------------------------

COLUMN = Column(("c",), pa.int64())
INPUTS = (Input(COLUMN, pa.int64()),)
COARSE = BloomOptions(fpp=0.01)
SUBJECT = KindUnderTest(Bloom(), INPUTS, COARSE)


def on(values, column=COLUMN, options=None):
    subject = KindUnderTest(Bloom(), (Input(column, column.type),), options or COARSE)
    return MemoryBatch.index_blocks(
        subject, [[pa.table({"c": pa.array(zone, column.type)}) for zone in block] for block in values], packs=1
    )


def of_type(shelf, column_type):
    """The same sidecars, of a column whose type was changed since."""
    blocks = tuple([zone.cast(pa.schema([("c", column_type)])) for zone in block] for block in shelf.blocks)
    inputs = (Input(Column(("c",), column_type), column_type),)
    return replace(shelf, blocks=blocks, kind_under_test=replace(shelf.kind_under_test, inputs=inputs))


def equals(value, column=COLUMN):
    return Compare("=", column, Literal(value, column.type))


def votes(shelf, leaf):
    subject = shelf.kind_under_test
    return Bloom().probe(Bloom().compile(leaf, subject.inputs, subject.options, Context()), shelf).bits.tolist()


def states(shelf):
    return [[zone["capacity"] for zone in summary["zones"]] for summary in shelf.summaries.to_pylist()]


def test_a_unique_key_takes_no_more_than_a_byte_and_a_third():
    unique = np.arange(4 * 65_536).reshape(4, -1)
    shelf = on([[zone] for zone in unique] + [[unique[0] + 10**6, np.arange(3392)]])

    assert sum(len(data) for data in shelf.files.data.values()) / (5 * 65_536 + 3392) < 1.3


def test_a_tenth_of_the_mistakes_costs_half_as_many_bytes_again():
    shelf = on([[np.arange(50_000)]], options=BloomOptions())

    assert BloomOptions().fpp == 0.001
    assert 1.7 < len(shelf.files.data["pack-0"]) / 50_000 < 1.9


def test_a_single_small_block_takes_no_more_either():
    shelf = on([[np.arange(50_000)]])

    assert len(shelf.files.data["pack-0"]) / 50_000 < 1.3


def test_zones_of_one_value_or_none_need_no_filter():
    shelf = on([[[5, 5, None], [None, None]], [[7], [1, 2]]])

    assert states(shelf) == [[0, 0], [0, 16]]
    assert shelf.locations[0] is None
    assert votes(shelf, equals(5)) == [ALL, NONE, NONE, NONE]
    assert votes(shelf, In(COLUMN, (Literal(5, pa.int64()), Literal(7, pa.int64())))) == [ALL, NONE, ALL, NONE]


def test_spans_add_up_to_the_pack():
    shelf = on([[np.arange(500), np.arange(90)], [[1]], [np.arange(300)]])
    made = [place.span for place in shelf.locations if place is not None]

    assert [start for start, _ in made] == [0, made[0][1]]
    assert 0 <= shelf.packs()[0][0].size - sum(length for _, length in made) <= 3 * 2


def test_a_long_constant_gets_a_filter():
    column = Column(("c",), pa.string())
    shelf = on([[["x" * 100] * 3]], column)

    assert states(shelf) == [[16]]
    assert votes(shelf, equals("x" * 100, column)) == [SOME]
    assert votes(shelf, equals("y", column)) == [NONE]


def test_long_text_is_left_out_unless_asked_for():
    column = Column(("c",), pa.string())
    texts = [[["x" * 300 + str(i) for i in range(9)]]]
    shelf = on(texts, column)

    assert states(shelf) == [[None]]
    assert votes(shelf, equals("y", column)) == [SOME]
    assert "long_text=True" in Bloom().inspect(shelf, BloomOptions())["skipped_because"]
    assert votes(on(texts, column, BloomOptions(long_text=True)), equals("y", column)) == [NONE]


def test_a_widened_column_is_still_pruned_and_another_type_is_not():
    narrow = on([[[1, 2, 3]]], Column(("c",), pa.int32()))
    widened, other = of_type(narrow, pa.int64()), of_type(narrow, pa.float64())

    assert votes(widened, equals(9)) == [NONE]
    assert votes(widened, equals(2)) == [SOME]
    assert votes(other, equals(9.0, Column(("c",), pa.float64()))) == [SOME]


def test_what_is_shown_of_an_index_is_what_it_has():
    shelf = on([[[1, 2, 3], [None]], [[4]]])

    shown = Bloom().inspect(shelf, COARSE)

    assert (shown["zones"], shown["filters"], shown["constant_zones"], shown["skipped_zones"]) == (3, 1, 2, 0)
    assert shown["filter_bytes"] == math.prod(zone_index.filter_shape(16, 0.01)) // 8


@pytest.mark.parametrize("fpp", [0.0, 0.6, -1.0, math.nan])
def test_a_share_that_makes_no_sense_is_refused(fpp):
    with pytest.raises(ValueError, match=r"between 0\.0001 and 0\.5"):
        BloomOptions(fpp=fpp)


def test_two_columns_and_types_without_hashes_are_refused():
    assert Bloom().accepts(INPUTS * 2, BloomOptions()).reason == Reason.LEAF_UNSUPPORTED
    nested = pa.list_(pa.int64())
    assert Bloom().accepts([Input(Column(("c",), nested), nested)], BloomOptions()).reason == Reason.TYPE_MISMATCH


def test_comparisons_are_refused_with_a_reason():
    refused = Bloom().compile(Compare("<", COLUMN, Literal(1, pa.int64())), INPUTS, BloomOptions(), Context())

    assert (refused.reason, refused.detail) == (Reason.LEAF_UNSUPPORTED, "a bloom filter answers =, <=> and IN")


def test_a_timestamp_is_found_in_whatever_zone_it_was_asked_for():
    column = Column(("c",), pa.timestamp("us", "UTC"))
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)

    assert votes(on([[[noon, None]], [[datetime(2024, 1, 2, tzinfo=UTC)]]], column), equals(noon, column)) == [
        ALL,
        NONE,
    ]


# --- what is read
# -------------------------------------------------------------------------------------------------------


class Counted(MemoryFiles):
    """Files that remember which ranges were read."""

    def read_ranges(self, key, ranges):
        self.data["reads"].extend(ranges)
        return super().read_ranges(key, ranges)


def counted(shelf):
    return replace(shelf, files=Counted({**shelf.files.data, "reads": []}))


def read_bytes(shelf):
    return sum(length for _, length in shelf.files.data["reads"])


@pytest.mark.parametrize("blocks", [2, 40])
def test_a_needle_reads_one_short_row_for_each_bit_whatever_the_number_of_zones(blocks):
    values = np.arange(blocks * 3 * 4096).reshape(blocks, 3, 4096)
    shelf = counted(on(values))

    assert sum(vote == SOME for vote in votes(shelf, equals(5))) <= 1 + 3 * blocks // 10
    assert len(shelf.files.data["reads"]) <= 2 * SLICES
    assert read_bytes(shelf) <= 2 * SLICES * (256 + 4)


def test_a_long_list_reads_each_byte_once():
    values = np.arange(10 * 3 * 4096).reshape(10, 3, 4096)
    shelf = counted(on(values))
    wanted = In(COLUMN, tuple(Literal(int(value), pa.int64()) for value in range(0, 10**7, 1000)))

    assert SOME in votes(shelf, wanted)
    assert read_bytes(shelf) == len(shelf.files.data["pack-0"])


def test_a_list_is_cut_to_what_each_block_may_hold():
    values = np.arange(20 * 2 * 4096).reshape(20, 2, 4096)
    shelf = counted(on(values))
    wanted = In(COLUMN, tuple(Literal(int(value), pa.int64()) for value in range(-(10**6), 10**6, 1000)))
    few = range(0, 20 * 2 * 4096, 1000)

    kept = sum(vote == SOME for vote in votes(shelf, wanted))

    assert len({value // 4096 for value in few}) <= kept <= len({value // 4096 for value in few}) + 6
    assert read_bytes(shelf) <= len(few) * SLICES * (256 + 4)


def test_what_a_filter_cannot_tell_is_not_read():
    shelf = counted(on([[np.arange(0, 10**7, 1000)], [np.arange(0, 10**7, 100_000)]]))
    wanted = In(COLUMN, tuple(Literal(int(value), pa.int64()) for value in range(1, 10**7, 2500)))

    assert votes(shelf, wanted)[0] == SOME  # 4,000 values in its range: 40 mistakes to expect
    assert 0 < read_bytes(shelf) < len(shelf.files.data["pack-0"]) // 10


def test_a_pack_that_cannot_be_read_is_an_error_among_others():
    blocks = [[pa.table({"c": np.arange(block * 100, block * 100 + 100)})] for block in range(5)]
    shelf = MemoryBatch.index_blocks(SUBJECT, blocks, packs=5)
    files = {key: data for key, data in shelf.files.data.items() if key != "pack-3"}

    with pytest.raises(NotFound, match="pack-3"):
        votes(replace(shelf, files=MemoryFiles(files)), equals(5))


def test_asking_again_reads_nothing():
    shelf = counted(on(np.arange(4 * 4096).reshape(2, 2, 4096)))
    votes(shelf, equals(5))
    before = read_bytes(shelf)

    assert votes(shelf, equals(5))
    assert read_bytes(shelf) == before > 0


def test_many_packs_are_asked_at_once_and_their_answers_kept_apart():
    blocks = [[pa.table({"c": np.arange(block * 100, block * 100 + 100)})] for block in range(40)]
    shelf = MemoryBatch.index_blocks(SUBJECT, blocks, packs=40)

    found = [votes(shelf, equals(value)) for value in (5, 3950)]

    assert found[0][0] == found[1][39] == SOME
    assert all(sum(vote == SOME for vote in some) < 8 for some in found)


@pytest.mark.parametrize("columns", [*range(1, 20), 63, 64, 65, 150])
@pytest.mark.parametrize("length", [1, 3, 1_024, 1_030])
def test_bits_are_transposed_whatever_their_number(columns: int, length: int) -> None:
    random = np.random.default_rng(columns)
    filters = [random.integers(0, 256, length).astype(np.uint8) for _ in range(columns)]
    bits = np.stack([np.unpackbits(each, bitorder="little") for each in filters])

    data = transpose_filters(filters)

    tiles = [bits[:, start : start + 8 * 1_024].T.ravel() for start in range(0, 8 * length, 8 * 1_024)]
    assert data == b"".join(np.packbits(tile, bitorder="little").tobytes() for tile in tiles) + bytes(2)
