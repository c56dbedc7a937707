"""What summaries say of zones: which have a filter, and where it lies. Decides which zones cannot hold a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import BlockBatch, ColumnStatistics, Payload
from fuse_plugins.bloom.bit_matrix import Matrix
from fuse_plugins.bloom.filters import STEPS_FROM, HashFilter
from fuse_plugins.bloom.hashing import Hashes, canonical, family, hashes

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MISTAKES = 12
"""Mistakes to expect of a filter beyond which asking is vain: that there is none has a chance of one in a thousand at
most.
"""

ZONE = pa.struct(
    [
        ("capacity", pa.int32()),  # of the filter; 0: no filter needed; null: none was made
        ("constant", pa.binary()),  # the one value of a zone without a filter, as bytes; null: it has no value
        ("matrix", pa.int64()),  # where the filter's matrix begins in the pack
        ("columns", pa.int32()),  # how many filters the matrix has
        ("column", pa.int32()),  # which of them is this one
    ]
)
SUMMARY = pa.struct([("family", pa.string()), ("zones", pa.list_(ZONE))])


@dataclass(frozen=True, eq=False)
class Needles:
    """The values that are looked for, in Spark's order, with their hashes and their bytes."""

    family: str
    fpp: float
    values: pa.Array
    hashes: Hashes
    bytes: pa.BinaryArray

    @classmethod
    def of(cls, values: Sequence[Any], type: pa.DataType, fpp: float) -> Needles:
        """Raises ArrowInvalid for values that are not of the type."""
        found = pa.array(values, type).unique()
        found = found.take(pc.sort_indices(found))
        return cls(family(type) or "", fpp, found, hashes(found), pa.array(canonical(found), pa.binary()))

    def within(self, known: ColumnStatistics | None, units: int) -> tuple[Numbers, Numbers]:
        """Which of the values each unit can hold: from the first to before the last, by the unit's bounds."""
        firsts, lasts = np.zeros(units, np.int64), np.full(units, len(self.values), np.int64)
        if known is None or len(self.values) < 2 or known.type != self.values.type:
            return firsts, lasts  # a single value's units were chosen by their bounds already
        low, high = (bound.is_valid().to_numpy(zero_copy_only=False) for bound in (known.min, known.max))
        firsts[low] = _before(known.min.drop_null(), self.values, ties=False)
        lasts[high] = _before(known.max.drop_null(), self.values, ties=True)
        return firsts, lasts


def _before(bounds: pa.Array, values: pa.Array, ties: bool) -> Numbers:
    """How many of the values, which are sorted, come before each bound; those that equal it too, with ``ties``."""
    parts = [values, bounds] if ties else [bounds, values]
    order = pc.sort_indices(pa.concat_arrays(parts)).to_numpy().astype(np.int64)  # stable: at a tie, who stands first
    is_bound = order >= len(values) if ties else order < len(bounds)
    counts = np.cumsum(~is_bound)[is_bound]
    which = order[is_bound] - (len(values) if ties else 0)
    found = np.empty(len(bounds), np.int64)
    found[which] = counts
    return found


@dataclass(frozen=True, eq=False)
class Zones:
    """What the summaries of a batch say, zone by zone, of the zones that can be voted on."""

    number: Numbers
    """Which zone of the batch it is."""
    capacity: Numbers
    constant: pa.BinaryArray
    matrix: Numbers
    columns: Numbers
    column: Numbers
    starts: Numbers
    """Of each unit, where its zones begin here; it has one more element than there are units."""

    @classmethod
    def of(cls, batch: BlockBatch, family: str) -> Zones:
        summaries = batch.summaries
        lists = pc.struct_field(summaries, "zones")
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        same = pc.equal(pc.struct_field(summaries, "family"), family).fill_null(False).to_numpy(zero_copy_only=False)
        usable = same & (lengths == np.diff(batch.zone_offsets))
        counts = np.where(usable, lengths, 0)
        all_zones = pc.list_flatten(lists).take(pa.array(_runs(np.cumsum(lengths) - lengths, counts)))
        numbers = {
            name: pc.struct_field(all_zones, name).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("capacity", "matrix", "columns", "column")
        }
        starts = np.append(0, np.cumsum(counts))
        return cls(
            _runs(batch.zone_offsets[:-1], counts),
            constant=pc.struct_field(all_zones, "constant"),
            starts=starts,
            **numbers,
        )

    def of_units(self, *values: Numbers) -> tuple[Numbers, ...]:
        """For each zone, what its unit has."""
        return tuple(np.repeat(of_unit, np.diff(self.starts)) for of_unit in values)

    def filtered(self, units: Numbers) -> Numbers:
        """Which of these belong to the units and have a filter."""
        found = _runs(self.starts[units], np.diff(self.starts)[units])
        return found[self.capacity[found] > 0]

    def absent(self, needles: Needles, payload: Payload, chosen: Numbers, wanted: Sequence[Numbers]) -> Numbers:
        """Those of the chosen zones, all in one pack, that hold none of the needles. Raises StorageError.

        ``wanted``: for each zone here, the first of the needles that it may hold, and the one after the last.
        """
        absent = []
        for start in np.unique(self.matrix[chosen]).tolist():
            members = chosen[self.matrix[chosen] == start]
            members = members[~self._hopeless(needles, members, wanted)]
            if not len(members):
                continue
            columns, column = int(self.columns[members[0]]), self.column[members]
            matrix = Matrix(start, columns, *shape(int(self.capacity[members[0]]), needles.fpp))
            firsts, lasts = np.full(columns, len(needles.hashes)), np.zeros(columns, np.int64)
            firsts[column], lasts[column] = wanted[0][members], wanted[1][members]
            absent.append(members[~matrix.holding(needles.hashes, payload, firsts, lasts)[column]])
        return np.concatenate([np.zeros(0, np.int64), *absent])

    def _hopeless(self, needles: Needles, members: Numbers, wanted: Sequence[Numbers]) -> Mask:
        """Zones for which so many values are looked for that a filter, full as it is, will hold one by mistake."""
        full = self.capacity[members] >= STEPS_FROM  # smaller ones may be half empty, and better than they promise
        return full & ((wanted[1] - wanted[0])[members] * needles.fpp > MISTAKES)


@lru_cache(maxsize=1024)
def shape(capacity: int, fpp: float) -> tuple[int, int]:
    """Slices, and bits in each, of a filter."""
    filter = HashFilter(capacity, fpp)
    return filter.num_slices, filter.bits_per_slice


def _runs(starts: Numbers, counts: Numbers) -> Numbers:
    """``counts[i]`` numbers that begin with ``starts[i]``, for each i."""
    ends = np.cumsum(counts)
    numbers = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
    return np.asarray(numbers + np.repeat(starts - (ends - counts), counts), np.int64)
