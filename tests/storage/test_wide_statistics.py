"""Statistics of many columns at once are those of each column by itself."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage import statistics
from fuse_storage.statistics import STATISTICS_PARTS, ColumnStatistics, compute_statistics, wide
from fuse_storage.statistics.wide import compute_each

LONG = "é" * 30
DAY, NOON = datetime.date(1582, 10, 4), datetime.datetime(2024, 2, 29, 12)
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [3, -(1 << 63), None]),
    (pa.int8(), [None, None, None]),
    (pa.int32(), [7, 7, 7]),
    (pa.string(), ["", LONG, None]),
    (pa.string(), ["\U0010ffff" * 9, "b", "a"]),
    (pa.string(), [None, None, None]),
    (pa.binary(), [b"\xff" * 40, b"", None]),
    (pa.date32(), [DAY, None, datetime.date.max]),
    (pa.timestamp("us"), [NOON, None, datetime.datetime.max]),
    (pa.timestamp("us", "UTC"), [NOON, NOON, None]),
    (pa.float64(), [float("nan"), -0.0, None]),
    (pa.bool_(), [True, None, True]),
    (pa.decimal128(9, 2), [Decimal("-0.01"), None, Decimal(5)]),
]


def told(found: ColumnStatistics) -> list[Any]:
    return [repr(getattr(found, part).to_pylist()) for part in STATISTICS_PARTS] + [found.type]


@pytest.mark.parametrize("count", [1, 15, 16, 40])
@pytest.mark.parametrize("offsets", [[0, 3], [0, 1, 3]], ids=["one zone", "two zones"])
def test_they_are_those_of_each(count: int, offsets: list[int]) -> None:
    columns = [pa.array(values, kind) for _ in range(count) for kind, values in VALUES]
    zones = np.array(offsets)
    assert [told(each) for each in compute_each(columns, zones)] == [
        told(compute_statistics(each, zones)) for each in columns
    ]


def test_text_that_is_not_utf_8_is_cut_as_ever() -> None:
    odd = pa.array([b"\xc3\x28" * 30, b"a"]).view(pa.string())
    zones = np.array([0, 2])
    assert [told(each) for each in compute_each([odd] * 16, zones)] == [told(compute_statistics(odd, zones))] * 16


def test_columns_of_one_type_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(
        wide, "compute_statistics", lambda *given: calls.append(1) or statistics.compute_statistics(*given)
    )
    columns = [pa.array([1, 2]), pa.array(["a", "b"])] * 300
    assert len(compute_each(columns, np.array([0, 2]))) == 600
    assert len(calls) == 2
