"""Sources of aggregates that read no rows: the statistics of blocks, and indexes that keep states.

Sits below ``aggregate``, which decides which source is asked about which blocks. Whatever goes wrong here leaves a
block to be scanned, with a reason.
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

from fuse_index.aggregates.state import Aggregation, Part, canonical_floats, merge_states
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import conjoin, conjuncts, references, substitute
from fuse_index.indexes.block_batch import FrameBatch, UnitIndices, ZoneMap
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.inputs import canonical_input
from fuse_index.indexes.interface import Answers, IndexKind, Probe, Refusal
from fuse_index.indexes.sandbox import PluginFailure, check_probe, describe_error, sandboxed_call
from fuse_index.predicate import Column, Context, Literal, Predicate, Term
from fuse_index.pruning.readable import readable_blocks
from fuse_index.query.checked_answers import checked_state
from fuse_index.query.group_keys import GroupKeys, is_implied_by
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, cache_of

_MAX_STATES_PER_CALL = 64
"""States that are read between two looks at the clock."""

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SourceResult:
    """The answer of a source."""

    blocks: UnitIndices
    """Positions of the blocks that it answered for: int64 indices, 1-D."""
    states: pa.Table
    """The states of those blocks, merged."""
    problem: Refusal | None = None
    """Why it answered for no more blocks."""

    def reason_for_nothing(self) -> Reason | None:
        """What went wrong, where it answered for no block at all."""
        return self.problem.reason if self.problem is not None and not len(self.blocks) else None


class AggregateSource(Protocol):
    """One that may have states of blocks."""

    @property
    def index(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def decided_conjuncts(self) -> tuple[Predicate, ...]:
        """The conjuncts of the condition that it sees to itself."""
        ...

    def read_states(self, blocks: BlockFrame, positions: UnitIndices, seconds: float) -> SourceResult:
        """Read the states of as many blocks as it has. Raises StorageError.

        ``positions``: which of the blocks, int64 indices of shape (k,); all their rows match the condition, as far as
        ``decided_conjuncts`` do not say otherwise.
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
        """Make a source for this request; None if statistics cannot have what is asked for."""
        is_known = all(
            part.function in ("count", "min", "max") and isinstance(part.argument, Column | Literal)
            for part in request.parts
        )
        return StatisticsSource(request) if is_known and request.parts and not request.groups else None

    def read_states(self, blocks: BlockFrame, positions: UnitIndices, seconds: float) -> SourceResult:
        """Read states from statistics; ``positions``: int64 indices of shape (k,)."""
        chosen_blocks = blocks.take(positions)
        columns = [_statistics_values(part, chosen_blocks) for part in self.request.parts]
        exact = np.logical_and.reduce([is_known for _, is_known in columns])
        states = pa.table([values for values, _ in columns], schema=self.request.schema).filter(pa.array(exact))
        problem = (
            None
            if exact.all()
            else Refusal(Reason.TRUNCATED_STATS, f"bounds of {int((~exact).sum())} blocks are cut, or not known")
        )
        return SourceResult(positions[exact], merge_states(self.request, [states]), problem)


def _statistics_values(part: Part, blocks: BlockFrame) -> tuple[pa.Array, _Mask]:
    """Compute one part of each of n blocks, as n values, and say of which blocks it is exact: bool of shape (n,)."""
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
    bound, is_cut = (
        (statistics.min, statistics.min_cut) if part.function == "min" else (statistics.max, statistics.max_cut)
    )
    is_exact = (np.asarray(bound.is_valid()) & ~np.asarray(is_cut)) | (nulls == rows)
    if is_.is_floating(part.type):  # of a zero, the sign is not kept
        is_exact &= ~np.asarray(pc.fill_null(pc.equal(bound, pa.scalar(0.0, part.type)), False))
    return bound, is_exact


@dataclass(frozen=True)
class IndexSource:
    """An index that keeps states."""

    request: Aggregation
    definition: IndexDefinition
    index_kind: IndexKind
    wider_request: Aggregation
    """The request to the index: grouped also by the keys that ``group_condition`` and derived groups look at."""
    probe: Probe[Any]
    """The compiled form of ``wider_request``."""
    group_condition: Predicate | None
    """The part of the condition that decides whole groups of the states."""
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
        """Make a source of an index for this request, or say why it cannot be one. ``seconds``: for its ``match``."""
        if not isinstance(kind, Answers):
            return Refusal(Reason.LEAF_UNSUPPORTED, f"index kind {kind.name!r} does not answer aggregates")
        asked = conjuncts(predicate)
        if any(part not in asked for part in conjuncts(definition.where)):
            return Refusal(Reason.LEAF_UNSUPPORTED, (f"it is only on rows where {predicate_sql(definition.where)}"))  # type: ignore[arg-type]
        implied = tuple(part for part in asked if is_implied_by(part, conjuncts(definition.where)))
        keys = GroupKeys(
            tuple(index_input.term for index_input in definition.inputs if not index_input.function), context
        )
        group_condition = conjoin([part for part in asked if part not in implied and keys.can_decide(part)])
        groups = [
            group for group in request.groups if group in keys.terms or not keys.can_derive(group)
        ]  # of what is unknown, the kind says so
        derived = keys.rewrite(
            (*(group for group in request.groups if group not in groups), *conjuncts(group_condition))
        )
        extra_keys = [key for key in keys.terms if key not in groups and references(derived, key)]
        wider_request = Aggregation((*groups, *extra_keys), request.aggregates)
        inputs = tuple(canonical_input(each, context) for each in definition.inputs)
        probe = sandboxed_call(
            lambda: check_probe(kind.match(wider_request, inputs, definition.options, context), "match"),
            seconds,
        )
        match probe:
            case Probe():
                return IndexSource(request, definition, kind, wider_request, probe, group_condition, implied)
            case Refusal():
                return probe
            case PluginFailure(reason, detail):
                return Refusal(reason, detail)

    def read_states(self, blocks: BlockFrame, positions: UnitIndices, seconds: float) -> SourceResult:
        """Read states from the index, or from memory; ``positions``: int64 indices of shape (k,)."""
        store = blocks.segments.store
        cache_key = (
            "states",
            store.url,
            blocks.segments.snapshot.id,
            self.definition.key,
            self.wider_request,
            positions.tobytes(),
            blocks.ordinals[positions].tobytes(),  # another condition leaves other blocks at these positions
        )
        if (cached := cache_of(store).find(cache_key)) is not None:
            return cached  # type: ignore[no-any-return]
        result = self._read_uncached(blocks, positions, seconds)
        if result.problem is None:
            cache_of(store).put(cache_key, result, result.states.nbytes + positions.nbytes + 1000)
        return result

    def _read_uncached(self, blocks: BlockFrame, positions: UnitIndices, seconds: float) -> SourceResult:
        sidecars = blocks.sidecars(self.definition.key)
        if sidecars is None:
            nothing = Refusal(Reason.BLOCK_NOT_INDEXED, "no block is indexed: refresh the index")
            return SourceResult(positions[:0], self.wider_request.schema.empty_table(), nothing)
        indexed = positions[readable_blocks(sidecars, self.index_kind)[positions]]
        problem: Refusal | None = None
        if len(indexed) < len(positions):
            detail = f"{len(positions) - len(indexed)} of {len(positions)} blocks are not indexed: refresh the index"
            problem = Refusal(Reason.BLOCK_NOT_INDEXED, detail)
        if sidecars.error:
            problem = Refusal(Reason.CORRUPT, sidecars.error)
        fields: list[int | None] = [None] * len(self.definition.inputs)
        batch = FrameBatch.from_sidecars(blocks, fields, ZoneMap.of(blocks), sidecars, indexed)
        deadline, answered_units, merged = perf_counter() + seconds, [], merge_states(self.wider_request, [])
        for start in range(0, len(indexed), _MAX_STATES_PER_CALL):
            units, states = [], [merged]
            for unit, state in self._states(
                batch, range(start, min(start + _MAX_STATES_PER_CALL, len(indexed))), deadline
            ):
                if isinstance(state, pa.Table):
                    states.append(state)
                    units.append(unit)
                else:
                    problem = state
            try:  # at once, so that memory holds groups and not blocks
                merged = merge_states(self.wider_request, states)
                answered_units += units
            except Exception as error:  # whatever Arrow says of values that no state has
                problem = Refusal(Reason.PLUGIN_ERROR, f"states cannot be merged: {describe_error(error)}")
        return SourceResult(indexed[answered_units], merged, problem)

    def _states(
        self, batch: FrameBatch, units: Sequence[int], deadline: float
    ) -> Iterator[tuple[int, pa.Table | Refusal]]:
        """Yield the state of each unit, or why there is none.

        All are asked for together; one by one if that fails, so that one bad state does not spoil the others.
        """
        kind: Any = self.index_kind
        states = sandboxed_call(
            lambda: [kind.state(self.probe, batch, unit) for unit in units], deadline - perf_counter()
        )
        if not isinstance(states, PluginFailure):
            yield from (
                (unit, checked_state(state, self.wider_request)) for unit, state in zip(units, states, strict=True)
            )
            return
        for unit in units:
            state = states
            if states.reason != Reason.TIMEOUT:
                state = sandboxed_call(partial(kind.state, self.probe, batch, unit), deadline - perf_counter())
            yield unit, checked_state(state, self.wider_request)

    def project_states(self, states: pa.Table, context: Context, functions: Mapping[str, Function]) -> pa.Table:
        """Turn states of ``wider_request`` into states of ``request``.

        Groups on which the condition is not TRUE are left out, and derived groups are computed from the keys. Raises
        OpaqueError where only Spark can tell what those are.
        """
        if self.group_condition is not None and states.num_rows:
            states = states.filter(
                evaluate(self._on_state_columns(self.group_condition, context), states, context, functions)
            )
        group_values = [
            evaluate_term(self._on_state_columns(group, context), states, context, functions, strict=True)
            for group in self.request.groups
        ]
        groups = map(canonical_floats, group_values)
        return pa.table([*groups, *states.columns[len(self.wider_request.groups) :]], schema=self.request.schema)

    def _on_state_columns(self, node: Any, context: Context) -> Any:
        """Put a condition on groups, or a group, on the columns of a state of ``wider_request``."""
        names: dict[Term, Term] = {
            term: Column((f"group{number}",), term.type) for number, term in enumerate(self.wider_request.groups)
        }
        return substitute(GroupKeys(self.wider_request.groups, context).rewrite(node), names)
