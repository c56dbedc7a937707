"""Who can give the state of a block without reading its rows: its statistics, or an index that keeps states.

Sits below ``answer``, which decides whom to ask about which blocks. Whatever goes wrong here leaves a block to be
scanned, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.aggregates.state import Aggregation, Part, canonical_floats, merge_states, sketch_damage
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import conjoin, conjuncts, references, substitute
from fuse_index.indexes.block_batch import FrameBatch, UnitIndices, ZoneMap
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.interface import Answers, IndexKind, Probe, Refusal
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Column, Context, Literal, Predicate, Term
from fuse_index.query.group_keys import GroupKeys, is_implied_by
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, process_cache

MAX_STATES_PER_CALL = 64
"""States that are read between two looks at the clock."""

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SourceResult:
    """``states`` are those of the blocks at ``blocks``, merged; ``problem`` is why it is not more."""

    blocks: UnitIndices
    states: pa.Table
    problem: Refusal | None = None


class AggregateSource(Protocol):
    """One that may have states. ``decided``: what of the condition, as conjuncts, it sees to itself."""

    @property
    def index(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def decided_conjuncts(self) -> tuple[Predicate, ...]: ...

    def read_states(self, blocks: BlockFrame, chosen: UnitIndices, seconds: float) -> SourceResult:
        """The states of as many of the chosen blocks as it has; all their rows are wanted, as far as that is not
        ``decided``.
        """
        ...


@dataclass(frozen=True)
class StatisticsSource:
    """Counts and bounds of whole blocks, which are known of every block."""

    request: Aggregation
    index: str = "statistics"
    kind: str = "engine"
    decided_conjuncts: tuple[Predicate, ...] = ()

    @staticmethod
    def for_request(request: Aggregation) -> StatisticsSource | None:
        """None if they cannot have what is asked for."""
        known = all(
            part.function in ("count", "min", "max") and isinstance(part.argument, Column | Literal)
            for part in request.parts
        )
        return StatisticsSource(request) if known and request.parts and not request.groups else None

    def read_states(self, blocks: BlockFrame, chosen: UnitIndices, seconds: float) -> SourceResult:
        taken = blocks.take(chosen)
        columns = [_statistics_values(part, taken) for part in self.request.parts]
        whole = np.logical_and.reduce([known for _, known in columns])
        held = pa.table([values for values, _ in columns], schema=self.request.schema).filter(pa.array(whole))
        cut = (
            None
            if whole.all()
            else Refusal(Reason.TRUNCATED_STATS, f"bounds of {int((~whole).sum())} blocks are cut, or not known")
        )
        return SourceResult(chosen[whole], merge_states(self.request, [held]), cut)


def _statistics_values(part: Part, blocks: BlockFrame) -> tuple[pa.Array, _Mask]:
    """The part of each block, and of which blocks it is sure."""
    rows = blocks.row_counts
    if isinstance(part.argument, Literal):
        return pa.array(rows if part.argument.value is not None else rows * 0, pa.int64()), np.ones(len(rows), np.bool_)
    assert isinstance(part.argument, Column)
    statistics = blocks.statistics(blocks.segments.snapshot.schema.find(part.argument.path).id)
    if statistics is None:
        return pa.nulls(len(rows), part.type), np.zeros(len(rows), np.bool_)
    nulls = np.asarray(pc.fill_null(statistics.null_count, -1))
    if part.function == "count":
        return pa.array(rows - nulls, pa.int64()), nulls >= 0
    bound, cut = (
        (statistics.min, statistics.min_cut) if part.function == "min" else (statistics.max, statistics.max_cut)
    )
    sure = (np.asarray(bound.is_valid()) & ~np.asarray(cut)) | (nulls == rows)
    if is_.is_floating(part.type):  # of a zero, the sign is not kept
        sure &= ~np.asarray(pc.fill_null(pc.equal(bound, pa.scalar(0.0, part.type)), False))
    return bound, sure


@dataclass(frozen=True)
class IndexSource:
    """An index that keeps states. It is asked for ``wider``, which is grouped also by what ``on_groups`` looks at."""

    request: Aggregation
    definition: IndexDefinition
    index_kind: IndexKind
    wider_request: Aggregation
    probe: Probe[Any]
    group_condition: Predicate | None
    implied: tuple[Predicate, ...] = ()
    """Conjuncts that are TRUE on every row that the index has seen."""

    @property
    def decided_conjuncts(self) -> tuple[Predicate, ...]:
        return (*conjuncts(self.group_condition), *self.implied)

    @property
    def index(self) -> str:
        return self.definition.name

    @property
    def kind(self) -> str:
        return self.index_kind.name

    @staticmethod
    def for_request(
        request: Aggregation,
        predicate: Predicate | None,
        definition: IndexDefinition,
        kind: IndexKind,
        context: Context,
        seconds: float,
    ) -> IndexSource | Refusal:
        """The index as one to be asked for this, or why it cannot be."""
        if not isinstance(kind, Answers):
            return Refusal(Reason.LEAF_UNSUPPORTED, f"index kind {kind.name!r} does not answer aggregates")
        asked_for = conjuncts(predicate)
        if any(part not in asked_for for part in conjuncts(definition.where)):
            return Refusal(Reason.LEAF_UNSUPPORTED, (f"it is only on rows where {predicate_sql(definition.where)}"))  # type: ignore[arg-type]
        implied = tuple(part for part in asked_for if is_implied_by(part, conjuncts(definition.where)))
        keys = GroupKeys(tuple(given.term for given in definition.inputs if not given.function), context)
        on_groups = conjoin([part for part in asked_for if part not in implied and keys.can_decide(part)])
        groups = [
            group for group in request.groups if group in keys.terms or not keys.can_derive(group)
        ]  # of what is unknown, the kind says so
        made = keys.rewrite((*(group for group in request.groups if group not in groups), *conjuncts(on_groups)))
        further = [key for key in keys.terms if key not in groups and references(made, key)]
        wider = Aggregation((*groups, *further), request.aggregates)
        probe = sandboxed_call(lambda: kind.match(wider, definition.inputs, definition.options, context), seconds)
        match probe:
            case Probe():
                return IndexSource(request, definition, kind, wider, probe, on_groups, implied)
            case Refusal():
                return probe
            case PluginFailure(reason, detail):
                return Refusal(reason, detail)
            case _:
                return Refusal(Reason.PLUGIN_ERROR, f"match() gave {type(probe).__name__}, not a Probe or a Refusal")

    def read_states(self, blocks: BlockFrame, chosen: UnitIndices, seconds: float) -> SourceResult:
        name = (
            "states",
            blocks.segments.store.url,
            blocks.segments.snapshot.id,
            self.definition.key,
            self.wider_request,
            chosen.tobytes(),
        )
        if (kept := process_cache.find(name)) is not None:
            return kept  # type: ignore[no-any-return]
        found = self._read_uncached(blocks, chosen, seconds)
        if found.problem is None:
            process_cache.put(name, found, found.states.nbytes + chosen.nbytes + 1000)
        return found

    def _read_uncached(self, blocks: BlockFrame, chosen: UnitIndices, seconds: float) -> SourceResult:
        sidecars = blocks.sidecars(self.definition.key)
        if sidecars is None:
            nothing = Refusal(Reason.BLOCK_NOT_INDEXED, "no block is indexed: refresh the index")
            return SourceResult(chosen[:0], self.wider_request.schema.empty_table(), nothing)
        usable = chosen[(sidecars.indexed & np.isin(sidecars.versions, list(self.index_kind.reads)))[chosen]]
        problem: Refusal | None = None
        if len(usable) < len(chosen):
            absent = f"{len(chosen) - len(usable)} of {len(chosen)} blocks are not indexed: refresh the index"
            problem = Refusal(Reason.BLOCK_NOT_INDEXED, absent)
        if sidecars.error:
            problem = Refusal(Reason.CORRUPT, sidecars.error)
        fields: list[int | None] = [None] * len(self.definition.inputs)
        batch = FrameBatch.from_sidecars(blocks, fields, ZoneMap.of(blocks), sidecars, usable)
        deadline, answered, merged = perf_counter() + seconds, [], merge_states(self.wider_request, [])
        for start in range(0, len(usable), MAX_STATES_PER_CALL):
            states = [merged]
            for unit, found in self._states(
                batch, range(start, min(start + MAX_STATES_PER_CALL, len(usable))), deadline
            ):
                if isinstance(found, pa.Table):
                    states.append(found)
                    answered.append(unit)
                else:
                    problem = found
            merged = merge_states(self.wider_request, states)  # at once, so that memory holds groups and not blocks
        return SourceResult(usable[answered], merged, problem)

    def _states(
        self, batch: FrameBatch, units: Sequence[int], deadline: float
    ) -> Iterator[tuple[int, pa.Table | Refusal]]:
        """Asked for together; one by one if that fails, so that one bad state does not spoil the others."""
        kind: Any = self.index_kind
        found = sandboxed_call(
            lambda: [kind.state(self.probe, batch, unit) for unit in units], deadline - perf_counter()
        )
        if not isinstance(found, PluginFailure):
            yield from ((unit, self._check_state(one)) for unit, one in zip(units, found, strict=True))
            return
        for unit in units:
            late = found.reason == Reason.TIMEOUT
            one = (
                found
                if late
                else sandboxed_call(partial(kind.state, self.probe, batch, unit), deadline - perf_counter())
            )
            yield unit, (Refusal(one.reason, one.detail) if isinstance(one, PluginFailure) else self._check_state(one))

    def _check_state(self, found: object) -> pa.Table | Refusal:
        if found is None:
            return Refusal(Reason.BLOCK_NOT_INDEXED, "of some blocks no state is kept")
        if isinstance(found, Refusal):
            return found
        if isinstance(found, pa.Table) and found.schema.equals(self.wider_request.schema):
            problem = sketch_damage(self.wider_request, found)
            return found if problem is None else Refusal(Reason.CORRUPT, f"a state is damaged: {problem}")
        gave = found.schema.to_string() if isinstance(found, pa.Table) else type(found).__name__
        return Refusal(Reason.PLUGIN_ERROR, f"state() gave {gave}, not {self.wider_request.schema.to_string()}")

    def project_states(self, states: pa.Table, context: Context, functions: Mapping[str, Function]) -> pa.Table:
        """States of ``wider`` as those of what is asked: without groups that are not wanted, by what is made of the
        keys.

        Raises OpaqueError where only Spark can tell what that is.
        """
        if self.group_condition is not None and states.num_rows:
            states = states.filter(
                evaluate(self._on_state_columns(self.group_condition, context), states, context, functions)
            )
        made = [
            evaluate_term(self._on_state_columns(group, context), states, context, functions, strict=True)
            for group in self.request.groups
        ]
        groups = map(canonical_floats, made)
        return pa.table([*groups, *states.columns[len(self.wider_request.groups) :]], schema=self.request.schema)

    def _on_state_columns(self, node: Any, context: Context) -> Any:
        """A condition on groups, or a group, on the columns of a state of ``wider``."""
        names: dict[Term, Term] = {
            term: Column((f"group{number}",), term.type) for number, term in enumerate(self.wider_request.groups)
        }
        return substitute(GroupKeys(self.wider_request.groups, context).rewrite(node), names)
