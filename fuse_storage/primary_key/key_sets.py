"""Sets of keys, as tables: which row is the last of its key, and which rows have one of some keys.

A table of keys has a column for each of the key's, called by its place. Values are exact (``is_exact_type``) and never
NULL, so that equal ones have one form. Knows no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.lazy import cached_property
from fuse_storage.parquet.pages import RowMask
from fuse_storage.statistics import ColumnStatistics

_ROW, _PLACE = "row", "place"
_MIN_HASH_BITS, _MAX_HASH_BITS, _HASHES_PER_VALUE = 12, 24, 16
"""Least and most bits of a hash, and places for each value: with sixteen, one in sixteen others has to be looked up."""


def key_table(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The keys of some rows. ``names``: the columns of the key."""
    columns = rows.select(list(names)).columns
    return pa.table({str(place): column for place, column in enumerate(columns)})


def last_of_each(keys: pa.Table) -> npt.NDArray[np.int64]:
    """The last row of each key: int64, shape (distinct keys,), numbers of rows, ascending."""
    if len(keys) < 2:
        return np.arange(len(keys))
    if keys.num_columns == 1 and _is_number(keys.column(0).type):
        _, first = np.unique(_comparable(keys.column(0))[::-1], return_index=True)
        return np.sort(len(keys) - 1 - first)
    numbered = keys.append_column(_ROW, pa.array(np.arange(len(keys))))
    last = numbered.group_by(keys.column_names).aggregate([(_ROW, "max")]).column(f"{_ROW}_max")
    return np.sort(last.to_numpy())


def places_of_keys(keys: pa.Table, among: pa.Table) -> npt.NDArray[np.int64]:
    """Where each of these keys is in another table of keys, which has each at most once: int64, shape (keys,).

    -1 where it is not.
    """
    if keys.num_columns == 1:
        found = pc.index_in(keys.column(0), value_set=among.column(0).combine_chunks())
        return np.asarray(found.cast(pa.int64()).fill_null(-1).to_numpy())
    numbered = among.append_column(_PLACE, pa.array(np.arange(len(among))))
    sought = keys.append_column(_ROW, pa.array(np.arange(len(keys))))
    found = sought.join(numbered, among.column_names, join_type="left outer").sort_by(_ROW).column(_PLACE)
    return np.asarray(found.fill_null(-1).to_numpy())


class SoughtKeys:
    """Some keys that rows are compared with, block after block. ``keys``: a table of them, each once.

    Its columns' values are kept sorted; so it may be used by several threads.
    """

    def __init__(self, keys: pa.Table) -> None:
        self.keys = keys
        self._values = [pc.unique(column) for column in keys.columns]
        self._sorted = [np.sort(_comparable(values)) for values in self._values]
        self._numbers = [_SoughtNumbers(each) if each.dtype == np.int64 else None for each in self._sorted]

    def rows_in(self, rows: pa.Table) -> RowMask:
        """Which rows of a table of keys are among these: bool, shape (rows,)."""
        among = np.ones(len(rows), np.bool_)
        for column, values, sought in zip(rows.columns, self._values, self._numbers, strict=True):
            among &= pc.is_in(column, value_set=values).to_numpy() if sought is None else sought.are_in(column)
        if rows.num_columns == 1 or not among.any():
            return among
        numbers = np.flatnonzero(among)
        candidates = rows.take(pa.array(numbers)).append_column(_ROW, pa.array(numbers))
        found = candidates.join(self.keys, rows.column_names, join_type="left semi").column(_ROW).to_numpy()
        among[:] = False
        among[found] = True
        return among

    def may_be_in(self, bounds: Sequence[ColumnStatistics | None], units: int) -> npt.NDArray[np.bool_]:
        """Which units may have a row of one of these, at least one: bool, shape (units,).

        ``bounds``: statistics of each column of the key, None where there are none.
        """
        possible = np.ones(units, np.bool_)
        for ordered, found in zip(self._sorted, bounds, strict=True):
            if found is not None:
                possible &= _hold_some(found, ordered)
        return possible


@dataclass(frozen=True)
class _SoughtNumbers:
    """Numbers that columns are compared with. ``ordered``: int64, shape (n,), ascending, each once."""

    ordered: npt.NDArray[np.int64]

    def are_in(self, column: pa.ChunkedArray) -> RowMask:
        """Which values of a column are among these: bool, shape (rows,). Chunk by chunk, so that none is copied."""
        found = np.zeros(len(column), np.bool_)
        start = 0
        for chunk in column.chunks:
            if len(chunk) and len(self.ordered):
                self._mark(_comparable(chunk), found[start : start + len(chunk)])
            start += len(chunk)
        return found

    def _mark(self, numbers: npt.NDArray[np.int64], found: RowMask) -> None:
        """Set ``found`` where a number is among these: those of a sorted chunk are found by bisection.

        Of others a table of hashes rules out most, and looking a value up takes several times as long as that.
        """
        if (numbers[1:] > numbers[:-1]).all():
            sought = self._between(numbers[0], numbers[-1])
            places = np.searchsorted(numbers, sought, side="left")
            found[places[numbers[places] == sought]] = True
        elif (numbers[1:] >= numbers[:-1]).all():
            sought = self._between(numbers[0], numbers[-1])
            changes = np.zeros(len(numbers) + 1, np.int64)
            np.add.at(changes, np.searchsorted(numbers, sought, side="left"), 1)
            np.add.at(changes, np.searchsorted(numbers, sought, side="right"), -1)
            found[:] = np.cumsum(changes)[:-1] > 0
        else:
            maybe = np.flatnonzero(self._is_hash[_hash(numbers, self._hash_bits)])
            values = pa.array(numbers[maybe])
            found[maybe] = pc.is_in(values, value_set=pa.array(self.ordered)).to_numpy(zero_copy_only=False)

    def _between(self, least: np.int64, greatest: np.int64) -> npt.NDArray[np.int64]:
        first, end = np.searchsorted(self.ordered, least, "left"), np.searchsorted(self.ordered, greatest, "right")
        return self.ordered[first:end]

    @cached_property
    def _hash_bits(self) -> int:
        return min(max(_MIN_HASH_BITS, (len(self.ordered) * _HASHES_PER_VALUE).bit_length()), _MAX_HASH_BITS)

    @cached_property
    def _is_hash(self) -> npt.NDArray[np.bool_]:
        is_hash = np.zeros(1 << self._hash_bits, np.bool_)
        is_hash[_hash(self.ordered, self._hash_bits)] = True
        return is_hash


def _hash(numbers: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.uint64]:
    """Fibonacci hashes of so many bits."""
    return (numbers.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


def _hold_some(bounds: ColumnStatistics, ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Units between whose bounds some of these values lies: bool, shape (units,); True where they are not known."""
    known = pc.and_(pc.is_valid(bounds.min), pc.is_valid(bounds.max)).to_numpy(zero_copy_only=False)
    low, high = (_comparable(each.filter(pa.array(known))) for each in (bounds.min, bounds.max))
    first = np.searchsorted(ordered, low, side="left")
    found = np.ones(len(bounds), np.bool_)
    found[known] = np.searchsorted(ordered, high, side="right") > first
    return found


def _is_number(kind: pa.DataType) -> bool:
    """Whether values of a key's type are compared as int64."""
    return bool(
        is_.is_integer(kind)
        or is_.is_boolean(kind)
        or is_.is_date32(kind)
        or is_.is_timestamp(kind)
        or is_.is_duration(kind)
    )


def _comparable(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Values of a key's type, as numpy orders them like ``ColumnStatistics``: int64, or objects."""
    kind = values.type
    if is_.is_date32(kind):
        values = values.cast(pa.int32())
    if _is_number(kind):
        return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    objects = np.empty(len(values), object)
    objects[:] = (values.cast(pa.binary()) if is_.is_string(kind) else values).to_pylist()
    return objects
