"""What each index did for each leaf of one plan: kept while it is made, read by the explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from fuse_index.errors import IndexFault
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.indexes.ballot import UNKNOWN, Ballot
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.predicate import Leaf, Opaque, Predicate
from fuse_index.pruning.compile import CompiledProbe, LeafProbes, PredicateProbes
from fuse_index.pruning.explanation import Vote
from fuse_index.pruning.nulls import decided_by_engine
from fuse_index.reasons import Reason

ENGINE_INDEX_NAME = "null_counts"
"""The name under which the engine's own votes stand: they come from the null counts of every block."""


@dataclass
class TraceEntry:
    """One index on one leaf."""

    leaf: Leaf | Conjunction
    index: str
    kind: str
    voted: bool = False
    removed_counts: dict[str, int] = field(default_factory=dict)
    reason: Reason | None = None
    detail: str = ""


@dataclass
class PruningTrace:
    strict: bool = False
    trace_entries: dict[tuple[Leaf | Conjunction, str], TraceEntry] = field(default_factory=dict)

    def _entry(self, leaf: Leaf | Conjunction, index: str, kind: str) -> TraceEntry:
        return self.trace_entries.setdefault((leaf, index), TraceEntry(leaf, index, kind))

    def _entry_of(self, leaf: Leaf | Conjunction, voter: CompiledProbe | None) -> TraceEntry:
        return (
            self._entry(leaf, ENGINE_INDEX_NAME, "engine")
            if voter is None
            else self._entry(leaf, voter.index, voter.kind.name)
        )

    def add_removed(self, leaf: Leaf | Conjunction, voter: CompiledProbe | None, counts: Mapping[str, int]) -> None:
        line = self._entry_of(leaf, voter)
        line.voted = True
        for what, count in counts.items():
            line.removed_counts[what] = line.removed_counts.get(what, 0) + count

    def note(self, leaf: Leaf | Conjunction, voter: CompiledProbe | None, reason: Reason, detail: str) -> None:
        line = self._entry_of(leaf, voter)
        line.reason, line.detail = reason, detail

    def note_not_needed(self, leaf: Leaf | Conjunction, voter: CompiledProbe) -> None:
        line = self._entry_of(leaf, voter)
        if line.reason is None:
            line.reason, line.detail = Reason.NOT_NEEDED, "no vote on it could have skipped more"

    def note_failure(self, leaf: Leaf | Conjunction, voter: CompiledProbe, failure: PluginFailure) -> None:
        """An index that raised, hung or answered nonsense: noted, or raised in strict mode."""
        if self.strict:
            raise IndexFault(voter.index, voter.kind.name, failure.reason, failure.detail) from failure.error
        self.note(leaf, voter, failure.reason, failure.detail)

    def is_damaged(self, leaf: Leaf | Conjunction, voter: CompiledProbe) -> bool:
        return self._entry_of(leaf, voter).reason in (Reason.CORRUPT, Reason.PAYLOAD_MISSING)

    def intersect(self, question: LeafProbes, voter: CompiledProbe | None, known: Ballot, vote: Ballot) -> Ballot:
        """Both opinions together. Where they leave no outcome, one of them is wrong: then nothing is known there."""
        met = known.intersect(vote)
        wrong = np.flatnonzero(met.bits == 0)
        if not len(wrong):
            return met
        names = sorted({voter.index if voter else ENGINE_INDEX_NAME, *self._voted(question.leaf)})
        detail = f"contradicting votes of {', '.join(names)} on {len(wrong)} units: verify these indexes"
        if self.strict:
            raise IndexFault(names[0], names[-1], Reason.CORRUPT, detail)
        for index in names:
            line = self.trace_entries.get((question.leaf, index))
            if line is not None:
                line.reason, line.detail = Reason.CORRUPT, detail
        self.note(question.leaf, voter, Reason.CORRUPT, detail)
        bits = met.bits.copy()
        bits[wrong] = UNKNOWN
        return Ballot(bits, {unit: rows for unit, rows in met.rows.items() if bits[unit] != UNKNOWN})

    def _voted(self, leaf: Leaf | Conjunction) -> Iterator[str]:
        return (line.index for (about, _), line in self.trace_entries.items() if about == leaf and line.voted)

    def note_disabled(self, predicate: Predicate) -> None:
        for leaf in predicate_leaves(predicate):
            line = self._entry(leaf, "", "")
            line.reason, line.detail = Reason.DISABLED, "indexes were switched off for this query"

    def note_refusals(self, questions: PredicateProbes) -> None:
        """A line for each refusal, and one for each leaf that nobody could be asked about."""
        for question in questions.by_leaf.values():
            helped = any(about == question.leaf for about, _ in self.trace_entries) or bool(question.probes)
            for silence in question.refusals:
                # a kind that is asked about every column need not apologise where another index speaks
                if silence.index != silence.kind or not helped:
                    line = self._entry(question.leaf, silence.index, silence.kind)
                    line.reason, line.detail = silence.refusal.reason, silence.refusal.detail
                    helped = True
            if not helped and not isinstance(question.leaf, Conjunction):
                line = self._entry(question.leaf, "", "")
                line.reason, line.detail = _no_index_reason(question.leaf)

    def to_votes(self) -> Iterator[Vote]:
        for line in self.trace_entries.values():
            gain = any(line.removed_counts.values())
            reason = line.reason if line.reason and not (gain and line.reason is Reason.NOT_NEEDED) else None
            plain = Reason.USED if gain else Reason.USED_NO_GAIN
            yield Vote(
                leaf=predicate_sql(line.leaf),
                index=line.index,
                kind=line.kind,
                reason=reason or plain,
                detail=line.detail if reason else "",
                blocks_removed=line.removed_counts.get("blocks", 0),
                zones_removed=line.removed_counts.get("zones", 0),
            )


def _no_index_reason(leaf: Leaf) -> tuple[Reason, str]:
    if isinstance(leaf, Opaque):
        known = leaf.reason in Reason.__members__
        return (Reason(leaf.reason), "") if known else (Reason.LEAF_UNSUPPORTED, leaf.reason)
    if decided_by_engine(leaf):
        return Reason.USED_NO_GAIN, ""
    return Reason.NO_INDEX, "no index is on these columns"
