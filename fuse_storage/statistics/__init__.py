"""Statistics of a column's values, unit by unit: zones, blocks, segments, with the same code.

The order is Spark's: NaN is the largest value and equal to itself, -0.0 is stored as 0.0, text and binary are ordered
by unsigned bytes. Text and binary bounds are cut at 32 bytes. Nothing here knows files, tables or predicates.

Why an order of our own: Arrow's ``min_max`` passes over NaN and keeps the sign of a zero. A unit of [1.0, NaN] would
have the greatest value 1.0, and ``x > 5`` would skip it, though Spark finds the NaN; and bounds 0.0 and -0.0 would
differ, though the values are equal. In IEEE 754 the two zeros differ in the sign bit only, and adding 0.0 clears it; so
bounds that are equal to Spark have the same bits in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.bounds import count_nan, extremes, is_text_or_binary, truncate_bounds

_Offsets = npt.NDArray[np.int64]
_Counts = npt.NDArray[np.int64]
_COUNT_PARTS = ("null_count", "nan_count", "distinct_count", "size")
STATISTICS_PARTS = ("min", "max", "min_cut", "max_cut", *_COUNT_PARTS)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column, as Arrow arrays with one value per unit, all of one length.

    ``min`` and ``max`` are of the column's type; null where unknown, and where the unit has no non-null row.
    ``min_cut`` and ``max_cut`` (bool): the bound was shortened, so it bounds but is not a value. The counts are
    int64, null where unknown: ``null_count``; ``nan_count``; ``distinct_count`` of non-null values; ``size`` in bytes
    as stored.
    """

    min: pa.Array
    max: pa.Array
    min_cut: pa.BooleanArray
    max_cut: pa.BooleanArray
    null_count: pa.Int64Array
    nan_count: pa.Int64Array
    distinct_count: pa.Int64Array
    size: pa.Int64Array

    def __len__(self) -> int:
        return len(self.min)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(getattr(self, part).nbytes) for part in STATISTICS_PARTS)

    @property
    def type(self) -> pa.DataType:
        return self.min.type

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> ColumnStatistics:
        return ColumnStatistics(*(change(getattr(self, part)) for part in STATISTICS_PARTS))

    def take(self, indices: Any) -> ColumnStatistics:
        """The units at these positions, in this order. ``indices``: int64, or what Arrow makes such an array of."""
        chosen = pa.array(indices, pa.int64())
        return self._each(lambda array: array.take(chosen))

    def reduced(self, offsets: _Offsets, row_counts: _Counts) -> ColumnStatistics:
        """Statistics of larger units; see ``roll_up_statistics``.

        ``offsets``: int64, shape (n + 1,). ``row_counts``: int64, one value per unit. Returns n units.
        """
        return roll_up_statistics(self, offsets, row_counts)

    @staticmethod
    def concat(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
        """All units of all parts, in order; the parts must be of one type."""
        if len(parts) == 1:
            return parts[0]
        return ColumnStatistics(
            *(pa.concat_arrays([getattr(part, name) for part in parts]) for name in STATISTICS_PARTS)
        )

    def cast(self, data_type: pa.DataType) -> ColumnStatistics:
        """Widen the statistics with their column's type; bounds that the wider type cannot hold become unknown."""
        if data_type == self.type:
            return self
        try:
            return replace(self, min=self.min.cast(data_type), max=self.max.cast(data_type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            unknown = ColumnStatistics.unknown(data_type, len(self))
            return replace(self, min=unknown.min, max=unknown.max, min_cut=unknown.min_cut, max_cut=unknown.max_cut)

    @staticmethod
    def unknown(data_type: pa.DataType, units: int) -> ColumnStatistics:
        """Statistics of so many units, of none of which anything is known."""
        bound, flag, count = pa.nulls(units, data_type), pa.array(np.zeros(units, bool)), pa.nulls(units, pa.int64())
        return ColumnStatistics(bound, bound, flag, flag, count, count, count, count)

    @staticmethod
    def constant(value: pa.Scalar, row_counts: _Counts) -> ColumnStatistics:
        """Statistics of a column that the units lack, every row of which holds ``value``.

        ``row_counts``: int64, one value per unit.
        """
        repeated = compute_statistics(pa.array([value], value.type)).take(np.zeros(len(row_counts), np.int64))
        rows, zero = pa.array(row_counts, pa.int64()), pa.array(np.zeros(len(row_counts), np.int64))
        nulls, nans = (pc.multiply(count, rows) for count in (repeated.null_count, repeated.nan_count))
        distinct = pc.subtract(1, repeated.null_count)
        return replace(repeated, null_count=nulls, nan_count=nans, distinct_count=distinct, size=zero)


def compute_statistics(values: pa.Array | pa.ChunkedArray, zone_offsets: _Offsets | None = None) -> ColumnStatistics:
    """Statistics of ``values[zone_offsets[i]:zone_offsets[i + 1]]`` for each i, by default of all values as one unit.

    ``zone_offsets``: int64, shape (n + 1,), ascending. Returns n units.
    ``distinct_count`` and ``size`` stay unknown: the one is dear, the other not known before the values are stored.
    """
    if isinstance(values, pa.ChunkedArray):
        values = chunked_to_array(values)
    offsets = [0, len(values)] if zone_offsets is None else zone_offsets.tolist()
    units = [values.slice(start, end - start) for start, end in pairwise(offsets)] if len(offsets) != 2 else [values]
    bounds = [extremes(unit) for unit in units]
    low, low_cut = truncate_bounds(_scalars_to_array([low for low, _ in bounds], values.type), upper=False)
    high, high_cut = truncate_bounds(_scalars_to_array([high for _, high in bounds], values.type), upper=True)
    nulls = pa.array([unit.null_count for unit in units], pa.int64())
    nans, unknown = (part_not_kept(part, values.type, len(units)) for part in ("nan_count", "size"))
    if is_.is_floating(values.type):
        nans = pa.array([count_nan(unit) for unit in units], pa.int64())
    return ColumnStatistics(low, high, low_cut, high_cut, nulls, nans, unknown, unknown)


def _scalars_to_array(values: Sequence[pa.Scalar], data_type: pa.DataType) -> pa.Array:
    return pa.repeat(values[0], 1) if len(values) == 1 else pa.array(values, data_type)  # a quarter of the time


def roll_up_statistics(statistics: ColumnStatistics, offsets: _Offsets, row_counts: _Counts) -> ColumnStatistics:
    """Statistics of larger units, each made of the units ``offsets[i]:offsets[i + 1]`` (at least one).

    ``offsets``: int64, shape (n + 1,), ascending. ``row_counts``: int64, one value per smaller unit: they tell a unit
    without a value from one of which nothing is known. Returns n units. How many distinct values a union has is
    unknown, unless it is of one unit.

    >>> zones = compute_statistics(pa.array([1.0, -0.0, float("nan"), None, 7.0]), np.array([0, 2, 3, 5]))
    >>> zones.min.to_pylist(), zones.max.to_pylist()
    ([0.0, nan, 7.0], [1.0, nan, 7.0])
    >>> whole = roll_up_statistics(zones, np.array([0, 3]), np.array([2, 1, 2]))
    >>> whole.min.to_pylist(), whole.max.to_pylist(), whole.null_count.to_pylist(), whole.nan_count.to_pylist()
    ([0.0], [nan], [1], [1])
    """
    # each append of one block comes by here: the shortcut saves a third of its time
    if len(offsets) == len(row_counts) + 1 and bool((np.diff(offsets) == 1).all()):
        return statistics
    empty = pc.fill_null(pc.equal(statistics.null_count, pa.array(row_counts, pa.int64())), False)
    low, low_cut = _roll_up_bound(statistics.min, statistics.min_cut, empty, offsets, upper=False)
    high, high_cut = _roll_up_bound(statistics.max, statistics.max_cut, empty, offsets, upper=True)
    nulls, nans, size = (
        _group_sums(count, offsets) for count in (statistics.null_count, statistics.nan_count, statistics.size)
    )
    distinct = pa.nulls(len(offsets) - 1, pa.int64())
    if statistics.distinct_count.null_count < len(statistics):
        single = pa.array(np.diff(offsets) == 1)
        distinct = pc.if_else(single, statistics.distinct_count.take(pa.array(offsets[:-1])), distinct)
    return ColumnStatistics(low, high, low_cut, high_cut, nulls, nans, distinct, size)


def _roll_up_bound(
    bound: pa.Array, flags: pa.BooleanArray, empty: pa.BooleanArray, offsets: _Offsets, upper: bool
) -> tuple[pa.Array, pa.BooleanArray]:
    bounds = [extremes(bound.slice(start, end - start))[upper] for start, end in pairwise(offsets.tolist())]
    if not bound.null_count and not flags.true_count:  # as in most columns: nothing is unknown, and nothing cut
        return pa.array(bounds, bound.type), pa.array(np.zeros(len(bounds), bool))
    unknown = _group_counts(pc.and_(pc.is_null(bound), pc.invert(empty)), offsets) > 0
    reduced = pc.if_else(pa.array(unknown), pa.scalar(None, bound.type), pa.array(bounds, bound.type))
    # a bound is a value if any unit has it as a value
    parents = reduced.take(pa.array(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))
    value = _group_counts(pc.and_(pc.fill_null(pc.equal(bound, parents), False), pc.invert(flags)), offsets) > 0
    return reduced, pa.array(~value & (_group_counts(flags, offsets) > 0))


def _group_sums(counts: pa.Int64Array, offsets: _Offsets) -> pa.Int64Array:
    """Sums of the groups; null where any count of a group is."""
    if counts.null_count == len(counts):
        return pa.nulls(len(offsets) - 1, pa.int64())
    if len(offsets) == 2 and offsets[1] - offsets[0] == len(counts):
        return pa.array([pc.sum(counts, skip_nulls=False).as_py()], pa.int64())
    totals = np.concatenate(([0], np.cumsum(counts.fill_null(0).to_numpy(zero_copy_only=False))))
    unknown = _group_counts(pc.is_null(counts), offsets) > 0 if counts.null_count else None
    return pa.array(np.diff(totals[offsets]), pa.int64(), mask=unknown)


def _group_counts(flags: pa.BooleanArray, offsets: _Offsets) -> _Offsets:
    """The number of flags that are set in each group."""
    totals = np.concatenate(([0], np.cumsum(flags.to_numpy(zero_copy_only=False))))
    return np.diff(totals[offsets]).astype(np.int64)


def column_values(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The values at a path of fields, one for each row; null where a struct above is."""
    values = chunked_to_array(table.column(path[0]))
    for name in path[1:]:
        values = pc.struct_field(values, name)
    return values


def statistics_column_names(column_id: int, data_type: pa.DataType) -> list[str]:
    """The names of the columns in which ``encode_statistics`` keeps statistics of this column."""
    return [f"c.{column_id}.{part}" for part in _stored_parts(data_type)]


def statistics_column_types(column_id: int, data_type: pa.DataType) -> dict[str, pa.DataType]:
    """The types of these columns."""
    return {f"c.{column_id}.{part}": _PART_TYPES.get(part, data_type) for part in _stored_parts(data_type)}


def encode_statistics(column_id: int, statistics: ColumnStatistics, sparse: bool = False) -> dict[str, pa.Array]:
    """The statistics as columns of a table, one row per unit; what a type cannot have (NaN, cuts) is left out.

    ``sparse``: so is what a table says that leaves it out, such as counts that are all unknown.
    """
    units = len(statistics)
    parts = [(part, getattr(statistics, part)) for part in _stored_parts(statistics.type)]
    kept = [each for each in parts if not (sparse and _is_default(*each, units))]
    return {f"c.{column_id}.{part}": values for part, values in kept}


def _is_default(part: str, values: pa.Array, units: int) -> bool:
    """Whether all values are those of ``part_not_kept``; of NaN never, which a reader might take for unknown."""
    if part in ("min_cut", "max_cut"):
        return not values.null_count and not values.true_count
    return part in ("max", "null_count", "distinct_count", "size") and bool(values.null_count == units)


def sparse_statistics(table: pa.Table) -> pa.Table:
    """Leave out the columns of statistics that ``encode_statistics`` leaves out where they are sparse."""
    columns = zip(table.schema.names, table.columns, strict=True)
    parts = ((name, column, name.rpartition(".")[2] if name.startswith("c.") else "") for name, column in columns)
    return pa.table(
        {name: column for name, column, part in parts if not _is_default(part, chunked_to_array(column), len(table))}
    )


def decode_statistics(table: pa.Table, column_id: int, data_type: pa.DataType) -> ColumnStatistics | None:
    """The statistics that ``encode_statistics`` kept, in the column's present type; None if the table has none."""
    index_of = table.schema.get_field_index  # of thousands of names, ``table.column_names`` would make a list
    present = {part: index for part in STATISTICS_PARTS if (index := index_of(f"c.{column_id}.{part}")) >= 0}
    if "min" not in present:
        return None
    parts = {part: chunked_to_array(table.column(index)) for part, index in present.items()}
    if any(parts[part].type != kind for part, kind in _PART_TYPES.items() if part in parts) or (
        "max" in parts and parts["max"].type != parts["min"].type
    ):
        return None  # no writer's
    for part in STATISTICS_PARTS:
        if part not in parts:
            parts[part] = part_not_kept(part, parts["min"].type, table.num_rows)
    return ColumnStatistics(**parts).cast(data_type)


def part_not_kept(part: str, data_type: pa.DataType, units: int) -> pa.Array:
    """What a table that leaves this part out says of it: a type that has no NaN has none, and cuts no bound."""
    if part == "max":
        return pa.nulls(units, data_type)
    return _few_defaults(part, units) if units <= _MAX_SHARED_UNITS else _defaults(part, units)


def _defaults(part: str, units: int) -> pa.Array:
    zeros = pa.array(np.zeros(units, bool if part in ("min_cut", "max_cut") else np.int64))
    return pa.nulls(units, zeros.type) if part in ("null_count", "distinct_count", "size") else zeros


_MAX_SHARED_UNITS = 16
_few_defaults = lru_cache(maxsize=128)(_defaults)
"""One array for all columns of few units: to make each its own takes as long as to find the bounds of the column."""


_PART_TYPES = {"min_cut": pa.bool_(), "max_cut": pa.bool_()} | dict.fromkeys(
    ("null_count", "nan_count", "distinct_count", "size"), pa.int64()
)
"""Types of all that is kept of a column but its bounds."""


@lru_cache(maxsize=256)
def _stored_parts(data_type: pa.DataType) -> Sequence[str]:
    absent = set() if is_text_or_binary(data_type) else {"min_cut", "max_cut"}
    absent |= set() if is_.is_floating(data_type) else {"nan_count"}
    return tuple(part for part in STATISTICS_PARTS if part not in absent)


def chunked_to_array(column: pa.ChunkedArray) -> pa.Array:
    """Make one array of the values, copied only where there are several chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
