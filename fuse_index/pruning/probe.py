"""Asking voters about the units of one level, and making their ballots whole.

Sits between the planner, which decides in which order things are asked, and the kinds, which judge one leaf on rows
without NULLs. Every answer is checked for its form; whatever is wrong with it is noted and counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.evaluate import evaluate_constant
from fuse_index.expressions.traversal import leaf_terms
from fuse_index.indexes.ballot import FALSE, NULL, TRUE, UNKNOWN, Ballot
from fuse_index.indexes.block_batch import Batch, Indices, zone_numbers
from fuse_index.indexes.interface import Input, RollsUp, Votes
from fuse_index.indexes.sandbox import Failure, ask
from fuse_index.predicate import Cast, Column, In, JsonPath, Leaf, Opaque, Term
from fuse_index.pruning.combine import Nulls, has_null, is_null_test, null_test, outcomes_on_null, settle
from fuse_index.pruning.compile import Question, Questions, Voter, decided_by_engine
from fuse_index.pruning.trace import Ledger
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, ColumnStatistics, SegmentFrame, SidecarRows, StoredTable, UnitFrame

Mask = npt.NDArray[np.bool_]
Basis = tuple[StoredTable, Questions, Ledger, float]


@dataclass
class Poll:
    """The units of one level. At the zone level ``blocks`` owns them, and ``units`` may be missing: then the null
    counts of the blocks stand for those of their zones.
    """

    basis: Basis
    level: str
    row_counts: npt.NDArray[np.int64]
    units: UnitFrame | None
    segments: SegmentFrame | None = None
    blocks: BlockFrame | None = None

    @classmethod
    def of_segments(cls, basis: Basis, segments: SegmentFrame) -> Poll:
        return cls(basis, "segment", segments.row_counts, segments, segments=segments)

    @classmethod
    def of_blocks(cls, basis: Basis, blocks: BlockFrame) -> Poll:
        return cls(basis, "block", blocks.row_counts, blocks, blocks=blocks)

    @classmethod
    def of_zones(cls, basis: Basis, table: StoredTable, blocks: BlockFrame, fine: bool) -> Poll:
        return cls(
            basis, "zone", blocks.zone_rows, table.zones(blocks) if fine and len(blocks) else None, blocks=blocks
        )

    @property
    def fine(self) -> bool:
        return self.units is not None

    # --- free votes -------------------------------------------------------------------------------------------

    def free(self, question: Question) -> Iterator[tuple[Voter | None, Ballot]]:
        """Votes of this level that cost no read of a payload."""
        if not len(self.row_counts):
            return
        if not isinstance(question.leaf, Conjunction) and (own := self._own(question.leaf)) is not None:
            yield None, own
        for voter in question.voters:
            found = self._free_batch(question, voter)
            if found is not None and (ballot := self._ask(question, voter, found[0])) is not None:
                whole = self._settle(question.leaf, voter, ballot, self._nulls(voter.inputs))
                yield voter, whole if found[1] is None else _unknown_where(whole, ~found[1])

    def _free_batch(self, question: Question, voter: Voter) -> tuple[Batch, Mask | None] | None:
        """What this voter can be shown at this level, and of which units it knows anything (None: of all)."""
        fields = self._fields(voter.inputs)
        if voter.definition is None:
            return None if self.units is None else (Batch.whole(self.units, fields), None)
        if self.segments is not None and isinstance(voter.kind, RollsUp):
            summaries = self.segments.roll_ups(voter.definition.key)
            return None if summaries is None else (Batch.whole(self.segments, fields, summaries), _valid(summaries))
        if self.level == "block" and voter.probe.cost == 0 and self.blocks is not None:
            sidecars = self._sidecars(voter)
            if sidecars is None:
                self._note_nothing(question, voter)
                return None
            usable = self._usable(question, voter, sidecars, np.arange(len(self.blocks)))
            return Batch.whole(self.blocks, fields, sidecars.summaries), usable
        return None

    def _own(self, leaf: Leaf) -> Ballot | None:
        """Null tests, comparisons with NULL and constants need no index."""
        if isinstance(leaf, Opaque) or not decided_by_engine(leaf):
            return None
        units = len(self.row_counts)
        if is_null_test(leaf):
            statistics = self._statistics(leaf_terms(leaf)[0])
            return null_test(None if statistics is None else _counts(statistics.null_count), self.row_counts)
        if not leaf_terms(leaf):
            outcome = evaluate_constant(leaf)
            return Ballot.constant(units, NULL if outcome is None else TRUE if outcome else FALSE)
        return Ballot.constant(units, NULL if not isinstance(leaf, In) or has_null(leaf) else FALSE | NULL)

    # --- payload votes ----------------------------------------------------------------------------------------

    def blocks_of(self, zones: npt.NDArray[np.bool_]) -> Indices:
        """The blocks that own any of these zones."""
        assert self.blocks is not None
        return (
            np.flatnonzero(np.add.reduceat(zones, self.blocks.zone_offsets[:-1]))
            if len(zones)
            else np.zeros(0, np.int64)
        )

    def payload(self, question: Question, voter: Voter, chosen: Indices) -> Ballot | None:
        """A vote on the zones of the chosen blocks; on all others nothing is known. None: no vote at all."""
        assert self.blocks is not None
        sidecars = self._sidecars(voter)
        if sidecars is None:
            self._note_nothing(question, voter)
            return None
        usable = self._usable(question, voter, sidecars, chosen)
        chosen = chosen[usable[chosen]]
        if not len(chosen):
            return None
        zones = (self.blocks.zone_offsets, self.blocks.zone_rows)
        batch = Batch.indexed(self.blocks, self._fields(voter.inputs), zones, sidecars, chosen)
        parts = list(self._in_parts(question, voter, batch, sidecars, chosen))
        if not parts:
            return None
        bits = np.full(len(self.row_counts), UNKNOWN, np.uint8)
        rows = {}
        for part, ballot in parts:
            numbers = zone_numbers(self.blocks.zone_offsets, part)
            if len(ballot) != len(numbers):
                ballot = ballot.take(np.repeat(np.arange(len(part)), np.diff(self.blocks.zone_offsets)[part]))
            whole = self._settle(question.leaf, voter, ballot, self._nulls(voter.inputs).take(numbers))
            bits[numbers] = whole.bits
            rows.update({int(numbers[zone]): votes for zone, votes in whole.rows.items()})
        return Ballot(bits, rows)

    def _in_parts(
        self, question: Question, voter: Voter, batch: Batch, sidecars: SidecarRows, chosen: Indices
    ) -> Iterator[tuple[Indices, Ballot]]:
        """One vote on all; if bytes turn out bad, one for each pack, so that one bad pack does not silence the
        others.
        """
        packs = batch.packs()
        if (ballot := self._ask(question, voter, batch)) is not None:
            yield chosen, ballot
        elif len(packs) > 1 and self.basis[2].damaged(question.leaf, voter):
            for _, members in packs:
                part = chosen[members]
                assert self.blocks is not None
                zones = (self.blocks.zone_offsets, self.blocks.zone_rows)
                smaller = Batch.indexed(self.blocks, batch.fields, zones, sidecars, part)
                if (ballot := self._ask(question, voter, smaller)) is not None:
                    yield part, ballot

    def _usable(self, question: Question, voter: Voter, sidecars: SidecarRows, chosen: Indices) -> Mask:
        """The blocks with a sidecar that the kind can read; what stands in the way on the others is noted."""
        known = sidecars.indexed & np.isin(sidecars.versions, list(voter.kind.reads))
        usable: Mask = known & holds_something(sidecars)
        ledger, wanted = self.basis[2], len(chosen)
        if sidecars.error:
            ledger.note(question.leaf, voter, Reason.CORRUPT, sidecars.error)
        newer = int((sidecars.indexed & ~known)[chosen].sum())
        absent = int((~sidecars.indexed | (known & ~usable))[chosen].sum())
        if newer:
            detail = f"{newer} of {wanted} blocks have a payload version that this code cannot read"
            ledger.note(question.leaf, voter, Reason.PAYLOAD_TOO_NEW, detail)
        if absent:
            detail = f"{absent} of {wanted} blocks are not indexed: refresh the index"
            ledger.note(question.leaf, voter, Reason.BLOCK_NOT_INDEXED, detail)
        return usable

    def _note_nothing(self, question: Question, voter: Voter) -> None:
        self.basis[2].note(question.leaf, voter, Reason.BLOCK_NOT_INDEXED, "no block is indexed: refresh the index")

    # --- asking and settling ----------------------------------------------------------------------------------

    def _ask(self, question: Question, voter: Voter, batch: Batch) -> Ballot | None:
        ledger, deadline = self.basis[2], self.basis[3]
        kind = voter.kind
        assert isinstance(kind, Votes)
        answer = ask(lambda: kind.probe(voter.probe, batch), deadline - perf_counter())
        problem = answer if isinstance(answer, Failure) else malformed(answer, batch)
        if problem is not None:
            ledger.failed(question.leaf, voter, problem)
            return None
        assert isinstance(answer, Ballot)
        return answer

    def _settle(self, leaf: Leaf | Conjunction, voter: Voter, ballot: Ballot, nulls: Nulls) -> Ballot:
        return settled(leaf, voter, ballot, nulls, self.basis[1].strict_functions)

    def _nulls(self, inputs: tuple[Input, ...]) -> Nulls:
        nulls = Nulls(np.zeros(len(self.row_counts), np.bool_), np.zeros(len(self.row_counts), np.bool_))
        for given in inputs:
            statistics = self._statistics(given.term)
            counts = None if statistics is None else _counts(statistics.null_count)
            if counts is None:
                nulls = Nulls(np.ones_like(nulls.possible), nulls.everywhere)
            else:
                rows = self._unit_rows()
                possible, everywhere = ~(counts == 0), counts == rows
                nulls = Nulls(nulls.possible | self._spread(possible), nulls.everywhere | self._spread(everywhere))
        return nulls

    def _unit_rows(self) -> npt.NDArray[np.int64]:
        return self.row_counts if self.units is not None or self.blocks is None else self.blocks.row_counts

    def _spread(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """From blocks to their zones, where there are no statistics of zones."""
        return (
            mask
            if self.units is not None or self.blocks is None
            else np.repeat(mask, np.diff(self.blocks.zone_offsets))
        )

    def _statistics(self, term: Term) -> ColumnStatistics | None:
        field = self._fields((Input(term, term.type),))[0]
        units = self.units if self.units is not None else self.blocks
        return None if field is None or units is None else units.statistics(field)

    def _fields(self, inputs: tuple[Input, ...]) -> tuple[int | None, ...]:
        schema = self.basis[0].snapshot.schema
        return tuple(schema.find(given.term.path).id if isinstance(given.term, Column) else None for given in inputs)

    def _sidecars(self, voter: Voter) -> SidecarRows | None:
        assert self.blocks is not None
        assert voter.definition is not None
        return self.blocks.sidecars(voter.definition.key)

    def count(self, gone: npt.NDArray[np.bool_], left: npt.NDArray[np.bool_]) -> dict[str, int]:
        """How many zones, and whole blocks, a vote removed."""
        assert self.blocks is not None
        if not len(gone):
            return {}
        starts = self.blocks.zone_offsets[:-1]
        had = np.add.reduceat(gone | left, starts) > 0
        has = np.add.reduceat(left, starts) > 0
        return {"zones": int(gone.sum()), "blocks": int((had & ~has).sum())}


def settled(
    leaf: Leaf | Conjunction, voter: Voter, ballot: Ballot, nulls: Nulls, strict_functions: frozenset[str]
) -> Ballot:
    """What a voter said of a leaf, with the outcomes that NULLs in its inputs add; the one place where that is done."""
    terms = set(leaf_terms(leaf))
    judged = UNKNOWN if voter.exact or voter.probe.judges_null else TRUE | FALSE
    spread = all(reached(given.term, terms) for given in voter.inputs)
    on_null = outcomes_on_null(leaf, strict_functions) if spread else UNKNOWN
    return settle(ballot, leaf, nulls, judged, on_null)


def reached(given: Term, terms: set[Term]) -> bool:
    """Whether a NULL in this input makes the whole leaf see NULL: the leaf is on it, or on a cast or path of it."""
    for term in terms:
        inner: Term = term
        while inner != given and isinstance(inner, Cast | JsonPath):
            inner = inner.term
        if inner == given:
            return True
    return False


def _counts(array: pa.Array) -> npt.NDArray[np.float64]:
    counts: npt.NDArray[np.float64] = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return counts


def _valid(values: pa.Array) -> Mask:
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def holds_something(sidecars: SidecarRows) -> Mask:
    """The blocks of which a summary is kept, or a payload where a kind has no summaries."""
    summaries = sidecars.summaries
    return sidecars.spans[1] > 0 if pa.types.is_null(summaries.type) else _valid(summaries)


def _unknown_where(ballot: Ballot, mask: npt.NDArray[np.bool_]) -> Ballot:
    bits = np.where(mask, np.uint8(UNKNOWN), ballot.bits).astype(np.uint8)
    return Ballot(bits, {unit: rows for unit, rows in ballot.rows.items() if not mask[unit]})


def malformed(answer: object, batch: Batch) -> Failure | None:
    if not isinstance(answer, Ballot) or answer.bits.dtype != np.uint8 or answer.bits.ndim != 1:
        return Failure(Reason.PLUGIN_ERROR, f"probe() gave {type(answer).__name__}, not a Ballot of uint8 bits")
    if len(answer) not in (len(batch), len(batch.zone_rows)):
        return Failure(
            Reason.PLUGIN_ERROR,
            f"probe() gave {len(answer)} votes for {len(batch)} units with {len(batch.zone_rows)} zones",
        )
    for unit, rows in answer.rows.items():
        expected = batch.zone_rows[unit] if len(answer) == len(batch.zone_rows) else batch.row_counts[unit]
        if not 0 <= unit < len(answer) or len(rows) != expected:
            return Failure(
                Reason.PLUGIN_ERROR, f"probe() gave {len(rows)} row votes for unit {unit}, which has {expected} rows"
            )
    return None
