"""Which blocks and zones of a snapshot a predicate has to read, decided in stages: the cheap votes first.

1. segments, by the statistics and roll-ups in the segment list; 2. blocks of what is left, by statistics and
summaries; 3. their zones, by statistics; 4. payloads, cheapest probe first, and only for blocks on which the best
possible vote could still change something. Whatever an index cannot say leaves things as they were, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.traversal import columns_of, leaf_terms
from fuse_index.indexes.ballot import FALSE, TRUE, Ballot
from fuse_index.indexes.block_batch import Indices, zone_numbers
from fuse_index.indexes.definition import Definition, load
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context, Leaf, Predicate
from fuse_index.pruning.combine import decide, wishes
from fuse_index.pruning.compile import Panel, Question, Questions, Voter
from fuse_index.pruning.explanation import Explanation, Totals
from fuse_index.pruning.probe import Poll
from fuse_index.pruning.trace import Ledger
from fuse_storage import BlockFrame, StoredTable

ZONE_LIMIT = 20_000
"""Zone statistics are opened only when at most so many blocks are left: beyond, they cost more than they save."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """What to read of a snapshot, and what is left to filter.

    ``zones``, ``certain`` and the keys of ``rows`` number the zones of ``blocks``, block after block:
    ``blocks.zone_offsets`` says which are whose. ``certain`` zones need no residual filter; of a zone in ``rows``
    only the rows set in its mask may match.
    """

    table: StoredTable
    predicate: Predicate | None
    context: Context
    blocks: BlockFrame
    zones: Mask
    certain: Mask
    rows: Mapping[int, Mask]
    explanation: Explanation

    @property
    def block_mask(self) -> Mask:
        """Of all blocks of the snapshot, in their order: which are kept."""
        mask = np.zeros(self.table.segments().total_blocks, np.bool_)
        mask[self.blocks.ordinals] = True
        return mask

    @property
    def fully(self) -> Mask:
        """The blocks on which the predicate is true of every row."""
        zones = self.zones & self.certain
        for zone, rows in self.rows.items():
            zones[zone] &= bool(rows.all())
        return np.logical_and.reduceat(zones, self.blocks.zone_offsets[:-1]) if len(zones) else np.zeros(0, np.bool_)

    def take(self, chosen: Indices) -> Plan:
        """The same, of these blocks only; ``explanation`` stays that of the whole."""
        zones = zone_numbers(self.blocks.zone_offsets, chosen)
        rows = {place: self.rows[zone] for place, zone in enumerate(zones.tolist()) if zone in self.rows}
        return replace(
            self, blocks=self.blocks.take(chosen), zones=self.zones[zones], certain=self.certain[zones], rows=rows
        )


def plan(
    table: StoredTable,
    predicate: Predicate | None,
    host: Host,
    context: Context | None = None,
    *,
    indexes: bool = True,
    zones: bool = True,
    budget: float = 10.0,
    strict: bool = False,
    only: Sequence[Definition] | None = None,
) -> Plan:
    """Decide what ``predicate`` has to read of ``table``.

    ``indexes=False`` reads everything, ``zones=False`` stops at whole blocks, ``budget`` is the seconds that all
    indexes together may take, ``strict`` raises what an index did wrong instead of going on without it, ``only`` asks
    these indexes and no other. Raises StorageError if the table itself cannot be read.
    """
    context = context or Context()
    started = perf_counter()
    if predicate is None or not indexes:
        return unvoted(table, predicate, context)
    panel = Panel(
        host, load(table.snapshot, host, context) if only is None else only, context, budget, implicit=only is None
    )
    return _Planner(table, panel.about(predicate), Ledger(strict), started + budget, zones).run(context)


def unvoted(
    table: StoredTable, predicate: Predicate | None, context: Context, blocks: BlockFrame | None = None
) -> Plan:
    """Reads all of these blocks, by default of the whole snapshot; they may be another's, in the columns of this
    one.
    """
    blocks = table.blocks() if blocks is None else blocks
    zones = np.ones(len(blocks.zone_rows), np.bool_)
    ledger = Ledger()
    if predicate is not None:
        ledger.disabled(predicate)
    explanation = _explain(table, predicate, len(table.segments()), blocks, zones, {}, ledger, 0.0)
    return Plan(table, predicate, context, blocks, zones, zones if predicate is None else ~zones, {}, explanation)


@dataclass
class _Planner:
    table: StoredTable
    questions: Questions
    ledger: Ledger
    deadline: float
    with_zones: bool
    started: float = field(default_factory=perf_counter)

    def run(self, context: Context) -> Plan:
        segments = self.table.segments()
        ballots = self._free(
            Poll.of_segments(self._poll_basis(), segments), self._unknown(len(segments)), segments.block_counts
        )
        living = np.flatnonzero(self._decide(ballots).kept)

        blocks = self.table.blocks(living, self._columns())
        ballots = _take(ballots, np.repeat(living, segments.block_counts[living]))
        ballots = self._free(Poll.of_blocks(self._poll_basis(), blocks), ballots, np.ones(len(blocks), np.int64))
        alive = np.flatnonzero(self._decide(ballots).kept)
        if len(alive) < len(blocks):
            blocks = blocks.take(alive)

        owners = np.repeat(np.arange(len(blocks)), np.diff(blocks.zone_offsets))
        ballots = _take(ballots, alive[owners])
        poll = Poll.of_zones(self._poll_basis(), self.table, blocks, self.with_zones and len(blocks) <= ZONE_LIMIT)
        if poll.fine:
            ballots = self._free(poll, ballots, None)
        ballots = self._payloads(poll, ballots)
        return self._finish(context, blocks, ballots)

    def _poll_basis(self) -> tuple[StoredTable, Questions, Ledger, float]:
        return self.table, self.questions, self.ledger, self.deadline

    def _columns(self) -> set[int]:
        """Ids of the plain columns that the predicate names: their statistics are read along with the blocks."""
        schema = self.table.snapshot.schema
        named = (
            column for subject in self.questions.asked for term in leaf_terms(subject) for column in columns_of(term)
        )
        return {schema.find(column.path).id for column in named}

    def _unknown(self, units: int) -> dict[Leaf | Conjunction, Ballot]:
        return {subject: Ballot.unknown(units) for subject in self.questions.asked}

    def _decide(self, ballots: Mapping[Leaf | Conjunction, Ballot]) -> Ballot:
        return decide(self.questions.predicate, ballots, self.questions.boxes, self.questions.implied)

    def _free(
        self, poll: Poll, ballots: dict[Leaf | Conjunction, Ballot], weights: Indices | None
    ) -> dict[Leaf | Conjunction, Ballot]:
        """All votes of one level that need no payload."""
        count = poll.count if weights is None else _weigher(weights)
        before = self._decide(ballots).kept
        for question in self.questions.asked.values():
            for voter, vote in poll.free(question):
                ballots[question.leaf] = self.ledger.meet(question, voter, ballots[question.leaf], vote)
                after = self._decide(ballots).kept
                self.ledger.removed(question.leaf, voter, count(before & ~after, after))
                before = after
        return ballots

    def _payloads(self, poll: Poll, ballots: dict[Leaf | Conjunction, Ballot]) -> dict[Leaf | Conjunction, Ballot]:
        """Votes that must read, the cheapest first."""
        pending = sorted(
            (
                (voter, question)
                for question in self.questions.asked.values()
                for voter in question.voters
                if voter.probe.cost > 0
            ),
            key=lambda pair: pair[0].probe.cost,
        )
        while pending:
            before = self._decide(ballots).kept
            worth = before & ~self._hope(ballots, pending)
            voter, question = pending.pop(0)
            blocks = poll.blocks_of(worth)
            if not len(blocks):
                self.ledger.not_needed(question.leaf, voter)
                continue
            vote = poll.payload(question, voter, blocks)
            if vote is not None:
                ballots[question.leaf] = self.ledger.meet(question, voter, ballots[question.leaf], vote)
                after = self._decide(ballots).kept
                self.ledger.removed(question.leaf, voter, poll.count(before & ~after, after))
        return ballots

    def _hope(self, ballots: Mapping[Leaf | Conjunction, Ballot], pending: list[tuple[Voter, Question]]) -> Mask:
        """What would still be kept if every index yet to be asked gave the best answer."""
        wished = wishes(self.questions.predicate)
        hopes = {
            question.leaf: Ballot.constant(len(ballots[question.leaf]), wished.get(question.leaf, FALSE))  # type: ignore[arg-type]
            for _, question in pending
        }
        return self._decide({**ballots, **hopes}).kept

    def _finish(self, context: Context, blocks: BlockFrame, ballots: Mapping[Leaf | Conjunction, Ballot]) -> Plan:
        final = self._decide(ballots)
        if len(blocks):
            living = np.logical_or.reduceat(final.kept, blocks.zone_offsets[:-1])
            if not living.all():
                chosen = np.flatnonzero(living)
                final = final.take(zone_numbers(blocks.zone_offsets, chosen))
                blocks = blocks.take(chosen)
        rows = {zone: (votes & TRUE).view(np.bool_) for zone, votes in final.rows.items() if final.kept[zone]}
        certain = final.certain.copy()
        for zone, votes in final.rows.items():
            certain[zone] = not np.any((votes & TRUE).view(np.bool_) & (votes != TRUE))
        seconds = perf_counter() - self.started
        segments = len(np.unique(np.searchsorted(self.table.segments().block_offsets, blocks.ordinals, side="right")))
        self.ledger.unanswered(self.questions)
        explanation = _explain(
            self.table, self.questions.predicate, segments, blocks, final.kept, rows, self.ledger, seconds
        )
        return Plan(self.table, self.questions.predicate, context, blocks, final.kept, certain, rows, explanation)


def _take(ballots: Mapping[Leaf | Conjunction, Ballot], units: Indices) -> dict[Leaf | Conjunction, Ballot]:
    return {subject: ballot.take(units) for subject, ballot in ballots.items()}


def _weigher(weights: Indices) -> Callable[[Mask, Mask], dict[str, int]]:
    return lambda gone, left: {"blocks": int(weights[gone].sum())}


def _explain(
    table: StoredTable,
    predicate: Predicate | None,
    segments: int,
    blocks: BlockFrame,
    zones: Mask,
    rows: Mapping[int, Mask],
    ledger: Ledger,
    seconds: float,
) -> Explanation:
    listed = table.segments()
    zone_rows = np.where(zones, blocks.zone_rows, 0)
    for zone, mask in rows.items():
        zone_rows[zone] = np.count_nonzero(mask)
    return Explanation(
        snapshot=table.snapshot.id,
        predicate=predicate,
        segments=Totals(len(listed), segments),
        blocks=Totals(listed.total_blocks, len(blocks)),
        zones=Totals(int(listed.zone_counts.sum()), int(zones.sum())),
        rows=Totals(listed.total_rows, int(zone_rows.sum())),
        bytes=Totals(table.snapshot.bytes, int(blocks.sizes.sum())),
        votes=tuple(ledger.entries()),
        seconds=seconds,
    )
