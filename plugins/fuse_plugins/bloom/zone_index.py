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
from fuse_plugins.bloom.bit_matrix import BitMatrix
from fuse_plugins.bloom.filters import MIN_STEPPED_CAPACITY, HashFilter
from fuse_plugins.bloom.hashing import Hashes, canonical_bytes, hash_family, hash_values

_Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

MAX_EXPECTED_FALSE_POSITIVES = 12
"""Mistakes to expect of a filter beyond which asking is vain: that there is none has a chance of one in a thousand at
most.
"""

ZONE_SUMMARY_TYPE = pa.struct(
    [
        ("capacity", pa.int32()),  # of the filter; 0: no filter needed; null: none was made
        ("constant", pa.binary()),  # the one value of a zone without a filter, as bytes; null: it has no value
        ("matrix", pa.int64()),  # where the filter's matrix begins in the pack
        ("columns", pa.int32()),  # how many filters the matrix has
        ("column", pa.int32()),  # which of them is this one
    ]
)
BLOOM_SUMMARY_TYPE = pa.struct([("family", pa.string()), ("zones", pa.list_(ZONE_SUMMARY_TYPE))])


@dataclass(frozen=True, eq=False)
class ProbeValues:
    """The values that are looked for, in Spark's order, with their hashes and their bytes."""

    family: str
    fpp: float
    values: pa.Array
    hashes: Hashes
    value_bytes: pa.BinaryArray

    @classmethod
    def from_values(cls, values: Sequence[Any], data_type: pa.DataType, fpp: float) -> ProbeValues:
        """Raises ArrowInvalid for values that are not of the type."""
        found = pa.array(values, data_type).unique()
        found = found.take(pc.sort_indices(found))
        return cls(
            hash_family(data_type) or "", fpp, found, hash_values(found), pa.array(canonical_bytes(found), pa.binary())
        )

    def ranges_by_unit(self, statistics: ColumnStatistics | None, units: int) -> tuple[_Numbers, _Numbers]:
        """Which of the values each unit can hold: from the first to before the last, by the unit's bounds."""
        firsts, lasts = np.zeros(units, np.int64), np.full(units, len(self.values), np.int64)
        if statistics is None or len(self.values) < 2 or statistics.type != self.values.type:
            return firsts, lasts  # a single value's units were chosen by their bounds already
        low, high = (bound.is_valid().to_numpy(zero_copy_only=False) for bound in (statistics.min, statistics.max))
        firsts[low] = _count_before(statistics.min.drop_null(), self.values, ties=False)
        lasts[high] = _count_before(statistics.max.drop_null(), self.values, ties=True)
        return firsts, lasts


def _count_before(bounds: pa.Array, values: pa.Array, ties: bool) -> _Numbers:
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
class ZoneSummaries:
    """What the summaries of a batch say, zone by zone, of the zones that can be voted on."""

    batch_zone: _Numbers
    """Which zone of the batch it is."""
    capacity: _Numbers
    constant: pa.BinaryArray
    matrix: _Numbers
    columns: _Numbers
    column: _Numbers
    unit_starts: _Numbers
    """Of each unit, where its zones begin here; it has one more element than there are units."""

    @classmethod
    def from_batch(cls, batch: BlockBatch, family: str) -> ZoneSummaries:
        summaries = batch.summaries
        lists = pc.struct_field(summaries, "zones")
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        same = pc.equal(pc.struct_field(summaries, "family"), family).fill_null(False).to_numpy(zero_copy_only=False)
        usable = same & (lengths == np.diff(batch.zone_offsets))
        counts = np.where(usable, lengths, 0)
        all_zones = pc.list_flatten(lists).take(pa.array(_ranges_to_indices(np.cumsum(lengths) - lengths, counts)))
        numbers = {
            name: pc.struct_field(all_zones, name).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("capacity", "matrix", "columns", "column")
        }
        starts = np.append(0, np.cumsum(counts))
        return cls(
            _ranges_to_indices(batch.zone_offsets[:-1], counts),
            constant=pc.struct_field(all_zones, "constant"),
            unit_starts=starts,
            **numbers,
        )

    def repeat_per_zone(self, *values: _Numbers) -> tuple[_Numbers, ...]:
        """For each zone, what its unit has."""
        return tuple(np.repeat(of_unit, np.diff(self.unit_starts)) for of_unit in values)

    def zones_with_filter(self, units: _Numbers) -> _Numbers:
        """Which of these belong to the units and have a filter."""
        found = _ranges_to_indices(self.unit_starts[units], np.diff(self.unit_starts)[units])
        return found[self.capacity[found] > 0]

    def zones_without(
        self, probe_values: ProbeValues, payload: Payload, chosen: _Numbers, ranges_by_zone: Sequence[_Numbers]
    ) -> _Numbers:
        """Those of the chosen zones, all in one pack, that hold none of the needles. Raises StorageError.

        ``wanted``: for each zone here, the first of the needles that it may hold, and the one after the last.
        """
        absent = []
        for start in np.unique(self.matrix[chosen]).tolist():
            members = chosen[self.matrix[chosen] == start]
            members = members[~self._too_many_values(probe_values, members, ranges_by_zone)]
            if not len(members):
                continue
            columns, column = int(self.columns[members[0]]), self.column[members]
            matrix = BitMatrix(start, columns, *filter_shape(int(self.capacity[members[0]]), probe_values.fpp))
            firsts, lasts = np.full(columns, len(probe_values.hashes)), np.zeros(columns, np.int64)
            firsts[column], lasts[column] = ranges_by_zone[0][members], ranges_by_zone[1][members]
            absent.append(members[~matrix.may_contain(probe_values.hashes, payload, firsts, lasts)[column]])
        return np.concatenate([np.zeros(0, np.int64), *absent])

    def _too_many_values(self, needles: ProbeValues, members: _Numbers, wanted: Sequence[_Numbers]) -> _Mask:
        """Zones for which so many values are looked for that a filter, full as it is, will hold one by mistake."""
        full = (
            self.capacity[members] >= MIN_STEPPED_CAPACITY
        )  # smaller ones may be half empty, and better than they promise
        return full & ((wanted[1] - wanted[0])[members] * needles.fpp > MAX_EXPECTED_FALSE_POSITIVES)


@lru_cache(maxsize=1024)
def filter_shape(capacity: int, fpp: float) -> tuple[int, int]:
    """Slices, and bits in each, of a filter."""
    filter = HashFilter(capacity, fpp)
    return filter.num_slices, filter.bits_per_slice


def _ranges_to_indices(starts: _Numbers, counts: _Numbers) -> _Numbers:
    """``counts[i]`` numbers that begin with ``starts[i]``, for each i."""
    ends = np.cumsum(counts)
    numbers = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
    return np.asarray(numbers + np.repeat(starts - (ends - counts), counts), np.int64)
