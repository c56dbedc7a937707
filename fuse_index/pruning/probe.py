"""Votes of indexes on the units of one level, made whole.

Sits between the planner, which decides in which order things are asked, and the kinds, which judge one leaf on rows
without NULLs. Every answer is checked for its form; whatever is wrong with it is noted and counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.traversal import leaf_terms
from fuse_index.indexes.ballot import UNKNOWN, Ballot
from fuse_index.indexes.block_batch import FrameBatch, Payload, UnitIndices, ZoneMap, zones_of_blocks
from fuse_index.indexes.interface import Input, RollsUp, Votes
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.predicate import Column, Leaf, Opaque, Term
from fuse_index.pruning.budget import CallBudget, failure_reason
from fuse_index.pruning.call_probe import call_probe
from fuse_index.pruning.compile import CompiledProbe, LeafProbes, PredicateProbes
from fuse_index.pruning.nulls import NullPresence, complete_ballot, decided_by_engine, engine_vote, is_null_test
from fuse_index.pruning.readable import Note, null_where_unusable, usable_blocks, usable_roll_ups
from fuse_index.pruning.trace import PruningTrace
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, ColumnStatistics, SegmentFrame, SidecarRows, StorageError, StoredTable, UnitFrame

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """What is the same at all levels of one query."""

    table: StoredTable
    probes: PredicateProbes
    trace: PruningTrace
    budget: CallBudget


@dataclass
class LevelProbe:
    """The units of one level, as kinds are asked about them.

    At the zone level ``blocks`` owns them, and ``units`` may be missing: then the null counts of the blocks stand for
    those of their zones. ``row_counts``: int64, one per unit.
    """

    context: ProbeContext
    level: str
    row_counts: npt.NDArray[np.int64]
    units: UnitFrame | None
    segments: SegmentFrame | None = None
    blocks: BlockFrame | None = None

    @classmethod
    def of_segments(cls, context: ProbeContext, segments: SegmentFrame) -> LevelProbe:
        return cls(context, "segment", segments.row_counts, segments, segments=segments)

    @classmethod
    def of_blocks(cls, context: ProbeContext, blocks: BlockFrame) -> LevelProbe:
        return cls(context, "block", blocks.row_counts, blocks, blocks=blocks)

    @classmethod
    def of_zones(cls, context: ProbeContext, blocks: BlockFrame, with_statistics: bool) -> LevelProbe:
        return cls(
            context,
            "zone",
            blocks.zone_rows,
            context.table.zones(blocks) if with_statistics and len(blocks) else None,
            blocks=blocks,
        )

    @property
    def has_zone_statistics(self) -> bool:
        return self.units is not None

    # --- free votes -------------------------------------------------------------------------------------------

    def probe_metadata(self, leaf_probes: LeafProbes) -> Iterator[tuple[CompiledProbe | None, Ballot]]:
        """Votes of this level that cost no read of a payload."""
        if not len(self.row_counts):
            return
        if not isinstance(leaf_probes.leaf, Conjunction) and (own := self._engine_vote(leaf_probes.leaf)) is not None:
            yield None, own
        for compiled in leaf_probes.probes:
            shown = self._metadata_batch(leaf_probes, compiled)
            if shown is not None and (ballot := self._call_probe(leaf_probes, compiled, shown[0])) is not None:
                whole = self._complete_ballot(leaf_probes.leaf, compiled, ballot, self._nulls(compiled.inputs))
                yield compiled, whole if shown[1] is None else _unknown_where(whole, ~shown[1])

    def _metadata_batch(
        self, leaf_probes: LeafProbes, compiled: CompiledProbe
    ) -> tuple[FrameBatch, _Mask | None] | None:
        """The summaries to hand to one index at this level, and a mask of the units that it covers; None covers all."""
        fields = self._column_ids(compiled.inputs)
        if compiled.definition is None:
            return None if self.units is None else (FrameBatch.from_units(self.units, fields), None)
        if self.segments is not None and isinstance(compiled.kind, RollsUp):
            rolled_up = usable_roll_ups(
                self.segments, compiled.definition.key, compiled.kind, self._noting(leaf_probes, compiled)
            )
            if rolled_up is None:
                return None
            summaries, usable = rolled_up
            return FrameBatch.from_units(self.segments, fields, null_where_unusable(summaries, usable)), usable
        if self.level == "block" and compiled.probe.cost == 0 and self.blocks is not None:
            sidecars = self._sidecars(compiled)
            if sidecars is None:
                self._note_not_indexed(leaf_probes, compiled)
                return None
            usable = usable_blocks(
                sidecars, compiled.kind, np.arange(len(self.blocks)), self._noting(leaf_probes, compiled)
            )
            return FrameBatch.from_units(self.blocks, fields, null_where_unusable(sidecars.summaries, usable)), usable
        return None

    def _engine_vote(self, leaf: Leaf) -> Ballot | None:
        """Null tests, comparisons with NULL and constants need no index."""
        if isinstance(leaf, Opaque) or not decided_by_engine(leaf):
            return None
        statistics = self._statistics(leaf_terms(leaf)[0]) if is_null_test(leaf) else None
        return engine_vote(leaf, None if statistics is None else _to_numpy(statistics.null_count), self.row_counts)

    # --- payload votes ----------------------------------------------------------------------------------------

    def blocks_of(self, zones: npt.NDArray[np.bool_]) -> UnitIndices:
        """The blocks that own any of these zones: int64, ascending. ``zones``: bool, one per zone of all blocks."""
        assert self.blocks is not None
        if not len(zones):
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.add.reduceat(zones, self.blocks.zone_offsets[:-1]))

    def probe_payloads(self, leaf_probes: LeafProbes, compiled: CompiledProbe, chosen: UnitIndices) -> Ballot | None:
        """A ballot of all zones, on which only those of the chosen blocks are known; None: no vote at all.

        ``chosen``: numbers of blocks, int64, shape (k,), ascending.
        """
        assert self.blocks is not None
        sidecars = self._sidecars(compiled)
        if sidecars is None:
            self._note_not_indexed(leaf_probes, compiled)
            return None
        usable = usable_blocks(sidecars, compiled.kind, chosen, self._noting(leaf_probes, compiled))
        chosen = chosen[usable[chosen]]
        if not len(chosen):
            return None
        zones = ZoneMap.of(self.blocks)
        batch = FrameBatch.from_sidecars(self.blocks, self._column_ids(compiled.inputs), zones, sidecars, chosen)
        parts = list(self._probe_by_pack(leaf_probes, compiled, batch, sidecars, chosen))
        if not parts:
            return None
        bits = np.full(len(self.row_counts), UNKNOWN, np.uint8)
        rows = {}
        for part, ballot in parts:
            numbers = zones_of_blocks(self.blocks.zone_offsets, part)
            if len(ballot) != len(numbers):
                owners = np.repeat(np.arange(len(part)), np.diff(self.blocks.zone_offsets)[part])
                ballot = ballot.cut(owners, self.row_counts[numbers])
            nulls = self._nulls(compiled.inputs).take(numbers)
            whole = self._complete_ballot(leaf_probes.leaf, compiled, ballot, nulls)
            bits[numbers] = whole.bits
            rows.update({int(numbers[zone]): votes for zone, votes in whole.rows.items()})
        return Ballot(bits, rows)

    def _probe_by_pack(
        self,
        leaf_probes: LeafProbes,
        compiled: CompiledProbe,
        batch: FrameBatch,
        sidecars: SidecarRows,
        chosen: UnitIndices,
    ) -> Iterator[tuple[UnitIndices, Ballot]]:
        """One vote on all; if bytes turn out bad, one for each pack.

        So one bad pack does not silence the others.
        """
        if (ballot := self._call_probe(leaf_probes, compiled, batch)) is not None:
            yield chosen, ballot
        elif self.context.trace.is_damaged(leaf_probes.leaf, compiled) and len(packs := _packs_or_none(batch)) > 1:
            for _, members in packs:
                part = chosen[members]
                assert self.blocks is not None
                zones = ZoneMap.of(self.blocks)
                smaller = FrameBatch.from_sidecars(self.blocks, batch.column_ids, zones, sidecars, part)
                if (ballot := self._call_probe(leaf_probes, compiled, smaller)) is not None:
                    yield part, ballot

    def _noting(self, leaf_probes: LeafProbes, compiled: CompiledProbe) -> Note:
        return lambda reason, detail: self.context.trace.note(leaf_probes.leaf, compiled, reason, detail)

    def _note_not_indexed(self, leaf_probes: LeafProbes, compiled: CompiledProbe) -> None:
        self.context.trace.note(
            leaf_probes.leaf, compiled, Reason.BLOCK_NOT_INDEXED, "no block is indexed: refresh the index"
        )

    # --- asking and settling ----------------------------------------------------------------------------------

    def _call_probe(self, leaf_probes: LeafProbes, compiled: CompiledProbe, batch: FrameBatch) -> Ballot | None:
        trace, kind = self.context.trace, compiled.kind
        assert isinstance(kind, Votes)
        call = partial(call_probe, kind, compiled.probe, batch)
        answer = (
            call(None)
            if compiled.exact
            else self.context.budget.run(f"{compiled.identity} probe", call, failure_reason)
        )
        if isinstance(answer, PluginFailure):
            trace.note_failure(leaf_probes.leaf, compiled, answer)
            return None
        return answer

    def _complete_ballot(
        self, leaf: Leaf | Conjunction, compiled: CompiledProbe, ballot: Ballot, nulls: NullPresence
    ) -> Ballot:
        strict_functions = self.context.probes.strict_functions
        return complete_ballot(ballot, leaf, compiled.probe, compiled.inputs, nulls, strict_functions)

    def _nulls(self, inputs: tuple[Input, ...]) -> NullPresence:
        nulls = NullPresence(np.zeros(len(self.row_counts), np.bool_), np.zeros(len(self.row_counts), np.bool_))
        for each in inputs:
            statistics = self._statistics(each.term)
            counts = None if statistics is None else _to_numpy(statistics.null_count)
            if counts is None:
                nulls = NullPresence(np.ones_like(nulls.may_be_null), nulls.always_null)
            else:
                rows = self._statistics_rows()
                possible, everywhere = ~(counts == 0), counts == rows
                nulls = NullPresence(
                    nulls.may_be_null | self._to_zones(possible), nulls.always_null | self._to_zones(everywhere)
                )
        return nulls

    def _statistics_rows(self) -> npt.NDArray[np.int64]:
        return self.row_counts if self.units is not None or self.blocks is None else self.blocks.row_counts

    def _to_zones(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """From blocks to their zones, where there are no statistics of zones."""
        return (
            mask
            if self.units is not None or self.blocks is None
            else np.repeat(mask, np.diff(self.blocks.zone_offsets))
        )

    def _statistics(self, term: Term) -> ColumnStatistics | None:
        field = self._column_ids((Input(term, term.type),))[0]
        units = self.units if self.units is not None else self.blocks
        return None if field is None or units is None else units.statistics(field)

    def _column_ids(self, inputs: tuple[Input, ...]) -> tuple[int | None, ...]:
        schema = self.context.table.snapshot.schema
        return tuple(schema.find(each.term.path).id if isinstance(each.term, Column) else None for each in inputs)

    def _sidecars(self, compiled: CompiledProbe) -> SidecarRows | None:
        assert self.blocks is not None
        assert compiled.definition is not None
        return self.blocks.sidecars(compiled.definition.key)

    def count_removed(self, removed: npt.NDArray[np.bool_], left: npt.NDArray[np.bool_]) -> dict[str, int]:
        """How many zones, and whole blocks, a vote removed. ``removed``, ``left``: bool, one per zone of all blocks."""
        assert self.blocks is not None
        if not len(removed):
            return {}
        starts = self.blocks.zone_offsets[:-1]
        had = np.add.reduceat(removed | left, starts) > 0
        has = np.add.reduceat(left, starts) > 0
        return {"zones": int(removed.sum()), "blocks": int((had & ~has).sum())}


def _to_numpy(array: pa.Array) -> npt.NDArray[np.float64]:
    counts: npt.NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return counts


def _packs_or_none(batch: FrameBatch) -> Sequence[tuple[Payload, UnitIndices]]:
    try:
        return batch.packs()
    except StorageError:  # what says where they lie is damaged, too
        return []


def _unknown_where(ballot: Ballot, mask: npt.NDArray[np.bool_]) -> Ballot:
    bits = np.where(mask, np.uint8(UNKNOWN), ballot.bits).astype(np.uint8)
    return Ballot(bits, {unit: rows for unit, rows in ballot.rows.items() if not mask[unit]})
