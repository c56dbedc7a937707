"""Keys that rows are compared with, against Python's own sets."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage.primary_key.key_sets import SoughtKeys
from fuse_storage.statistics import ColumnStatistics

INT64 = pa.int64()
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1

COLUMNS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (INT64, [LEAST, -1, 0, 5, GREATEST], [LEAST, 5, 6, GREATEST]),
    (INT64, [LEAST, -1, 0, 5, GREATEST], [-2, 1, 4]),
    (INT64, [1, 1, 2, 2, 2, 7], [0, 2, 7, 9]),
    (INT64, [GREATEST, 3, LEAST, 0, 3], [3, LEAST]),
    (INT64, [GREATEST, 3, LEAST, 0], [GREATEST, 1]),
    (INT64, [], [1]),
    (INT64, [1, 2], []),
    (pa.int8(), [-128, 3, 127], [-128, 4]),
    (pa.bool_(), [True, False, True], [True]),
    (pa.date32(), [date(1, 1, 1), date(2026, 1, 2), date(9999, 12, 31)], [date(2026, 1, 2)]),
    (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
     [datetime(1, 1, 1, tzinfo=UTC)]),
    (pa.string(), ["", "a", "b", "ä"], ["ä", ""]),
    (pa.decimal128(20, 2), [Decimal("1.00"), Decimal("-2.50")], [Decimal("-2.50")]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rows", "keys"), COLUMNS)
def test_rows_of_some_keys(kind: pa.DataType, rows: list[Any], keys: list[Any]) -> None:
    found = SoughtKeys(_keys(pa.array(keys, kind))).rows_in(_keys(pa.array(rows, kind)))

    assert found.tolist() == [row in keys for row in rows]


@pytest.mark.parametrize("order", ["sorted", "shuffled", "repeated"])
def test_rows_of_many_numbers(order: str) -> None:
    numbers = np.random.default_rng(1)
    rows = {
        "sorted": np.arange(-5_000, 5_000) * 3,
        "shuffled": numbers.permutation(10_000) << 40,
        "repeated": np.sort(numbers.integers(0, 1_000, 10_000)),
    }[order]
    keys = np.unique(np.concatenate([numbers.choice(rows, 300), numbers.integers(-1_000, 1_000, 300)]))

    found = SoughtKeys(_keys(pa.array(keys))).rows_in(_keys(pa.chunked_array([rows[:7], rows[7:]])))

    assert found.tolist() == np.isin(rows, keys).tolist()
    assert found.any()


def test_keys_of_two_columns_are_compared_together() -> None:
    keys = _keys(pa.array([1, 2, 2]), pa.array(["a", "b", "c"]))
    rows = _keys(pa.array([1, 1, 2, 2, 3]), pa.array(["a", "b", "a", "c", "c"]))

    assert SoughtKeys(keys).rows_in(rows).tolist() == [True, False, False, True, False]


def test_units_between_whose_bounds_no_key_lies_are_left_out() -> None:
    unknown, cut = pa.nulls(4, INT64), pa.array([False] * 4)
    least, greatest = pa.array([0, 5, 10, None], INT64), pa.array([4, 9, 10, None], INT64)
    bounds = ColumnStatistics(least, greatest, cut, cut, unknown, unknown, unknown, unknown)

    found = SoughtKeys(_keys(pa.array([4, 10]))).may_be_in([bounds], 4)

    assert found.tolist() == [True, False, True, True]


def _keys(*columns: Any) -> pa.Table:
    return pa.table({str(place): column for place, column in enumerate(columns)})
