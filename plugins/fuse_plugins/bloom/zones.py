"""What summaries say of zones: which have a filter, and where it lies. Decides which zones cannot hold a value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import BlockBatch, Payload
from fuse_plugins.bloom.filters import HashFilter
from fuse_plugins.bloom.hashing import Hashes
from fuse_plugins.bloom.matrices import Matrix

Numbers = npt.NDArray[np.int64]

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
    """The values that are looked for: hashes, sorted and distinct, and their bytes."""

    family: str
    fpp: float
    hashes: Hashes
    values: pa.BinaryArray


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
        return cls(_runs(batch.zone_offsets[:-1], counts), constant=pc.struct_field(all_zones, "constant"), starts=starts, **numbers)

    def filtered(self, units: Numbers) -> Numbers:
        """Which of these belong to the units and have a filter."""
        found = _runs(self.starts[units], np.diff(self.starts)[units])
        return found[self.capacity[found] > 0]

    def absent(self, needles: Needles, payload: Payload, chosen: Numbers) -> Numbers:
        """Those of the chosen zones, all in one pack, that hold none of the needles. Raises StorageError."""
        absent = []
        for start in np.unique(self.matrix[chosen]).tolist():
            members = chosen[self.matrix[chosen] == start]
            one = members[0]
            matrix = Matrix(start, int(self.columns[one]), *shape(int(self.capacity[one]), needles.fpp))
            absent.append(members[~matrix.holding(needles.hashes, payload)[self.column[members]]])
        return np.concatenate(absent)


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
