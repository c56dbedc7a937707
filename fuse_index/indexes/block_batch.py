"""What a kind is shown of a table: units of one level, with their statistics, summaries and payloads.

``BlockBatch`` and ``Payload`` are what authors see; ``FrameBatch`` is what the engine gives, over frames of the storage
room. Knows no predicate and no kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_storage import ColumnStatistics, ScanUnits, SidecarRows, UnitFrame, ranges_to_indices

UnitIndices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ZoneMap:
    """The zones of n blocks, block after block.

    ``offsets``: int64, shape (n + 1,); block i has the zones ``offsets[i]:offsets[i + 1]``. ``rows``: int64, shape
    (number of zones,), the rows of each.

    >>> zones = ZoneMap(np.array([0, 2, 2, 5]), np.array([10, 4, 10, 10, 3]))
    >>> zones.of_blocks(np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """

    offsets: UnitIndices
    rows: UnitIndices

    @classmethod
    def of(cls, blocks: ScanUnits) -> ZoneMap:
        return cls(blocks.zone_offsets, blocks.zone_rows)

    @property
    def counts(self) -> UnitIndices:
        """How many zones each block has: int64, shape (n,)."""
        return np.diff(self.offsets)

    def of_blocks(self, blocks: UnitIndices) -> UnitIndices:
        """The numbers of the zones of these blocks, block after block. ``blocks``: int64, shape (k,), in any order."""
        return zones_of_blocks(self.offsets, blocks)

    def take(self, blocks: UnitIndices) -> ZoneMap:
        """The zones of these blocks alone, in their order. ``blocks``: int64, shape (k,)."""
        offsets = np.append(0, np.cumsum(self.counts[blocks])).astype(np.int64)
        return ZoneMap(offsets, self.rows[self.of_blocks(blocks)])


PayloadValue = TypeVar("PayloadValue")


class Payload(Protocol):
    """The bytes that ``build`` made of one block, wherever they lie by now. Every read is verified."""

    size: int

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each (offset, length); near ranges are fetched together. Raises StorageError."""
        ...

    def decoded(
        self, span: tuple[int, int], decode: Callable[[bytes], PayloadValue], size: Callable[[PayloadValue], int]
    ) -> PayloadValue:
        """What ``decode`` makes of the bytes of one (offset, length), kept in memory as long as there is room.

        ``decode``: the same function each time, since what it made is kept under it. ``size``: bytes of what it made.
        """
        ...


class BlockBatch(Protocol):
    """Units to vote on, all of one level: segments, blocks or zones.

    Only at the block level may there be payloads, and zones finer than the unit. At the other levels each unit is its
    own only zone.
    """

    @property
    def row_counts(self) -> npt.NDArray[np.int64]:
        """int64, shape (n,): the rows of each unit."""
        ...

    @property
    def zone_offsets(self) -> npt.NDArray[np.int64]:
        """int64, shape (n + 1,): unit i has the zones ``zone_offsets[i]:zone_offsets[i + 1]``."""
        ...

    @property
    def zone_rows(self) -> npt.NDArray[np.int64]:
        """int64, shape (number of zones,): the rows of each zone."""
        ...

    @property
    def summaries(self) -> pa.Array | None:
        """Values of the kind's ``summary_type``, length n, null where a unit is not indexed; None: no index at all."""
        ...

    def __len__(self) -> int: ...

    def statistics(self, number: int) -> ColumnStatistics | None:
        """Statistics of input ``number`` where it is a plain column that has them."""
        ...

    def payload(self, unit: int) -> Payload | None:
        """The unit's own payload; None where there is none."""
        ...

    def read_payloads(self) -> list[bytes | None]:
        """Read small payloads at once, the whole one of each unit; None where there is none. Raises StorageError."""
        ...

    def packs(self) -> Sequence[tuple[Payload, npt.NDArray[np.int64]]]:
        """Each pack that payloads of this batch lie in, as one payload, with the units in it: int64, shape (k,)."""
        ...


@dataclass(frozen=True)
class FrameBatch:
    """A ``BlockBatch`` over frames of the storage room.

    ``fields[k]`` is the column id of input k, None where the input is no plain column. ``units`` and ``sidecars``
    are aligned; ``selected`` narrows both to some units, in that order.
    """

    units: UnitFrame
    column_ids: tuple[int | None, ...]
    row_counts: npt.NDArray[np.int64]
    zones: ZoneMap
    summaries: pa.Array | None = None
    sidecars: SidecarRows | None = None
    selected: UnitIndices | None = None

    @classmethod
    def from_units(
        cls, units: UnitFrame, column_ids: Sequence[int | None], summaries: pa.Array | None = None
    ) -> FrameBatch:
        """All units, each its own only zone."""
        rows = read_only(units.row_counts)
        return cls(units, tuple(column_ids), rows, ZoneMap(np.arange(len(rows) + 1, dtype=np.int64), rows), summaries)

    @classmethod
    def from_sidecars(
        cls,
        units: UnitFrame,
        column_ids: Sequence[int | None],
        zones: ZoneMap,
        sidecars: SidecarRows,
        selected: UnitIndices,
    ) -> FrameBatch:
        """Some blocks with their sidecars and zones.

        ``units``, ``zones`` and ``sidecars`` are of all blocks; ``selected``: int64, shape (k,), which of them the
        batch is of.
        """
        if len(selected) == len(units):  # ascending, and so all of them: nothing is copied, and what is kept serves
            rows = read_only(units.row_counts)
            return cls(units, tuple(column_ids), rows, zones, sidecars.summaries, sidecars)
        own = sidecars.take(selected)
        return cls(
            units,
            tuple(column_ids),
            units.row_counts[selected],
            zones.take(selected),
            own.summaries,
            own,
            selected,
        )

    def __len__(self) -> int:
        return len(self.row_counts)

    @property
    def zone_offsets(self) -> UnitIndices:
        """int64, shape (n + 1,): unit i has the zones ``zone_offsets[i]:zone_offsets[i + 1]``."""
        return read_only(self.zones.offsets)

    @property
    def zone_rows(self) -> UnitIndices:
        """int64, shape (number of zones,): the rows of each."""
        return read_only(self.zones.rows)

    def statistics(self, number: int) -> ColumnStatistics | None:
        field = self.column_ids[number]
        found = None if field is None else self.units.statistics(field)
        return found if found is None or self.selected is None else found.take(self.selected)

    def payload(self, unit: int) -> Payload | None:
        return None if self.sidecars is None else self.sidecars.payload(unit)

    def read_payloads(self) -> list[bytes | None]:
        """Read the payload of each unit; None where there is none."""
        nothing: list[bytes | None] = [None] * len(self)
        return nothing if self.sidecars is None else self.sidecars.read_payloads()

    def packs(self) -> Sequence[tuple[Payload, UnitIndices]]:
        """Each pack with the units in it: int64, shape (k,)."""
        return [] if self.sidecars is None else self.sidecars.packs()


def read_only(numbers: UnitIndices) -> UnitIndices:
    """A view that nobody can write to: what kinds are shown is shared with the engine, and with other queries.

    ``numbers``: int64, of any shape.
    """
    view = numbers.view()
    view.flags.writeable = False
    return view


def zones_of_blocks(offsets: UnitIndices, blocks: UnitIndices) -> UnitIndices:
    """The zones of these blocks, block after block: ``offsets[b]:offsets[b + 1]`` of each, in one int64 vector.

    ``offsets``: int64, shape (n + 1,); ``blocks``: int64, shape (k,), each below n.
    """
    return ranges_to_indices(offsets[blocks], (offsets[1:] - offsets[:-1])[blocks])
