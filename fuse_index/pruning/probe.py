"""Votes of indexes on the units of one level, made whole.

Sits between the planner, which decides in which order things are asked, and the kinds, which judge one leaf on rows
without NULLs. Every answer is checked for its form; whatever is wrong with it is noted and counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.traversal import leaf_terms
from fuse_index.indexes.ballot import UNKNOWN, Ballot
from fuse_index.indexes.block_batch import FrameBatch, UnitIndices
from fuse_index.indexes.interface import Input, RollsUp, Votes
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.predicate import Column, Leaf, Opaque, Term
from fuse_index.pruning.calls.budget import CallBudget, failure_reason
from fuse_index.pruning.calls.call_probe import call_probe
from fuse_index.pruning.compile import CompiledProbe, LeafProbes, PredicateProbes
from fuse_index.pruning.nulls import NullPresence, complete_ballot, decided_by_engine, engine_vote, is_null_test
from fuse_index.pruning.readable import REFRESH, Note, null_where_unusable, usable_blocks, usable_roll_ups
from fuse_index.pruning.trace import PruningTrace
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import describe_failure, failure_of
from fuse_storage import (
    BlockFrame,
    ColumnStatistics,
    SegmentFrame,
    SidecarRows,
    StoredTable,
    UnitFrame,
    ranges_to_indices,
)

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
            self.context.trace.stages.asked += 1
            yield None, own
        for compiled in leaf_probes.probes:
            shown = self._metadata_batch(leaf_probes, compiled)
            if shown is not None and (ballot := self.call_probe(leaf_probes, compiled, shown[0])) is not None:
                whole = self.complete_ballot(leaf_probes.leaf, compiled, ballot, self.nulls(compiled.inputs))
                yield compiled, whole if shown[1] is None else _unknown_where(whole, ~shown[1])

    def _metadata_batch(
        self, leaf_probes: LeafProbes, compiled: CompiledProbe
    ) -> tuple[FrameBatch, _Mask | None] | None:
        """The summaries to hand to one index at this level, and a mask of the units that it covers; None covers all."""
        fields = self.column_ids(compiled.inputs)
        if compiled.definition is None:
            return None if self.units is None else (FrameBatch.from_units(self.units, fields), None)
        if self.segments is not None and isinstance(compiled.kind, RollsUp):
            rolled_up = usable_roll_ups(
                self.segments, compiled.definition.key, compiled.kind, self.noting(leaf_probes, compiled)
            )
            if rolled_up is None:
                return None
            summaries, usable = rolled_up
            return FrameBatch.from_units(self.segments, fields, null_where_unusable(summaries, usable)), usable
        if self.level == "block" and compiled.probe.cost == 0 and self.blocks is not None:
            sidecars = self.sidecars(compiled)
            if sidecars is None:
                self.note_not_indexed(leaf_probes, compiled)
                return None
            noting, every = self.noting(leaf_probes, compiled), np.arange(len(self.blocks))
            usable = usable_blocks(sidecars, compiled.kind, every, noting, partial(self.remedy_of, compiled))
            return FrameBatch.from_units(self.blocks, fields, null_where_unusable(sidecars.summaries, usable)), usable
        return None

    def _engine_vote(self, leaf: Leaf) -> Ballot | None:
        """Null tests, comparisons with NULL and constants need no index."""
        if isinstance(leaf, Opaque) or not decided_by_engine(leaf):
            return None
        statistics = self._statistics(leaf_terms(leaf)[0]) if is_null_test(leaf) else None
        return engine_vote(leaf, None if statistics is None else _to_numpy(statistics.null_count), self.row_counts)

    def blocks_of(self, zones: npt.NDArray[np.bool_]) -> UnitIndices:
        """The blocks that own any of these zones: int64, ascending. ``zones``: bool, one per zone of all blocks."""
        assert self.blocks is not None
        if not len(zones):
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.add.reduceat(zones, self.blocks.zone_offsets[:-1]))

    def noting(self, leaf_probes: LeafProbes, compiled: CompiledProbe) -> Note:
        return lambda reason, detail: self.context.trace.note(leaf_probes.leaf, compiled, reason, detail)

    def note_not_indexed(self, leaf_probes: LeafProbes, compiled: CompiledProbe) -> None:
        self.context.trace.note(
            leaf_probes.leaf, compiled, Reason.BLOCK_NOT_INDEXED, f"no block is indexed: {self.remedy_of(compiled)}"
        )

    def remedy_of(self, compiled: CompiledProbe) -> str:
        """What to do where an index lacks blocks: to refresh it does not help where its kind fails to build it."""
        failure = None if compiled.definition is None else failure_of(self.context.table, compiled.definition.key)
        return REFRESH if failure is None else describe_failure(failure)

    # --- asking and settling ----------------------------------------------------------------------------------

    def call_probe(self, leaf_probes: LeafProbes, compiled: CompiledProbe, batch: FrameBatch) -> Ballot | None:
        trace, kind = self.context.trace, compiled.kind
        assert isinstance(kind, Votes)
        trace.stages.asked += 1
        call = partial(call_probe, kind, compiled.probe, batch)
        answer = (
            call(None)
            if compiled.exact
            else self.context.budget.run(f"{compiled.identity} probe", call, failure_reason, compiled.built_in)
        )
        if isinstance(answer, PluginFailure):
            trace.note_failure(leaf_probes.leaf, compiled, answer)
            return None
        return answer

    def complete_ballot(
        self, leaf: Leaf | Conjunction, compiled: CompiledProbe, ballot: Ballot, nulls: NullPresence
    ) -> Ballot:
        asked, strict_functions = leaf.asked if isinstance(leaf, Opaque) else leaf, self.context.probes.strict_functions
        return complete_ballot(ballot, asked, compiled.probe, compiled.inputs, nulls, strict_functions)

    def nulls(self, inputs: tuple[Input, ...]) -> NullPresence:
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
        field = self.column_ids((Input(term, term.type),))[0]
        units = self.units if self.units is not None else self.blocks
        return None if field is None or units is None else units.statistics(field)

    def column_ids(self, inputs: tuple[Input, ...]) -> tuple[int | None, ...]:
        schema = self.context.table.snapshot.schema
        return tuple(schema.find(each.term.path).id if isinstance(each.term, Column) else None for each in inputs)

    def sidecars(self, compiled: CompiledProbe) -> SidecarRows | None:
        assert self.blocks is not None
        assert compiled.definition is not None
        return self.blocks.sidecars(compiled.definition.key)

    def note_removed(
        self, leaf: Leaf | Conjunction, compiled: CompiledProbe | None, before: Ballot, after: Ballot
    ) -> None:
        """Note what a vote removed; of it, ``count_removed`` tells the numbers."""
        touched = self._touched_blocks(before.may_match & ~after.may_match)
        self.context.trace.add_removed(leaf, compiled, self.count_removed(before, after), touched)

    def _touched_blocks(self, gone: _Mask) -> UnitIndices:
        """The numbers of blocks that lose all or a part: int64, shape (k,). ``gone``: bool, one per unit."""
        if self.segments is not None:
            return ranges_to_indices(self.segments.block_offsets[:-1][gone], self.segments.block_counts[gone])
        assert self.blocks is not None
        return self.blocks.ordinals[gone if self.level == "block" else self.blocks_of(gone)]

    def count_left(self, ballot: Ballot) -> tuple[int, int, int]:
        """Blocks, zones and rows in which the predicate may be true of a row; of zones alone."""
        zones, rows = ballot.may_match, self.row_counts.copy()
        for zone in ballot.rows:
            rows[zone] = ballot.matching_rows(zone, int(rows[zone]))
        return len(self.blocks_of(zones)), int(zones.sum()), int(rows[zones].sum())

    def count_removed(self, before: Ballot, after: Ballot) -> dict[str, int]:
        """Blocks and zones that a vote removed, and single rows of units that are still read.

        ``before``, ``after``: what the predicate may be on each unit of this level, without the vote and with it.
        """
        gone = before.may_match & ~after.may_match
        rows = sum(
            before.matching_rows(unit, int(self.row_counts[unit])) - after.matching_rows(unit, len(votes))
            for unit, votes in after.rows.items()
            if after.may_match[unit]
        )
        if self.segments is not None:
            return {"blocks": int(self.segments.block_counts[gone].sum()), "rows": rows}
        if self.level == "block":
            return {"blocks": int(gone.sum()), "rows": rows}
        assert self.blocks is not None
        if not len(gone):
            return {}
        starts = self.blocks.zone_offsets[:-1]
        had = np.logical_or.reduceat(before.may_match, starts)
        has = np.logical_or.reduceat(after.may_match, starts)
        return {"zones": int(gone.sum()), "blocks": int((had & ~has).sum()), "rows": rows}


def _to_numpy(array: pa.Array) -> npt.NDArray[np.float64]:
    counts: npt.NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return counts


def _unknown_where(ballot: Ballot, mask: npt.NDArray[np.bool_]) -> Ballot:
    bits = np.where(mask, np.uint8(UNKNOWN), ballot.bits).astype(np.uint8)
    return Ballot(bits, {unit: rows for unit, rows in ballot.rows.items() if not mask[unit]})
