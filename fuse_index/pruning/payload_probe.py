"""Votes that must read payloads: of one index on one leaf, on some blocks, asked for in slices.

One call about all blocks of a large table would lose all votes where the budget ends in its midst. A slice is small
enough that what was voted before is most of what there was time for, and large enough that calls cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fuse_index.indexes.ballot import UNKNOWN, Ballot
from fuse_index.indexes.block_batch import FrameBatch, Payload, UnitIndices, ZoneMap, zones_of_blocks
from fuse_index.pruning.compile import CompiledProbe, LeafProbes
from fuse_index.pruning.probe import LevelProbe
from fuse_index.pruning.readable import usable_blocks
from fuse_storage import BlockFrame, SidecarRows, StorageError


def probe_payloads(
    level: LevelProbe, leaf_probes: LeafProbes, compiled: CompiledProbe, chosen: UnitIndices
) -> Ballot | None:
    """A ballot of all zones, on which only those of the chosen blocks are known; None: no vote at all.

    ``level``: that of zones. ``chosen``: numbers of blocks, int64, shape (k,), ascending.
    """
    assert level.blocks is not None
    sidecars = level.sidecars(compiled)
    if sidecars is None:
        level.note_not_indexed(leaf_probes, compiled)
        return None
    noting, remedy = level.noting(leaf_probes, compiled), partial(level.remedy_of, compiled)
    usable = usable_blocks(sidecars, compiled.kind, chosen, noting, remedy)
    chosen = chosen[usable[chosen]]
    if not len(chosen):
        return None
    parts = list(_PayloadVotes(level, level.blocks, leaf_probes, compiled, sidecars).of(chosen))
    if not parts:
        return None
    bits = np.full(len(level.row_counts), UNKNOWN, np.uint8)
    rows = {}
    nulls = level.nulls(compiled.inputs)
    for part, ballot in parts:
        numbers = zones_of_blocks(level.blocks.zone_offsets, part)
        if len(ballot) != len(numbers):
            owners = np.repeat(np.arange(len(part)), np.diff(level.blocks.zone_offsets)[part])
            ballot = ballot.cut(owners, level.row_counts[numbers])
        whole = level.complete_ballot(leaf_probes.leaf, compiled, ballot, nulls.take(numbers))
        bits[numbers] = whole.bits
        rows.update({int(numbers[zone]): votes for zone, votes in whole.rows.items()})
    return Ballot(bits, rows)


@dataclass(frozen=True)
class _PayloadVotes:
    """What one index says of one leaf; ``blocks`` and ``sidecars`` are of all blocks that are left."""

    level: LevelProbe
    blocks: BlockFrame
    leaf_probes: LeafProbes
    compiled: CompiledProbe
    sidecars: SidecarRows

    def of(self, chosen: UnitIndices) -> Iterator[tuple[UnitIndices, Ballot]]:
        """Votes on one slice after the other, until the index fails; on what is left, nothing is known."""
        count = self.level.context.budget.units_per_call
        for start in range(0, len(chosen), count):
            votes = list(self._of_slice(chosen[start : start + count]))
            yield from votes
            if not votes and not self._is_damaged:
                if start:
                    self._note_rest(start, len(chosen))
                return

    def _note_rest(self, voted: int, blocks: int) -> None:
        trace, leaf = self.level.context.trace, self.leaf_probes.leaf
        trace.add_detail(leaf, self.compiled, f"votes on {voted:,} of {blocks:,} blocks count")

    def _of_slice(self, chosen: UnitIndices) -> Iterator[tuple[UnitIndices, Ballot]]:
        """One vote on all; if bytes turn out bad, one for each pack.

        So one bad pack does not silence the others.
        """
        batch = self._batch(chosen)
        if (ballot := self._ask(batch)) is not None:
            yield chosen, ballot
        elif self._is_damaged and len(packs := _packs_or_none(batch)) > 1:
            for _, members in packs:
                part = chosen[members]
                if (ballot := self._ask(self._batch(part))) is not None:
                    yield part, ballot

    def _batch(self, chosen: UnitIndices) -> FrameBatch:
        column_ids = self.level.column_ids(self.compiled.inputs)
        return FrameBatch.from_sidecars(self.blocks, column_ids, ZoneMap.of(self.blocks), self.sidecars, chosen)

    def _ask(self, batch: FrameBatch) -> Ballot | None:
        return self.level.call_probe(self.leaf_probes, self.compiled, batch)

    @property
    def _is_damaged(self) -> bool:
        return self.level.context.trace.is_damaged(self.leaf_probes.leaf, self.compiled)


def _packs_or_none(batch: FrameBatch) -> Sequence[tuple[Payload, UnitIndices]]:
    try:
        return batch.packs()
    except StorageError:  # what says where they lie is damaged, too
        return []
