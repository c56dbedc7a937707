"""Columns of metadata: their types, and bounds of the numbers in them. Knows no file's meaning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MAX_COUNT = 1 << 48
"""Rows or bytes of a block or a segment: some thousand of them still add up to an int64."""
_ID_PATTERN = "^[0-9a-f]{32}$"

CountBounds = Mapping[str, tuple[int, int]]
"""By the name of a column of numbers, none of which is null: the least and the greatest that may be."""


def check_columns(rows: pa.Table, schema: pa.Schema, bounds: CountBounds) -> None:
    """Raise ValueError for a column that is of another type than in the schema, or has numbers out of its bounds.

    Columns that are missing, or that the schema lacks, are passed over.
    """
    for number, found in enumerate(rows.schema):
        if (place := schema.get_field_index(found.name)) >= 0 and found.type != schema.field(place).type:
            raise ValueError(f"column {found.name!r} is of type {found.type}, not {schema.field(place).type}")
        if found.name in bounds:
            check_numbers(rows.column(number), found.name, *bounds[found.name])


def check_numbers(column: pa.ChunkedArray, name: str, least: int, greatest: int) -> None:
    """Raise ValueError for a null, and for a number that is out of bounds."""
    if column.null_count:
        raise ValueError(f"column {name!r} has nulls")
    if len(column):
        found = pc.min_max(column).as_py()
        if found["min"] < least or found["max"] > greatest:
            raise ValueError(f"column {name!r} has {found['min']} to {found['max']}: {least} to {greatest} can be")


def check_ids(column: pa.ChunkedArray, name: str) -> None:
    """Raise ValueError for what is no id of 32 hex digits: ids become parts of paths."""
    if column.null_count or not pc.all(pc.match_substring_regex(column, _ID_PATTERN), min_count=0).as_py():
        raise ValueError(f"column {name!r} has what is no id of 32 hex digits")


def check_lists(
    lists: pa.ChunkedArray, name: str, totals: pa.ChunkedArray | None, greatest: int, least: int = 1
) -> None:
    """Raise ValueError for lists that are null, empty, or hold numbers below ``least``, or out of ``totals``' sums."""
    values = pc.list_flatten(lists)
    check_numbers(values, name, least, greatest)
    if lists.null_count or not pc.all(pc.greater(pc.list_value_length(lists), 0), min_count=0).as_py():
        raise ValueError(f"column {name!r} has empty lists")
    if totals is not None and len(lists):
        ends = np.cumsum(pc.list_value_length(lists).to_numpy())
        sums = np.add.reduceat(values.to_numpy(), np.concatenate(([0], ends[:-1])))
        if not np.array_equal(sums, totals.to_numpy()):
            raise ValueError(f"column {name!r} does not add up to the rows")


def check_sum(column: pa.ChunkedArray, name: str, total: int) -> None:
    """Raise ValueError if non-negative numbers, each below ``MAX_COUNT``, add up to something else."""
    found = sum(column.to_pylist())
    if found != total:
        raise ValueError(f"column {name!r} adds up to {found}, and should to {total}")
