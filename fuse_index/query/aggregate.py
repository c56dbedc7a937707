"""Aggregates of a snapshot, from stored states where possible.

A block of which every row matches gives a stored state, one of which none does gives nothing, and the others are
scanned. What stored states are worth is decided here, whoever keeps them: only blocks whose rows are all live and all
match give one, and only where no sum can overflow on the way, since Spark's would then depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.aggregates.finalize import finalize_state
from fuse_index.aggregates.magnitude import largest_value, largest_values, units_per_one
from fuse_index.aggregates.sketches import DEFAULT_LG_K
from fuse_index.aggregates.state import (
    COUNT_STAR_ARGUMENT,
    Aggregate,
    Aggregation,
    Part,
    largest_sum,
    merge_states,
    state_of,
)
from fuse_index.errors import IndexFault, OpaqueError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import column_names, without_conjuncts
from fuse_index.indexes.block_batch import UnitIndices
from fuse_index.indexes.definition import UnavailableIndex
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import Answers, Refusal
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.predicate import Column, Predicate, Term
from fuse_index.pruning.account.uses import tail_use
from fuse_index.pruning.calls.budget import CallBudget, budget_of, failure_reason
from fuse_index.pruning.calls.switches import askable_definitions
from fuse_index.pruning.explanation import Explanation, Totals, Vote
from fuse_index.pruning.planner import PlanMask, ScanPlan, plan_scan
from fuse_index.query.aggregate_sources import AggregateSource, IndexSource, SourceResult, StatisticsSource
from fuse_index.query.scan import Scan
from fuse_index.reasons import FAULTS, Reason
from fuse_storage import BlockFrame, StoredTable

_OVERFLOW_MARGIN = 1 - 1e-6
"""Share of the largest sum that bounds may reach: they are added up as doubles."""
_MAX_UNMERGED_STATES = 32
"""States that are kept before they are merged."""


@dataclass(frozen=True)
class AggregatePlan:
    """An answer in two parts: states that are known, and a scan for the rest."""

    request: Aggregation
    states: pa.Table
    """The states of all blocks that need no scan, merged."""
    scan_plan: ScanPlan[BlockFrame]
    """The scan of the other blocks."""
    answered_blocks: int = 0
    """The number of blocks that gave a state."""

    @property
    def explanation(self) -> Explanation:
        return self.scan_plan.explanation

    def total_state(self, functions: Mapping[str, Function]) -> pa.Table:
        """Merge the state of all rows: blocks without a stored state are scanned."""
        states = [self.states]
        for state in self._scanned(functions):
            states.append(state)
            if len(states) >= _MAX_UNMERGED_STATES:
                states = [merge_states(self.request, states)]
        return merge_states(self.request, states)

    def _scanned(self, functions: Mapping[str, Function]) -> Iterator[pa.Table]:
        terms = [*self.request.groups, *(part.argument for part in self.request.parts)]
        columns = tuple(column_names(terms))
        scan = Scan(self.scan_plan, columns, functions)
        if not columns:  # count(*), for there is no other aggregate without a column
            yield pa.table([[scan.count()] for _ in self.request.parts], schema=self.request.schema)
            return
        for rows in scan.tables():

            @cache
            def values(term: Term, rows: pa.Table = rows) -> pa.ChunkedArray:
                return evaluate_term(term, rows, self.scan_plan.context, functions, strict=True)

            yield state_of(self.request, values, rows.num_rows)

    def to_table(self, names: Sequence[str], functions: Mapping[str, Function]) -> pa.Table:
        """Compute the answer; ``names`` are those of its columns, groups first."""
        return pa.table(finalize_state(self.request, self.total_state(functions)), names=list(names))


def plan_aggregate(
    table: StoredTable,
    request: Aggregation,
    predicate: Predicate | None,
    engine: Engine,
    *,
    indexes: bool = True,
    strict: bool = False,
    budget: float | CallBudget | None = None,
) -> AggregatePlan:
    """Plan who gives which part of the answer; with ``indexes=False``, all of it is scanned.

    ``budget`` and ``strict`` as of ``plan_scan``. Raises UnsupportedAggregate for what is no aggregate, OpaqueError
    where a sum may overflow: what is then answered, or raised, is Spark's own affair. Raises StorageError.
    """
    request.check()
    calls = budget_of(table.store.url, table.snapshot.properties, budget)
    scan_plan = plan_scan(table, predicate, engine, indexes=indexes, budget=calls, strict=strict)
    for part in request.parts:
        if (reason := overflow_reason(part, scan_plan.blocks)) is not None:
            raise OpaqueError(f"only Spark can evaluate {_part_text(part)}: {reason}")
    planner = _AggregatePlanner(table, request, scan_plan, engine, calls, strict)
    return planner.run() if indexes else AggregatePlan(request, merge_states(request, []), scan_plan)


def overflow_reason(part: Part, blocks: BlockFrame) -> str | None:
    """Say why this sum of rows of these blocks may be more than Spark can hold; None if it never is."""
    limit = largest_sum(part)
    data_type = part.argument.type
    if limit is None or int(blocks.row_counts.sum()) * largest_value(data_type) <= limit:
        return None
    largest = largest_values(part.argument, partial(_largest_of_column, blocks))
    total = float((largest * units_per_one(data_type) * blocks.row_counts).sum())
    if total <= limit * _OVERFLOW_MARGIN:
        return None
    return f"a sum of {term_sql(part.argument)} may overflow: its values are too large, or nothing is known of them"


def _largest_of_column(blocks: BlockFrame, column: Column) -> npt.NDArray[np.float64]:
    """The largest absolute value in each of n blocks: float64, shape (n,), NaN where no bound is known."""
    statistics = blocks.statistics(blocks.segments.snapshot.schema.find(column.path).id)
    if statistics is None:
        return np.full(len(blocks), np.nan)
    nulls = np.asarray(pc.fill_null(statistics.null_count, -1))
    low, high = (np.asarray(pc.cast(bound, pa.float64(), safe=False)) for bound in (statistics.min, statistics.max))
    return np.where(nulls == blocks.row_counts, 0.0, np.maximum(np.abs(low), np.abs(high)))


@dataclass
class _AggregatePlanner:
    """Asks one source after the other for the blocks that are still without a state."""

    table: StoredTable
    request: Aggregation
    scan_plan: ScanPlan[BlockFrame]
    engine: Engine
    budget: CallBudget
    strict: bool
    votes: list[Vote] = field(default_factory=list)

    def run(self) -> AggregatePlan:
        remaining = np.arange(len(self.scan_plan.blocks))
        states: list[pa.Table] = []
        for source in self._sources():
            if isinstance(source, Vote):
                self.votes.append(source)
                continue
            positions = remaining[self._answerable_blocks(source)[remaining]]
            if not len(positions):
                detail = "of no block that is left are all rows wanted" if len(remaining) else ""
                self.votes.append(self._vote(source, Reason.NOT_NEEDED, detail))
                continue
            result = self._read_states(source, positions)
            if self.strict and result.problem is not None and result.problem.reason in FAULTS:
                raise IndexFault(source.index, source.kind, result.problem.reason, result.problem.detail)
            projected = self._project_states(source, result)
            if projected is None:
                continue
            states.append(projected)
            remaining = np.setdiff1d(remaining, result.blocks)
            self.votes.append(self._result_vote(source, result, len(self.scan_plan.blocks)))
        scan_plan = self.scan_plan.take(remaining)
        answered_blocks = len(self.scan_plan.blocks) - len(remaining)
        return AggregatePlan(
            self.request,
            merge_states(self.request, states),
            replace(scan_plan, explanation=self._explanation(scan_plan)),
            answered_blocks,
        )

    def _sources(self) -> Iterator[AggregateSource | Vote]:
        if (statistics := StatisticsSource.for_request(self.request)) is not None:
            yield statistics
        for definition in askable_definitions(self.table, self.engine):
            if isinstance(definition, UnavailableIndex):
                if isinstance(self.engine.host.kinds.get(definition.kind), Answers):
                    refusal = definition.refusal
                    yield Vote(self._title, definition.name, definition.kind, refusal.reason, refusal.detail)
                continue
            kind = definition.kind_in(self.engine.host)
            if isinstance(kind, Answers):
                condition, context = self.scan_plan.predicate, self.engine.context
                match_request = partial(IndexSource.for_request, self.request, condition, definition, kind, context)
                built_in = self.engine.host.source_of(kind).built_in
                source = self.budget.run(f"{definition.key} match", match_request, failure_reason, built_in)
                if isinstance(source, Refusal | PluginFailure):
                    yield Vote(self._title, definition.name, kind.name, source.reason, source.detail)
                else:
                    yield source

    def _answerable_blocks(self, source: AggregateSource) -> PlanMask:
        """Say of each of n blocks whether all its rows are live and match: bool of shape (n,).

        Conjuncts that the source decides itself are left out of the condition.
        """
        blocks = self.scan_plan.blocks
        whole = blocks.has_all_rows if isinstance(source, IndexSource) else blocks.has_exact_statistics
        if not source.decided_conjuncts:
            return self.scan_plan.always_matching_blocks & whole
        remaining_condition = without_conjuncts(self.scan_plan.predicate, source.decided_conjuncts)
        if remaining_condition is None:
            return whole
        plan = plan_scan(self.table, remaining_condition, self.engine, budget=self.budget, strict=self.strict)
        return np.isin(blocks.ordinals, plan.blocks.ordinals[plan.always_matching_blocks]) & whole

    def _read_states(self, source: AggregateSource, positions: UnitIndices) -> SourceResult:
        """Read states within the budget, or say why not; ``positions``: int64 indices of shape (k,)."""
        read = partial(source.read_states, self.scan_plan.blocks, positions)
        if not isinstance(source, IndexSource):
            return read(0.0)  # statistics take no time that counts
        built_in = self.engine.host.source_of(source.definition.kind_in(self.engine.host)).built_in
        result = self.budget.run(f"{source.definition.key} state", read, SourceResult.reason_for_nothing, built_in)
        if not isinstance(result, PluginFailure):
            return result
        return SourceResult(positions[:0], merge_states(self.request, []), Refusal(result.reason, result.detail))

    def _project_states(self, source: AggregateSource, result: SourceResult) -> pa.Table | None:
        """Turn a result into states of the request; None where only Spark can tell what to make of them."""
        if not isinstance(source, IndexSource):
            return result.states
        try:
            return source.project_states(result.states, self.engine.context, self.engine.functions)
        except OpaqueError as opaque:
            self.votes.append(self._vote(source, Reason.LEAF_UNSUPPORTED, str(opaque)))
            return None

    # --- explanation ------------------------------------------------------------------------------------------

    @property
    def _title(self) -> str:
        return describe_aggregation(self.request)

    def _vote(self, source: AggregateSource, reason: Reason, detail: str, blocks: int = 0) -> Vote:
        return Vote(self._title, source.index, source.kind, reason, detail, blocks)

    def _result_vote(self, source: AggregateSource, result: SourceResult, total: int) -> Vote:
        answered = f"{len(result.blocks):,} of {total:,} blocks answered without their rows"
        problem = "" if result.problem is None else result.problem.detail
        if len(result.blocks):
            return self._vote(source, Reason.USED, "; ".join(filter(None, [answered, problem])), len(result.blocks))
        return self._vote(source, result.problem.reason if result.problem else Reason.USED_NO_GAIN, problem)

    def _explanation(self, scan_plan: ScanPlan[BlockFrame]) -> Explanation:
        explanation = self.scan_plan.explanation
        rows = int(np.where(scan_plan.zones, scan_plan.blocks.zone_rows, 0).sum())
        block_offsets = self.table.segments().block_offsets
        segments = np.unique(np.searchsorted(block_offsets, scan_plan.blocks.ordinals, side="right"))
        no_index = Vote(self._title, "", "", Reason.NO_INDEX, "no index keeps such aggregates")
        return replace(
            explanation,
            segments=Totals(explanation.segments.total, len(segments)),
            blocks=Totals(explanation.blocks.total, len(scan_plan.blocks)),
            zones=Totals(explanation.zones.total, int(scan_plan.zones.sum())),
            rows=Totals(explanation.rows.total, rows),
            bytes=Totals(explanation.bytes.total, int(scan_plan.blocks.sizes.sum())),
            votes=(*explanation.votes, *(self.votes or [no_index])),
            tail=tail_use(self.table, scan_plan.blocks),
        )


def describe_aggregation(request: Aggregation) -> str:
    """Describe a request for people."""
    aggregates = ", ".join(map(_aggregate_text, request.aggregates))
    groups = f" GROUP BY {', '.join(map(term_sql, request.groups))}" if request.groups else ""
    return aggregates + groups


def _aggregate_text(aggregate: Aggregate) -> str:
    argument = "*" if aggregate.argument == COUNT_STAR_ARGUMENT else term_sql(aggregate.argument)
    size = f", {aggregate.lg_k}" if aggregate.lg_k not in (0, DEFAULT_LG_K) else ""
    return f"{aggregate.function}({argument}{size})"


def _part_text(part: Part) -> str:
    return f"{part.function}({term_sql(part.argument)})"
