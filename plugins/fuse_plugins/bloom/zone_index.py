"""Zones of many blocks, as their summaries describe them: which have a filter, where it lies, which lack a value.

The filters of one writing task lie in one pack, those of one size in one ``BitMatrix``; a zone's summary says at which
byte the matrix begins, how many columns it has, and which of them is the zone's.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import BlockBatch, ColumnStatistics, Corrupt, Payload, ranges_to_indices
from fuse_plugins.bloom.bit_matrix import BitMatrix
from fuse_plugins.bloom.filters import MIN_STEPPED_CAPACITY, filter_shape
from fuse_plugins.bloom.hashing import Hashes, canonical_bytes, hash_family, hash_values

_Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_MAX_EXPECTED_FALSE_POSITIVES = 12
"""Wrong yeses to expect of a filter beyond which asking is vain: at most one time in a thousand there is none."""

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
    """The distinct values that are looked for, sorted in Spark's order, with the hash and the bytes of each."""

    family: str
    """The ``hash_family`` of their type; summaries of another one say nothing of them."""
    fpp: float
    values: pa.Array
    hashes: Hashes
    """uint64 of shape (len(values),)."""
    value_bytes: pa.BinaryArray

    @classmethod
    def from_values(cls, values: Sequence[Any], data_type: pa.DataType, fpp: float) -> ProbeValues:
        """Hash values, none of them None. Raises ArrowInvalid for values that are not of the type."""
        distinct = pa.array(values, data_type).unique()
        distinct = distinct.take(pc.sort_indices(distinct))
        text_like = pa.types.is_string(data_type) or pa.types.is_binary(data_type)
        value_bytes = distinct.cast(pa.binary()) if text_like else pa.array(canonical_bytes(distinct), pa.binary())
        return cls(hash_family(data_type) or "", fpp, distinct, hash_values(distinct), value_bytes)

    def ranges_by_unit(self, statistics: ColumnStatistics | None, units: int) -> tuple[_Numbers, _Numbers]:
        """Return, for each of n units, which of the values it can hold by its bounds: ``values[firsts[i]:lasts[i]]``.

        Both results, ``firsts`` and ``lasts``, are int64 of shape (n,).
        """
        firsts, lasts = np.zeros(units, np.int64), np.full(units, len(self.values), np.int64)
        if statistics is None or len(self.values) < 2 or statistics.type != self.values.type:
            return firsts, lasts  # a single value's units were chosen by their bounds already
        low, high = (bound.is_valid().to_numpy(zero_copy_only=False) for bound in (statistics.min, statistics.max))
        firsts[low] = _count_before(statistics.min.drop_null(), self.values, ties=False)
        lasts[high] = _count_before(statistics.max.drop_null(), self.values, ties=True)
        return firsts, lasts


def _count_before(bounds: pa.Array, values: pa.Array, ties: bool) -> _Numbers:
    """Count the values, which are sorted, before each of n bounds: int64 of shape (n,).

    With ``ties``, values that equal the bound count too.
    """
    parts = [values, bounds] if ties else [bounds, values]
    order = pc.sort_indices(pa.concat_arrays(parts)).to_numpy().astype(np.int64)  # stable: at a tie, who stands first
    is_bound = order >= len(values) if ties else order < len(bounds)
    bound_numbers = order[is_bound] - (len(values) if ties else 0)
    counts = np.empty(len(bounds), np.int64)
    counts[bound_numbers] = np.cumsum(~is_bound)[is_bound]
    return counts


@dataclass(frozen=True, eq=False)
class ZoneSummaries:
    """The summaries of a batch as columns, one row per zone that can be voted on: z zones of u units.

    A unit's zones are left out where its summary is of another family or of another number of zones.
    """

    batch_zone: _Numbers
    """The number of the zone in the batch; int64 of shape (z,), as are all that follow but the last."""
    capacity: _Numbers
    """The fields of ``ZONE_SUMMARY_TYPE``, -1 for null; ``matrix``, ``columns`` and ``column`` likewise."""
    constant: pa.BinaryArray
    matrix: _Numbers
    columns: _Numbers
    column: _Numbers
    unit_starts: _Numbers
    """Unit i has the rows ``unit_starts[i]:unit_starts[i + 1]``; shape (u + 1,)."""

    @classmethod
    def from_batch(cls, batch: BlockBatch, family: str) -> ZoneSummaries:
        """Flatten the summaries of a batch, of which there must be some.

        Done once of an array that the next query shows again.
        """
        assert batch.summaries is not None
        key, known = id(batch.summaries), _FLATTENED.get(id(batch.summaries))
        if known is None or known.array() is not batch.summaries:
            known = _Flattened(weakref.ref(batch.summaries, lambda _: _FLATTENED.pop(key, None)), {})
            _FLATTENED[key] = known
        flattened = known.by_family.get(family)
        if flattened is None or not np.array_equal(flattened[0], batch.zone_offsets):
            flattened = known.by_family[family] = (batch.zone_offsets, cls._flatten(batch, family))
        return flattened[1]

    @classmethod
    def _flatten(cls, batch: BlockBatch, family: str) -> ZoneSummaries:
        summaries = batch.summaries
        zone_lists = pc.struct_field(summaries, "zones")
        lengths = pc.list_value_length(zone_lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        same_family = pc.equal(pc.struct_field(summaries, "family"), family).fill_null(False)
        usable = same_family.to_numpy(zero_copy_only=False) & (lengths == np.diff(batch.zone_offsets))
        counts = np.where(usable, lengths, 0)
        list_starts = np.cumsum(lengths) - lengths
        zones = pc.list_flatten(zone_lists).take(pa.array(ranges_to_indices(list_starts, counts)))
        numbers = {
            name: pc.struct_field(zones, name).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            for name in ("capacity", "matrix", "columns", "column")
        }
        return cls(
            ranges_to_indices(batch.zone_offsets[:-1], counts),
            constant=pc.struct_field(zones, "constant"),
            unit_starts=np.append(0, np.cumsum(counts)),
            **numbers,
        )

    def repeat_per_zone(self, *arrays: _Numbers) -> tuple[_Numbers, ...]:
        """Repeat the value of each unit, int64 of shape (u,), for each of its zones: int64 of shape (z,)."""
        return tuple(np.repeat(values, np.diff(self.unit_starts)) for values in arrays)

    def zones_with_filter(self, units: _Numbers) -> _Numbers:
        """List the zones (rows here) of some units that have a filter. Both are int64 indices of shape (n,)."""
        zones = ranges_to_indices(self.unit_starts[units], np.diff(self.unit_starts)[units])
        return zones[self.capacity[zones] > 0]

    def zones_without(
        self, probe_values: ProbeValues, payload: Payload, zones: _Numbers, ranges_by_zone: Sequence[_Numbers]
    ) -> _Numbers:
        """List those of some zones that contain none of the values that they are asked for. Raises StorageError.

        ``zones``: int64 indices of rows here, shape (n,), all with a filter in the pack that ``payload`` reads.
        ``ranges_by_zone``: firsts and lasts, int64 of shape (z,): zone i is asked for
        ``probe_values.values[firsts[i]:lasts[i]]``. The result is int64, some of ``zones``.
        """
        firsts_by_zone, lasts_by_zone = ranges_by_zone
        absent = []
        for start in np.unique(self.matrix[zones]).tolist():
            members = zones[self.matrix[zones] == start]
            members = members[~self._too_many_values(probe_values, members, ranges_by_zone)]
            if not len(members):
                continue
            columns, column = int(self.columns[members[0]]), self.column[members]
            matrix = BitMatrix(start, columns, *filter_shape(int(self.capacity[members[0]]), probe_values.fpp))
            self._check_matrix(matrix, members, payload)
            # Filters of the matrix that are not asked have an empty range.
            firsts, lasts = np.full(columns, len(probe_values.hashes)), np.zeros(columns, np.int64)
            firsts[column], lasts[column] = firsts_by_zone[members], lasts_by_zone[members]
            absent.append(members[~matrix.may_contain(probe_values.hashes, payload, firsts, lasts)[column]])
        return np.concatenate([np.zeros(0, np.int64), *absent])

    def _check_matrix(self, matrix: BitMatrix, zones: _Numbers, payload: Payload) -> None:
        """Raise Corrupt unless the matrix lies in its pack, and has a column for each of these zones.

        ``zones``: int64 indices of shape (n,), n > 0.
        """
        column, same = self.column[zones], (self.columns[zones] == matrix.columns).all()
        if matrix.start < 0 or not 0 < matrix.size <= payload.size - matrix.start:
            raise Corrupt(f"a matrix of {matrix.size} bytes at {matrix.start} is said to lie in {payload.size}")
        if not same or column.min() < 0 or column.max() >= matrix.columns:
            raise Corrupt(f"zones have columns {column.min()} to {column.max()} of a matrix of {matrix.columns}")

    def _too_many_values(self, probe_values: ProbeValues, zones: _Numbers, ranges_by_zone: Sequence[_Numbers]) -> _Mask:
        """Say which zones are asked for so many values that a filter, full as it is, will contain one by mistake.

        ``zones``: int64 indices of shape (n,); the result is bool of shape (n,).
        """
        # Smaller filters may be half empty, and better than they promise.
        full = self.capacity[zones] >= MIN_STEPPED_CAPACITY
        firsts, lasts = ranges_by_zone
        return full & ((lasts - firsts)[zones] * probe_values.fpp > _MAX_EXPECTED_FALSE_POSITIVES)


@dataclass(frozen=True)
class _Flattened:
    """What was made of an array of summaries, as long as that lives: by family, with the zones it was made for."""

    array: weakref.ref[pa.Array]
    by_family: dict[str, tuple[_Numbers, ZoneSummaries]]


_FLATTENED: dict[int, _Flattened] = {}
"""By the identity of the array, which cannot be hashed."""
