"""Sets of keys, as tables: which row is the last of its key, and which rows have one of some keys.

A table of keys has a column for each of the key's, called by its place. Values are exact (``is_exact_type``) and never
NULL, so that equal ones have one form. Knows no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.parquet.pages import RowMask
from fuse_storage.statistics import ColumnStatistics

_ROW = "row"


def key_table(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The keys of some rows. ``names``: the columns of the key."""
    columns = rows.select(list(names)).columns
    return pa.table({str(place): column for place, column in enumerate(columns)})


def last_of_each(keys: pa.Table) -> npt.NDArray[np.int64]:
    """The last row of each key: int64, shape (distinct keys,), numbers of rows, ascending."""
    if not len(keys):
        return np.zeros(0, np.int64)
    numbered = keys.append_column(_ROW, pa.array(np.arange(len(keys))))
    last = numbered.group_by(keys.column_names).aggregate([(_ROW, "max")]).column(f"{_ROW}_max")
    return np.sort(last.to_numpy())


def rows_with_keys(rows: pa.Table, keys: pa.Table) -> RowMask:
    """Which rows have one of some keys: bool, shape (rows,). Both are tables of keys."""
    among = np.ones(len(rows), np.bool_)
    for name in keys.column_names:
        values = pc.unique(keys.column(name))
        among &= pc.is_in(rows.column(name), value_set=values).to_numpy()
    if keys.num_columns == 1 or not among.any():
        return among
    numbers = np.flatnonzero(among)
    candidates = rows.take(pa.array(numbers)).append_column(_ROW, pa.array(numbers))
    found = candidates.join(keys, keys.column_names, join_type="left semi").column(_ROW).to_numpy()
    among[:] = False
    among[found] = True
    return among


def may_have_keys(bounds: Sequence[ColumnStatistics | None], keys: pa.Table, units: int) -> npt.NDArray[np.bool_]:
    """Which units may have a row of one of some keys, at least one: bool, shape (units,).

    ``bounds``: statistics of each column of the key, None where there are none.
    """
    possible = np.ones(units, np.bool_)
    for name, found in zip(keys.column_names, bounds, strict=True):
        if found is not None:
            possible &= _hold_some(found, keys.column(name))
    return possible


def _hold_some(bounds: ColumnStatistics, values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Units between whose bounds some value lies: bool, shape (units,); True where they are not known."""
    known = pc.and_(pc.is_valid(bounds.min), pc.is_valid(bounds.max)).to_numpy(zero_copy_only=False)
    ordered = np.sort(_comparable(pc.unique(values)))
    low, high = (_comparable(each.filter(pa.array(known))) for each in (bounds.min, bounds.max))
    first = np.searchsorted(ordered, low, side="left")
    found = np.ones(len(bounds), np.bool_)
    found[known] = np.searchsorted(ordered, high, side="right") > first
    return found


def _comparable(values: pa.Array) -> npt.NDArray[Any]:
    """Values of a key's type, as numpy orders them like ``ColumnStatistics``: int64, or objects."""
    kind = values.type
    if is_.is_integer(kind) or is_.is_boolean(kind):
        return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if is_.is_date32(kind):
        return np.asarray(values.cast(pa.int32()).cast(pa.int64()).to_numpy(zero_copy_only=False))
    if is_.is_timestamp(kind) or is_.is_duration(kind):
        return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    objects = np.empty(len(values), object)
    objects[:] = (values.cast(pa.binary()) if is_.is_string(kind) else values).to_pylist()
    return objects
