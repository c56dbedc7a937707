"""Statistics of many columns of few rows, of all columns of a type at once.

An append of two rows to a table of 600 columns would call Arrow thousands of times, each time for two values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.bounds import truncate_bounds
from fuse_storage.statistics import ColumnStatistics, compute_statistics

_MIN_COLUMNS = 16
"""Columns of a type from which it pays: what groups values takes as long as a dozen columns one by one."""
_MAX_ROWS = 1_024


def compute_each(columns: Sequence[pa.Array], zone_offsets: npt.NDArray[np.int64]) -> list[ColumnStatistics]:
    """What ``compute_statistics`` gives for each of these columns of a table, in their order.

    ``zone_offsets``: int64, shape (n + 1,), ascending.
    """
    found: list[ColumnStatistics | None] = [None] * len(columns)
    if len(zone_offsets) == 2 and 0 < zone_offsets[1] <= _MAX_ROWS:
        places: dict[pa.DataType, list[int]] = {}
        for place, values in enumerate(columns):
            if _has_plain_order(values.type):
                places.setdefault(values.type, []).append(place)
        for some in places.values():
            if len(some) >= _MIN_COLUMNS:
                for place, each in zip(some, _compute_at_once([columns[place] for place in some]), strict=True):
                    found[place] = each
    return [each or compute_statistics(values, zone_offsets) for each, values in zip(found, columns, strict=True)]


def _has_plain_order(data_type: pa.DataType) -> bool:
    """Whether Arrow's order of the type is Spark's as it is: of floats, whose NaN and zeros differ, it is not."""
    plain = is_.is_integer(data_type) or is_.is_string(data_type)
    return bool(plain or is_.is_date(data_type) or is_.is_timestamp(data_type))


def _compute_at_once(columns: Sequence[pa.Array]) -> list[ColumnStatistics]:
    """Statistics of columns of one type and as many rows, each as one unit."""
    number = np.repeat(np.arange(len(columns)), len(columns[0]))
    values = pa.table({"number": number, "value": pa.chunked_array(columns)}).combine_chunks()
    grouped = values.group_by("number", use_threads=False).aggregate([("value", "min"), ("value", "max")])
    low, high = (grouped.column(f"value_{part}").combine_chunks() for part in ("min", "max"))
    low, low_cut = truncate_bounds(low, upper=False)
    high, high_cut = truncate_bounds(high, upper=True)
    nulls = pa.array([each.null_count for each in columns], pa.int64())
    first = compute_statistics(columns[0])
    return [
        replace(
            first,
            min=low.slice(place, 1),
            max=high.slice(place, 1),
            min_cut=low_cut.slice(place, 1),
            max_cut=high_cut.slice(place, 1),
            null_count=nulls.slice(place, 1),
        )
        for place in range(len(columns))
    ]
