"""What Spark's cost-based optimizer may know of columns, from the metadata of the blocks that a scan reads.

A column is told of only where all that the optimizer asks for is known. It takes a column without bounds for one
without values, and would plan its join as one without rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.spark.native.file_listing import catalyst_text
from fuse_storage import BlockFrame, ColumnStatistics, Field


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """What is known of a column in some blocks.

    ``null_count``: exact, unless rows were deleted: then as many of the others as of all. ``distinct_count``: values
    that are not NULL; exact of a primary key, and where each block has one value, such as that of a partition column.
    Of other whole numbers, days and booleans it is how many values lie between the bounds, at most the number of rows.
    ``min`` and ``max``: as ``Constants.java`` reads them, None where there is no value, and of text.
    """

    null_count: int
    distinct_count: int
    min: str | None
    max: str | None


def estimate_columns(blocks: BlockFrame, names: Sequence[str]) -> dict[str, ColumnEstimate]:
    """The estimates of those of these columns of which enough is known.

    Reads metadata alone. Raises StorageError for a segment that cannot be read.
    """
    snapshot = blocks.segments.snapshot
    fields = {field.name: field for field in snapshot.schema.fields if field.is_leaf}
    wanted = [fields[name] for name in names if name in fields]
    blocks.prefetch(field.id for field in wanted)
    row_count = int(blocks.live_row_counts.sum())
    found: dict[str, ColumnEstimate] = {}
    for field in wanted:
        statistics = blocks.statistics(field.id)
        is_key = tuple(snapshot.key) == (field.name,)
        if statistics is not None and (estimate := _estimate(statistics, blocks, field, row_count, is_key)) is not None:
            found[field.name] = estimate
    return found


def _estimate(
    statistics: ColumnStatistics, blocks: BlockFrame, field: Field, row_count: int, is_key: bool
) -> ColumnEstimate | None:
    if not len(statistics) or statistics.null_count.null_count:
        return None
    nulls, all_rows = pc.sum(statistics.null_count).as_py(), max(1, int(blocks.row_counts.sum()))
    null_count = max(nulls * row_count // all_rows, min(nulls, row_count - 1, 1))  # few are not none
    if null_count == row_count:
        return ColumnEstimate(null_count, 0, None, None)
    whole = statistics.reduced(np.array([0, len(statistics)]), blocks.row_counts)
    low, high = whole.min[0], whole.max[0]
    if not (low.is_valid and high.is_valid):
        return None
    values = row_count - null_count
    distinct_count = values if is_key else _distinct_count(statistics, low, high)
    if distinct_count is None or (is_.is_floating(field.type) and not pc.is_finite(high).as_py()):
        return None
    has_bounds = not (is_.is_string(field.type) or is_.is_binary(field.type))
    bounds = (catalyst_text(low), catalyst_text(high)) if has_bounds else (None, None)
    return ColumnEstimate(null_count, min(distinct_count, values), *bounds)


def _distinct_count(statistics: ColumnStatistics, low: pa.Scalar, high: pa.Scalar) -> int | None:
    """How many values these units hold, at most; None where no bound tells."""
    cut = pc.or_(statistics.min_cut, statistics.max_cut)
    constant = pc.and_(pc.equal(statistics.min, statistics.max), pc.invert(cut))
    if pc.all(pc.fill_null(constant, True)).as_py():  # a block without a value has no bounds
        return int(pc.count_distinct(statistics.min, mode="only_valid").as_py())
    if is_.is_date(low.type):
        return _distance(low.cast(pa.int32()), high.cast(pa.int32()))
    if is_.is_integer(low.type) or is_.is_boolean(low.type):
        return _distance(low, high)
    return None


def _distance(low: pa.Scalar, high: pa.Scalar) -> int:
    return int(high.as_py()) - int(low.as_py()) + 1
