"""How a predicate becomes a mask: which blocks and zones of a snapshot must be read, the cheap votes first.

Take six rows in three blocks, and an index that keeps a Bloom filter of each:

>>> table = fuse.create_table("memory://essay", "n BIGINT, email STRING", properties={"block_rows": 2})
>>> rows = [(1, "ann"), (2, "dan"), (6, "ann"), (None, "dan"), (7, "bob"), (9, "bob")]
>>> snapshot = table.append([{"n": n, "email": email} for n, email in rows])
>>> snapshot = table.create_index("by_email", "bloom", ["email"])
>>> print(table.explain("n > 5 AND email = 'bob'"))  # doctest: +ELLIPSIS
table ...
blocks   1 of 3 to read
...
  n > 5          min_max   USED          1 block removed
  email = 'bob'  min_max   USED_NO_GAIN
  email = 'bob'  by_email  USED          1 block removed; 1 zone removed

1. Statistics vote on each leaf by itself, and a vote says which outcomes are possible on a block (``ballot``). By the
bounds 1 and 2, ``n > 5`` is FALSE on all rows of the first block; by 6 and 6 it is TRUE on the second, where a NULL is
added (``nulls``), as kinds know nothing of these. In the bounds ``ann`` to ``dan`` there may be a ``bob`` or not:

>>> from fuse_index.indexes.ballot import FALSE, NULL, UNKNOWN
>>> n = Ballot(np.array([FALSE, TRUE | NULL, TRUE], np.uint8))
>>> email = Ballot(np.array([TRUE | FALSE, TRUE | FALSE, TRUE], np.uint8))

2. The tree of AND, OR and NOT makes one vote of these (``combine``). Blocks that cannot be TRUE are gone:

>>> (n & email).may_match.tolist()
[False, True, True]

3. The filter costs a read of its payload, so it is asked only of blocks where the best vote could still change
something: not of the first, which is gone, nor of the third, where every row matches already (``Tally.best_case``).
It holds no ``bob`` in the second, which is believed together with what was said before:

>>> email = email.intersect(Ballot(np.array([UNKNOWN, FALSE, UNKNOWN], np.uint8)))
>>> (n & email).may_match.tolist(), (n & email).always_matches.tolist()
([False, False, True], [False, False, True])

The mask is the first list. Rows of the blocks in the second need no filter; others are filtered again, so that a vote
that is not sharp costs time and no row. A vote holds three outcomes and not the mask's one bit, since the opposite of
"may match" would drop blocks of which only some rows match.

All this is done thrice: of segments, by roll-ups in the segment list; of the blocks of those that are left; and of
their zones. Whatever an index cannot say leaves things as they were, with a reason; whoever contradicts exact
statistics or itself is left out, and planning begins anew (``Contradiction``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from fuse_index.errors import IndexFault
from fuse_index.expressions.traversal import columns_of, leaf_terms
from fuse_index.indexes.ballot import TRUE, Ballot
from fuse_index.indexes.block_batch import UnitIndices, zones_of_blocks
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import Refusal
from fuse_index.predicate import Context, Predicate
from fuse_index.pruning.account.stages import Stages, segments_left
from fuse_index.pruning.account.tell import tell_plan
from fuse_index.pruning.calls.budget import CallBudget, budget_of
from fuse_index.pruning.calls.switches import Switches
from fuse_index.pruning.compile import IndexSet, PredicateProbes
from fuse_index.pruning.explanation import Explanation, explain_plan
from fuse_index.pruning.payload_probe import probe_payloads
from fuse_index.pruning.probe import LevelProbe, ProbeContext
from fuse_index.pruning.tally import Contradiction, Tally
from fuse_index.pruning.trace import PruningTrace
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, ScanUnits, StoredTable, leave_out_deleted

MAX_BLOCKS_WITH_ZONE_STATISTICS = 20_000
"""Zone statistics are opened only when at most so many blocks are left: beyond, they cost more than they save."""

PlanMask = npt.NDArray[np.bool_]
_Units = TypeVar("_Units", bound=ScanUnits, covariant=True)


@dataclass(frozen=True)
class ScanPlan(Generic[_Units]):
    """What to read of a snapshot, and what is left to filter.

    ``zones`` and ``always_matching_zones`` are bool, one per zone of ``blocks``, block after block:
    ``blocks.zone_offsets`` says which are whose. ``zones`` are read; those that always match need no residual filter;
    of a zone in ``row_masks``, by its number, only the rows set in its mask (bool, one per row) may match.
    Of a plan that goes to a task, ``blocks`` are no more than a scan needs.
    """

    table: StoredTable
    predicate: Predicate | None
    context: Context
    blocks: _Units
    zones: PlanMask
    always_matching_zones: PlanMask
    row_masks: Mapping[int, PlanMask]
    explanation: Explanation

    @property
    def block_mask(self: ScanPlan[BlockFrame]) -> PlanMask:
        """The blocks to read: bool, one per block of the snapshot, in their order."""
        mask = np.zeros(self.table.segments().total_blocks, np.bool_)
        mask[self.blocks.ordinals] = True
        return mask

    @property
    def always_matching_blocks(self: ScanPlan[BlockFrame]) -> PlanMask:
        """The blocks on which the predicate is true of every row that counts: bool, one per block of ``blocks``.

        Rows to read count all: where they are as many as those that do, there are no others.
        """
        certain = np.where(self.zones & self.always_matching_zones, self.blocks.zone_rows, 0)
        for zone, rows in self.row_masks.items():
            certain[zone] = min(int(certain[zone]), int(np.count_nonzero(rows)))
        if not len(certain):
            return np.zeros(0, np.bool_)
        return np.asarray(np.add.reduceat(certain, self.blocks.zone_offsets[:-1]) == self.blocks.live_row_counts)

    def take(self: ScanPlan[BlockFrame], chosen: UnitIndices) -> ScanPlan[BlockFrame]:
        """The plan of these blocks alone, with the whole's ``explanation``. ``chosen``: int64, shape (k,)."""
        zones = zones_of_blocks(self.blocks.zone_offsets, chosen)
        rows = {place: self.row_masks[zone] for place, zone in enumerate(zones.tolist()) if zone in self.row_masks}
        return replace(
            self,
            blocks=self.blocks.take(chosen),
            zones=self.zones[zones],
            always_matching_zones=self.always_matching_zones[zones],
            row_masks=rows,
        )


def plan_scan(
    table: StoredTable,
    predicate: Predicate | None,
    engine: Engine,
    *,
    indexes: bool = True,
    budget: float | CallBudget | None = None,
    strict: bool = False,
) -> ScanPlan[BlockFrame]:
    """Decide what ``predicate`` has to read of ``table``.

    ``indexes=False`` reads everything, ``budget`` is how many seconds indexes may take, but for exact statistics, which
    are always asked: by default what the table says, or the process. ``strict`` raises what an index did wrong instead
    of going on without it. Raises StorageError if the table itself cannot be read.
    """
    started = perf_counter()
    if predicate is None or not indexes:
        return full_scan_plan(table, predicate, engine.context)
    switches = Switches.of(table.snapshot.properties)
    calls = budget_of(table.store.url, table.snapshot.properties, budget)
    probes = IndexSet(engine, switches.definitions(table.snapshot, engine), calls, switches).compile(predicate)
    while True:  # each time without an index more
        try:
            return _Planner(table, probes, PruningTrace(strict), calls, started).run(engine.context)
        except Contradiction as contradiction:
            doubted = sorted(contradiction.indexes)
            if strict:
                asked = (each for leaf_probes in probes.by_leaf.values() for each in leaf_probes.probes)
                kind = next(each.kind.name for each in asked if each.index == doubted[0])
                raise IndexFault(doubted[0], kind, Reason.CORRUPT, contradiction.detail) from None
            probes = probes.without(dict.fromkeys(doubted, Refusal(Reason.CORRUPT, contradiction.detail)))


def full_scan_plan(
    table: StoredTable, predicate: Predicate | None, context: Context, blocks: BlockFrame | None = None
) -> ScanPlan[BlockFrame]:
    """A plan that reads all of these blocks, by default those of the snapshot.

    They may be another snapshot's, and are read in the columns of this one.
    """
    blocks = table.blocks() if blocks is None else blocks
    zones, rows = leave_out_deleted(blocks, np.ones(len(blocks.zone_rows), np.bool_), {})
    always = np.full(len(zones), predicate is None)
    trace = PruningTrace()
    if predicate is not None:
        trace.note_disabled(predicate)
    told = explain_plan(table, len(table.segments()), blocks, zones, rows, trace.to_votes())
    explanation = replace(told, predicate=predicate)
    return ScanPlan(table, predicate, context, blocks, zones, always, rows, explanation)


@dataclass
class _Planner:
    table: StoredTable
    probes: PredicateProbes
    trace: PruningTrace
    budget: CallBudget
    started: float

    def run(self, context: Context) -> ScanPlan[BlockFrame]:
        segments = self.table.segments()
        tally = Tally.begin(self.probes, self.trace, len(segments))
        self._probe_metadata(LevelProbe.of_segments(self._probe_context(), segments), tally)
        living = np.flatnonzero(tally.combined().may_match)
        self.trace.stages.end("segments", self.table.store, segments_left(segments, living))

        blocks = self.table.blocks(living, self._columns())
        tally = tally.cut(np.repeat(living, segments.block_counts[living]), blocks.row_counts)
        self._probe_metadata(LevelProbe.of_blocks(self._probe_context(), blocks), tally)
        alive = np.flatnonzero(tally.combined().may_match)
        if len(alive) < len(blocks):
            blocks = blocks.take(alive)
        left = len(blocks), len(blocks.zone_rows), int(blocks.row_counts.sum())
        self.trace.stages.end("blocks", self.table.store, left)

        owners = np.repeat(np.arange(len(blocks)), np.diff(blocks.zone_offsets))
        tally = tally.cut(alive[owners], blocks.zone_rows)
        level = LevelProbe.of_zones(
            self._probe_context(),
            blocks,
            len(blocks) <= MAX_BLOCKS_WITH_ZONE_STATISTICS,
        )
        if level.has_zone_statistics:
            self._probe_metadata(level, tally)
            self.trace.stages.end("zones", self.table.store, level.count_left(tally.combined()))
        self._probe_payloads(level, tally)
        self.trace.stages.end("payloads", self.table.store, level.count_left(tally.combined()))
        return self._finish(context, blocks, tally.combined())

    def _probe_context(self) -> ProbeContext:
        return ProbeContext(self.table, self.probes, self.trace, self.budget)

    def _columns(self) -> set[int]:
        """Ids of the plain columns that the predicate names: their statistics are read along with the blocks."""
        schema = self.table.snapshot.schema
        terms = (term for subject in self.probes.by_leaf for term in leaf_terms(subject))
        return {schema.find(column.path).id for term in terms for column in columns_of(term)}

    def _probe_metadata(self, level: LevelProbe, tally: Tally) -> None:
        """All votes of one level that need no payload."""
        before = tally.combined()
        for leaf_probes in self.probes.by_leaf.values():
            for compiled, vote in level.probe_metadata(leaf_probes):
                tally.add(leaf_probes.leaf, compiled, vote)
                after = tally.combined()
                level.note_removed(leaf_probes.leaf, compiled, before, after)
                before = after
        tally.check_conjunctions()

    def _probe_payloads(self, level: LevelProbe, tally: Tally) -> None:
        """Votes that must read, the cheapest first."""
        pending = sorted(
            (
                (compiled, leaf_probes)
                for leaf_probes in self.probes.by_leaf.values()
                for compiled in leaf_probes.probes
                if compiled.probe.cost > 0
            ),
            key=lambda pair: pair[0].order,
        )
        still_to_ask = Counter(leaf_probes.leaf for _, leaf_probes in pending)
        best = tally.best_case(still_to_ask) if pending else tally.count
        for compiled, leaf_probes in pending:
            leaf, before = leaf_probes.leaf, tally.combined()
            blocks = level.blocks_of(before.may_match & ~best.ballot.may_match)
            vote = probe_payloads(level, leaf_probes, compiled, blocks) if len(blocks) else None
            if not len(blocks):
                self.trace.note_not_needed(leaf, compiled)
            elif vote is not None:
                tally.add(leaf, compiled, vote)
                level.note_removed(leaf, compiled, before, tally.combined())
            still_to_ask[leaf] -= 1
            if not still_to_ask[leaf]:
                best.update(leaf, tally.ballots[leaf])
        tally.check_conjunctions()

    def _finish(self, context: Context, blocks: BlockFrame, ballot: Ballot) -> ScanPlan[BlockFrame]:
        for zone, votes in ballot.rows.items():
            if len(votes) != (count := blocks.zone_rows[zone]):
                raise ValueError(f"{len(votes)} votes on rows of zone {zone}, which has {count}")
        matching = {zone: (votes & TRUE).view(np.bool_) for zone, votes in ballot.rows.items()}
        masks = {zone: rows for zone, rows in matching.items() if ballot.may_match[zone]}
        zones, rows = leave_out_deleted(blocks, ballot.may_match, masks)
        always = ballot.always_matches.copy()
        for zone, votes in ballot.rows.items():
            always[zone] = not np.any((votes & TRUE).view(np.bool_) & (votes != TRUE))
        if len(blocks):
            living = np.logical_or.reduceat(zones, blocks.zone_offsets[:-1])
            if not living.all():
                chosen = np.flatnonzero(living)
                kept = zones_of_blocks(blocks.zone_offsets, chosen)
                rows = {place: rows[zone] for place, zone in enumerate(kept.tolist()) if zone in rows}
                blocks, zones, always = blocks.take(chosen), zones[kept], always[kept]
        segments = len(np.unique(np.searchsorted(self.table.segments().block_offsets, blocks.ordinals, side="right")))
        self.trace.note_refusals(self.probes)
        explanation = replace(
            explain_plan(self.table, segments, blocks, zones, rows, self.trace.to_votes()),
            predicate=self.probes.predicate,
            seconds=perf_counter() - self.started,
            map=self.trace.block_map(self.table.segments().total_blocks, blocks, zones, rows),
            stages=Stages(self.trace.stages.ended),
        )
        tell_plan(self.table, explanation)
        return ScanPlan(self.table, self.probes.predicate, context, blocks, zones, always, rows, explanation)
