"""What a kind is shown of a table: units of one level, with their statistics, summaries and payloads.

Sits between the frames of the storage room and ``plugin.BlockBatch``. Knows no predicate and no kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.indexes.interface import Payload
from fuse_storage import ColumnStatistics, SidecarRows, UnitFrame

UnitIndices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrameBatch:
    """A ``BlockBatch`` over frames of the storage room.

    ``fields[k]`` is the column id of input k, None where the input is no plain column. ``units`` and ``sidecars``
    are aligned; ``selected`` narrows both to some units, in that order.
    """

    units: UnitFrame
    column_ids: tuple[int | None, ...]
    row_counts: npt.NDArray[np.int64]
    zone_offsets: npt.NDArray[np.int64]
    zone_rows: npt.NDArray[np.int64]
    summaries: pa.Array | None = None
    sidecars: SidecarRows | None = None
    selected: UnitIndices | None = None

    @classmethod
    def from_units(
        cls, units: UnitFrame, column_ids: Sequence[int | None], summaries: pa.Array | None = None
    ) -> FrameBatch:
        """All units, each its own only zone."""
        rows = units.row_counts
        return cls(units, tuple(column_ids), rows, np.arange(len(rows) + 1, dtype=np.int64), rows, summaries)

    @classmethod
    def from_sidecars(
        cls,
        units: UnitFrame,
        column_ids: Sequence[int | None],
        zone_layout: tuple[UnitIndices, UnitIndices],
        sidecars: SidecarRows,
        selected: UnitIndices,
    ) -> FrameBatch:
        """Some blocks with their sidecars and zones: ``zones`` holds the offsets and the rows of all blocks' zones."""
        offsets, zone_rows = zone_layout
        numbers = zones_of_blocks(offsets, selected)
        counts = (offsets[1:] - offsets[:-1])[selected]
        own = sidecars.take(selected)
        return cls(
            units,
            tuple(column_ids),
            units.row_counts[selected],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            zone_rows[numbers],
            own.summaries,
            own,
            selected,
        )

    def __len__(self) -> int:
        return len(self.row_counts)

    def statistics(self, number: int) -> ColumnStatistics | None:
        field = self.column_ids[number]
        found = None if field is None else self.units.statistics(field)
        return found if found is None or self.selected is None else found.take(self.selected)

    def payload(self, unit: int) -> Payload | None:
        return None if self.sidecars is None else self.sidecars.payload(unit)

    def packs(self) -> Sequence[tuple[Payload, UnitIndices]]:
        return [] if self.sidecars is None else self.sidecars.packs()


def zones_of_blocks(offsets: UnitIndices, blocks: UnitIndices) -> UnitIndices:
    """The zones of these blocks, block after block: ``offsets[b]:offsets[b + 1]`` of each, in one vector."""
    starts, counts = offsets[blocks], (offsets[1:] - offsets[:-1])[blocks]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: UnitIndices = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return numbers
