"""What each index did for each leaf of one plan: kept while it is made, read by the explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fuse_index.display.block_map import BlockMap, map_blocks
from fuse_index.errors import IndexFault
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.predicate import Leaf, Opaque, Predicate
from fuse_index.pruning.account.stages import StageLog
from fuse_index.pruning.choose_leaves import MAX_ASKED_LEAVES, leaf_count
from fuse_index.pruning.compile import CompiledProbe, PredicateProbes
from fuse_index.pruning.explanation import Vote
from fuse_index.pruning.nulls import decided_by_engine
from fuse_index.reasons import FAULTS, Reason
from fuse_storage import BlockFrame

_MAX_TAKER = 200
"""Characters by which the map of blocks says what took them out."""

ENGINE_INDEX_NAME = "null_counts"
_OF_SOME_BLOCKS = (Reason.NOT_NEEDED, Reason.USED_NO_GAIN)
_ALWAYS_TOLD = FAULTS | {Reason.DISABLED}
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
    unasked: str = ""
    touched: list[tuple[TraceEntry, npt.NDArray[np.int64]]] = field(default_factory=list)
    added: frozenset[Leaf] = frozenset()
    stages: StageLog = field(default_factory=StageLog)

    def _entry(self, leaf: Leaf | Conjunction, index: str, kind: str) -> TraceEntry:
        return self.trace_entries.setdefault((leaf, index), TraceEntry(leaf, index, kind))

    def _entry_of(self, leaf: Leaf | Conjunction, compiled: CompiledProbe | None) -> TraceEntry:
        return (
            self._entry(leaf, ENGINE_INDEX_NAME, "engine")
            if compiled is None
            else self._entry(leaf, compiled.index, compiled.kind.name)
        )

    def add_removed(
        self,
        leaf: Leaf | Conjunction,
        compiled: CompiledProbe | None,
        counts: Mapping[str, int],
        touched: npt.NDArray[np.int64],
    ) -> None:
        """Add what a vote removed. ``touched``: blocks of which it removed all or a part, int64, shape (k,)."""
        entry = self._entry_of(leaf, compiled)
        entry.voted = True
        self.stages.votes += 1
        for what, count in counts.items():
            entry.removed_counts[what] = entry.removed_counts.get(what, 0) + count
        if len(touched):
            self.touched.append((entry, touched))

    def note(self, leaf: Leaf | Conjunction, compiled: CompiledProbe | None, reason: Reason, detail: str) -> None:
        if self.strict and compiled is not None and reason in FAULTS:
            raise IndexFault(compiled.index, compiled.kind.name, reason, detail)
        entry = self._entry_of(leaf, compiled)
        entry.reason, entry.detail = reason, detail

    def add_detail(self, leaf: Leaf | Conjunction, compiled: CompiledProbe, detail: str) -> None:
        """Add to the reason that was noted last."""
        entry = self._entry_of(leaf, compiled)
        entry.detail = f"{entry.detail}; {detail}"

    def note_not_needed(self, leaf: Leaf | Conjunction, compiled: CompiledProbe) -> None:
        entry = self._entry_of(leaf, compiled)
        if entry.reason is None:
            entry.reason, entry.detail = Reason.NOT_NEEDED, "no vote on it could have skipped more"

    def note_failure(self, leaf: Leaf | Conjunction, compiled: CompiledProbe, failure: PluginFailure) -> None:
        """An index that raised, hung or answered nonsense: noted, or raised in strict mode."""
        if self.strict:
            raise IndexFault(compiled.index, compiled.kind.name, failure.reason, failure.detail) from failure.error
        self.note(leaf, compiled, failure.reason, failure.detail)

    def is_damaged(self, leaf: Leaf | Conjunction, compiled: CompiledProbe) -> bool:
        return self._entry_of(leaf, compiled).reason in (Reason.CORRUPT, Reason.PAYLOAD_MISSING)

    def note_disabled(self, predicate: Predicate) -> None:
        for leaf in predicate_leaves(predicate):
            entry = self._entry(leaf, "", "")
            entry.reason, entry.detail = Reason.DISABLED, "indexes were switched off for this query"

    def note_refusals(self, probes: PredicateProbes) -> None:
        """A line for each refusal, and one for each leaf that nobody could be asked about."""
        if not probes.is_whole:
            count, bound = leaf_count(probes.predicate), MAX_ASKED_LEAVES
            self.unasked = f"of {count:,} terms, more than {bound} are asked about together if they are on one column"
        asked = set(predicate_leaves(probes.predicate))
        self.added = frozenset(leaf for more in probes.implied.values() for leaf in more if leaf not in asked)
        mentioned = {about for about, _ in self.trace_entries}
        for leaf_probes in probes.by_leaf.values():
            explained = leaf_probes.leaf in mentioned or bool(leaf_probes.probes)
            for index_refusal in leaf_probes.refusals:
                # a kind that is asked about every column need not apologise where another index speaks
                refusal = index_refusal.refusal
                if self.strict and refusal.reason in FAULTS:
                    raise IndexFault(index_refusal.index, index_refusal.kind, refusal.reason, refusal.detail)
                fault = refusal.reason in _ALWAYS_TOLD
                if index_refusal.index != index_refusal.kind or fault or not explained:
                    entry = self._entry(leaf_probes.leaf, index_refusal.index, index_refusal.kind)
                    entry.reason, entry.detail = refusal.reason, refusal.detail
                    explained = True
            if not explained and not isinstance(leaf_probes.leaf, Conjunction):
                entry = self._entry(leaf_probes.leaf, "", "")
                entry.reason, entry.detail = _no_index_reason(leaf_probes.leaf)

    def to_votes(self) -> Iterator[Vote]:
        if self.unasked:
            yield Vote("(all other terms)", "", "", Reason.TOO_MANY_TERMS, self.unasked)
        for entry in self.trace_entries.values():
            gain = any(entry.removed_counts.values())
            reason = entry.reason if entry.reason and not (gain and entry.reason in _OF_SOME_BLOCKS) else None
            plain = Reason.USED if gain else Reason.USED_NO_GAIN
            yield Vote(
                leaf=predicate_sql(entry.leaf),
                index=entry.index,
                kind=entry.kind,
                reason=reason or plain,
                detail=entry.detail if reason else "",
                blocks_removed=entry.removed_counts.get("blocks", 0),
                zones_removed=entry.removed_counts.get("zones", 0),
                rows_removed=entry.removed_counts.get("rows", 0),
                added=entry.leaf in self.added,
            )

    def block_map(
        self, total: int, blocks: BlockFrame, zones: npt.NDArray[np.bool_], rows: Mapping[int, npt.NDArray[np.bool_]]
    ) -> BlockMap:
        """Tell what became of each of ``total`` blocks, of which these are left.

        ``zones``: bool, one per zone of ``blocks``, True where it is read. ``rows``: by zone, bool, one per row.
        """
        part = np.zeros(len(blocks), np.bool_)
        if len(blocks):
            part = ~np.logical_and.reduceat(zones, blocks.zone_offsets[:-1])
        part[np.searchsorted(blocks.zone_offsets, list(rows), side="right") - 1] = True
        touched = [(_taker(entry), numbers) for entry, numbers in self.touched]
        return map_blocks(total, touched, blocks.ordinals, part)


def _taker(entry: TraceEntry) -> str:
    return f"{entry.index}: {predicate_sql(entry.leaf)}"[:_MAX_TAKER]


def _no_index_reason(leaf: Leaf) -> tuple[Reason, str]:
    if isinstance(leaf, Opaque):
        known = leaf.reason in Reason.__members__
        return (Reason(leaf.reason), leaf.hint) if known else (Reason.LEAF_UNSUPPORTED, leaf.reason)
    if decided_by_engine(leaf):
        return Reason.USED_NO_GAIN, ""
    return Reason.NO_INDEX, "no index is on these columns"
