"""What is believed of the statistics in a foreign file's footer: nothing that could be a wrong bound."""

import io
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_storage.parquet.foreign.file_statistics import foreign_statistics
from fuse_storage.parquet.foreign.footer import open_foreign_file
from fuse_storage.parquet.foreign.thrift_footer import ForeignFooter, RawStatistics
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.memory import MemoryStore


def footer_of(values: pa.Array, **options: Any) -> ForeignFooter:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": values}), sink, **options)
    store = MemoryStore(f"statistics-{id(sink)}")
    store.create("f.parquet", sink.getvalue(), overwrite=True)
    return open_foreign_file(store, "f.parquet", len(sink.getvalue())).parsed


def with_statistics(footer: ForeignFooter, *found: RawStatistics) -> ForeignFooter:
    """The footer, with a row group for each of these, which its column has there."""
    (group,) = footer.groups
    return replace(
        footer, groups=tuple(replace(group, chunks=(replace(group.chunks[0], statistics=each),)) for each in found)
    )


def bounds(statistics: ColumnStatistics) -> tuple[Any, Any, Any]:
    return statistics.min[0].as_py(), statistics.max[0].as_py(), statistics.null_count[0].as_py()


def believed(values: pa.Array, column_type: pa.DataType | None = None, **options: Any) -> tuple[Any, Any, Any]:
    return bounds(foreign_statistics(footer_of(values, **options), 0, values.type, column_type or values.type))


TRUSTED = {
    "int64": (pa.array([3, None, -1]), (-1, 3, 1)),
    "int8": (pa.array([3, None, -1], pa.int8()), (-1, 3, 1)),
    "bool": (pa.array([True, None, False]), (False, True, 1)),
    "date": (pa.array([date(1500, 1, 1), date(2024, 1, 1), None]), (date(1500, 1, 1), date(2024, 1, 1), 1)),
    "text": (pa.array(["b", "é", None]), ("b", "é", 1)),
    "bytes": (pa.array([b"\x00", b"\xff", b""]), (b"", b"\xff", 0)),
    "only nulls": (pa.array([None, None, None], pa.int64()), (None, None, 3)),
}


@pytest.mark.parametrize(("values", "expected"), TRUSTED.values(), ids=TRUSTED.keys())
def test_bounds_in_a_known_order_are_believed(values: pa.Array, expected: tuple[Any, Any, Any]) -> None:
    assert expected == believed(values)


def test_times_are_brought_to_microseconds_and_narrow_types_widened() -> None:
    low, high, _ = believed(pa.array([1500, 2000, 3], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"))

    assert (low.microsecond, round(high.timestamp() * 1e6)) == (3000, 2_000_000)
    assert believed(pa.array([7, -1, 0], pa.int32()), pa.int64()) == (-1, 7, 0)


def test_decimals_are_believed_where_they_are_kept_as_integers() -> None:
    values = pa.array([Decimal("-1.50"), Decimal("2.25"), None], pa.decimal128(9, 2))

    assert (Decimal("-1.50"), Decimal("2.25"), 1) == believed(values, store_decimal_as_integer=True)


@pytest.mark.parametrize("precision", [3, 9, 10, 18, 19, 30, 38])
def test_decimals_kept_as_bytes_are_ordered_by_their_sign_by_writers_that_are_known_to(precision: int) -> None:
    values = pa.array([Decimal("-1.5"), None, Decimal("2.5"), Decimal("-0.1")], pa.decimal128(precision, 1))
    greatest = Decimal(f"{10 ** (precision - 1) - 1}.9")
    extremes = pa.array([greatest, greatest.copy_negate()], values.type)

    assert believed(values) == (Decimal("-1.5"), Decimal("2.5"), 1)
    assert believed(extremes, pa.decimal128(38, 1)) == (greatest.copy_negate(), greatest, 0)
    footer = footer_of(values)
    for writer in ("parquet-cpp-arrow version 10.0.1", "delta-rs version py-1.6.6", "impala version 4.0", "parquet-mr"):
        other = foreign_statistics(replace(footer, created_by=writer), 0, values.type, values.type)
        assert bounds(other)[:2] == (None, None)
    cut = with_statistics(footer, RawStatistics(b"", b"\x01", 0), RawStatistics(b"\xff" * 17, b"\x01" * 17, 0))
    assert foreign_statistics(cut, 0, values.type, values.type).min.to_pylist() == [None, None]


UNKNOWN: Mapping[str, tuple[pa.Array, Mapping[str, Any]]] = {
    "floats": (pa.array([1.0, float("nan"), 2.0]), {}),
    "negative zeros": (pa.array([0.0, -0.0, 0.0], pa.float32()), {}),
    "unsigned": (pa.array([1, 200, 3], pa.uint8()), {}),
    "INT96": (pa.array([1, 2, 3], pa.timestamp("us")), {"use_deprecated_int96_timestamps": True}),
    "not written": (pa.array([1, 2, 3]), {"write_statistics": False}),
    "fixed bytes": (pa.array([b"ab", b"cd", b"ef"], pa.binary(2)), {}),
}


@pytest.mark.parametrize(("values", "options"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_bounds_that_could_be_wrong_are_unknown(values: pa.Array, options: Mapping[str, Any]) -> None:
    low, high, _ = believed(values, pa.int16() if values.type == pa.uint8() else None, **options)

    assert (low, high) == (None, None)


@pytest.mark.parametrize(
    ("found", "expected"),
    {
        "no null count": (RawStatistics(b"a", b"c", None), ("a", "c", None)),
        "more nulls than rows": (RawStatistics(b"a", b"c", 4), ("a", "c", None)),
        "one bound": (RawStatistics(b"a", None, 0), (None, None, 0)),
        "contradictory": (RawStatistics(b"c", b"a", 0), (None, None, 0)),
        "no text": (RawStatistics(b"a", b"\xff\xfe", 0), (None, None, 0)),
        "text cut within a letter": (RawStatistics("é".encode()[:1], b"z", 0), (None, None, 0)),
        "long": (RawStatistics(b"a" * 100, b"b" * 100, 0), ("a" * 32, "b" * 31 + "c", 0)),
    }.values(),
)
def test_text_is_believed_as_far_as_it_is_text(found: RawStatistics, expected: tuple[Any, Any, Any]) -> None:
    footer = with_statistics(footer_of(pa.array(["a", "b", "c"])), found)
    statistics = foreign_statistics(footer, 0, pa.string(), pa.string())

    assert expected == bounds(statistics)
    assert [statistics.min_cut[0].as_py(), statistics.max_cut[0].as_py()] == [True, True]  # never a value that is there


@pytest.mark.parametrize("bound", [b"", b"\x01", b"\x01" * 16], ids=["empty", "short", "long"])
def test_numbers_of_another_length_are_none(bound: bytes) -> None:
    footer = with_statistics(footer_of(pa.array([1, 2, 3])), RawStatistics(bound, bound, 0))

    assert bounds(foreign_statistics(footer, 0, pa.int64(), pa.int64())) == (None, None, 0)


def test_one_unknown_row_group_does_not_hide_the_others() -> None:
    known = footer_of(pa.array([1, 2, 3]))
    footer = with_statistics(known, known.groups[0].chunks[0].statistics, RawStatistics(None, None, None))
    found = foreign_statistics(footer, 0, pa.int64(), pa.int64())

    assert found.min.to_pylist() == [1, None]
    assert found.null_count.to_pylist() == [0, None]


def test_deprecated_bounds_and_those_without_an_order_are_not_read() -> None:
    from fuse_storage.parquet.foreign.thrift_footer import parse_footer

    sink = io.BytesIO()
    pq.write_table(pa.table({"c": [1, 2, 3]}), sink)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little") + 8
    tail = data[-length:]
    assert parse_footer(tail, "f").groups[0].chunks[0].statistics.min is not None
    orders = bytes([0x19, 0x1C, 0x1C, 0x00, 0x00])  # field 7, a list of one struct, whose field 1 is an empty struct
    assert tail.count(orders) == 1

    without = tail.replace(orders, bytes([0x19, 0x1C, 0x2C, 0x00, 0x00]))  # an order of another kind
    assert parse_footer(without, "f").groups[0].chunks[0].statistics.min is None
    assert parse_footer(without, "f").groups[0].chunks[0].statistics.null_count == 0
