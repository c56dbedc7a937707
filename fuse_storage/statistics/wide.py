"""Statistics of many columns of few rows, of all columns of a type at once.

An append of two rows to a table of 600 columns would call Arrow thousands of times, each time for two values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.bounds import truncate_bounds
from fuse_storage.statistics import ColumnStatistics, compute_statistics, part_not_kept, statistics_column_types

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
    first = compute_statistics(columns[0])  # what is not known, or not had by this type, is the same of all
    nans, unknown = first.nan_count, first.distinct_count
    parts = zip(*([part.slice(place, 1) for place in range(len(columns))] for part in (low, high)), strict=True)
    cuts = zip(*(_one_by_one(flags) for flags in (low_cut, high_cut)), strict=True)
    return [
        ColumnStatistics(least, greatest, least_cut, greatest_cut, nulls.slice(place, 1), nans, unknown, unknown)
        for place, ((least, greatest), (least_cut, greatest_cut)) in enumerate(zip(parts, cuts, strict=True))
    ]


def _one_by_one(flags: pa.BooleanArray) -> list[pa.BooleanArray]:
    """Each flag as an array: one array for all, where none is set."""
    return [flags.slice(place, 1) for place in range(len(flags))] if flags.true_count else [flags[:1]] * len(flags)


def fill_statistics(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Fill in all of these columns of statistics, which have all of its own and no new least values."""
    others = {name: table.column(name) for name in table.schema.names if not name.startswith("c.")}
    return pa.table(others | filled_statistics(table, types))


def filled_statistics(table: pa.Table, types: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    """The columns of statistics that ``fill_statistics`` gives."""
    index_of, units = table.schema.get_field_index, len(table)
    places = {name: index_of(name) for name in types}
    return {
        name: table.column(place) if place >= 0 else part_not_kept(name.rpartition(".")[2], types[name], units)
        for name, place in places.items()
    }


@dataclass
class StatisticsColumns:
    """The columns of statistics that a table of metadata may have of some columns: their types, by name.

    ``known``: what a table looked like that has them, which those of one table do one after the other.
    """

    types: Mapping[str, pa.DataType]
    known: pa.Schema | None = None

    @staticmethod
    def of(columns: Iterable[tuple[int, pa.DataType]]) -> StatisticsColumns:
        """Make the columns for those of these ids and types."""
        types: dict[str, pa.DataType] = {}
        for column_id, data_type in columns:
            types |= statistics_column_types(column_id, data_type)
        return StatisticsColumns(types)

    def are_in(self, units: pa.Table) -> bool:
        """Whether units have statistics of all these columns, in their types, and of no others.

        All but the least values may be left out.
        """
        if self.known is not None and units.schema.equals(self.known):
            return True
        found = {field.name: field.type for field in units.schema if field.name.startswith("c.")}
        current = all(self.types.get(name) == kind for name, kind in found.items()) and all(
            name in found for name in self.types if name.endswith(".min")
        )
        self.known = units.schema if current else self.known
        return current
