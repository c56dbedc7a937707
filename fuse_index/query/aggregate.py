"""Aggregates of a snapshot, read as little of as possible: a block of which every row is wanted gives a stored state,
one of which none is gives nothing, and the others are scanned.

What stored states are worth is decided here, whoever keeps them: only blocks whose rows are all live and all wanted
give one, and only where no sum can overflow on the way, since Spark's would then depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.aggregates.finalize import finalize_state
from fuse_index.aggregates.sketches import DEFAULT_LG_K
from fuse_index.aggregates.state import (
    COUNT_STAR_ARGUMENT,
    Aggregate,
    Aggregation,
    Part,
    largest_sum,
    largest_value,
    merge_states,
    state_of,
)
from fuse_index.errors import IndexFault, OpaqueError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import columns_of, without_conjuncts
from fuse_index.indexes.definition import UnavailableIndex, load_definitions
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import Answers, Refusal
from fuse_index.predicate import Column, Predicate, Term
from fuse_index.pruning.explanation import Explanation, Totals, Vote
from fuse_index.pruning.planner import PlanMask, ScanPlan, plan_scan
from fuse_index.query.aggregate_sources import AggregateSource, IndexSource, SourceResult, StatisticsSource
from fuse_index.query.scan import Scan
from fuse_index.reasons import FAULTS, Reason
from fuse_storage import BlockFrame, StoredTable

OVERFLOW_MARGIN = 1 - 1e-6
"""Of the largest sum, so much may be reached: bounds are added up as doubles."""
MAX_UNMERGED_STATES = 32
"""States that are kept before they are merged."""


@dataclass(frozen=True)
class AggregatePlan:
    """``states``: merged, of all blocks that need no scan. ``left``: the blocks to scan, whose matching rows are the
    rest.
    """

    request: Aggregation
    states: pa.Table
    scan_plan: ScanPlan[BlockFrame]
    answered_blocks: int = 0
    """How many blocks gave a state."""

    @property
    def explanation(self) -> Explanation:
        return self.scan_plan.explanation

    def total_state(self, functions: Mapping[str, Function]) -> pa.Table:
        """The state of all rows: what is left is scanned."""
        states = [self.states]
        for state in self._scanned(functions):
            states.append(state)
            if len(states) >= MAX_UNMERGED_STATES:
                states = [merge_states(self.request, states)]
        return merge_states(self.request, states)

    def _scanned(self, functions: Mapping[str, Function]) -> Iterator[pa.Table]:
        terms = [*self.request.groups, *(part.argument for part in self.request.parts)]
        columns = tuple(dict.fromkeys(column.path[0] for term in terms for column in columns_of(term)))
        scan = Scan(self.scan_plan, columns, functions)
        if not columns:
            yield pa.table(
                [[scan.count() if part.argument == COUNT_STAR_ARGUMENT else 0] for part in self.request.parts],
                schema=self.request.schema,
            )
            return
        for rows in scan.tables():

            @cache
            def values(term: Term, rows: pa.Table = rows) -> pa.ChunkedArray:
                return evaluate_term(term, rows, self.scan_plan.context, functions, strict=True)

            yield state_of(self.request, values, rows.num_rows)

    def to_table(self, names: Sequence[str], functions: Mapping[str, Function]) -> pa.Table:
        """The answer; ``names`` are those of its columns, groups first."""
        return pa.table(finalize_state(self.request, self.total_state(functions)), names=list(names))


def plan_aggregate(
    table: StoredTable,
    request: Aggregation,
    predicate: Predicate | None,
    engine: Engine,
    *,
    indexes: bool = True,
    strict: bool = False,
    budget: float = 10.0,
) -> AggregatePlan:
    """Who gives which part of the answer. ``indexes=False`` scans every block that may hold a matching row, and more.

    ``budget`` and ``strict`` as of ``plan``. Raises UnsupportedAggregate for what is no aggregate, OpaqueError where a
    sum may overflow: what is then answered, or raised, is Spark's own affair. Raises StorageError.
    """
    request.check()
    whole = plan_scan(table, predicate, engine, indexes=indexes, budget=budget, strict=strict)
    for part in request.parts:
        if (doubt := overflow_reason(part, whole.blocks)) is not None:
            raise OpaqueError(f"only Spark can evaluate {_shown_part(part)}: {doubt}")
    work = _AggregatePlanner(table, request, whole, engine, perf_counter() + budget, strict)
    return work.run() if indexes else AggregatePlan(request, merge_states(request, []), whole)


def overflow_reason(part: Part, blocks: BlockFrame) -> str | None:
    """Why this sum of these blocks' rows, or of some of them, may be more than Spark can hold; None if it never is."""
    limit = largest_sum(part)
    kind = part.argument.type
    if limit is None or int(blocks.row_counts.sum()) * largest_value(kind) <= limit:
        return None
    if not isinstance(part.argument, Column):
        return f"a sum of {term_sql(part.argument)} may overflow"
    statistics = blocks.statistics(blocks.segments.snapshot.schema.find(part.argument.path).id)
    if statistics is None:
        return f"a sum of {term_sql(part.argument)} may overflow, and nothing is known of its values"
    nulls = np.asarray(pc.fill_null(statistics.null_count, -1))
    unit = 10.0**kind.scale if is_.is_decimal(kind) else 1.0
    low, high = (np.asarray(pc.cast(bound, pa.float64(), safe=False)) for bound in (statistics.min, statistics.max))
    largest = np.where(nulls == blocks.row_counts, 0.0, np.maximum(np.abs(low), np.abs(high)))
    total = float((largest * unit * blocks.row_counts).sum())
    if total <= limit * OVERFLOW_MARGIN:  # not where a bound is unknown, which is NaN here
        return None
    return f"a sum of {term_sql(part.argument)} may overflow: its values are too large"


@dataclass
class _AggregatePlanner:
    """Asks one keeper after the other for what is still lacking."""

    table: StoredTable
    request: Aggregation
    scan_plan: ScanPlan[BlockFrame]
    engine: Engine
    deadline: float
    strict: bool
    votes: list[Vote] = field(default_factory=list)

    def run(self) -> AggregatePlan:
        remaining = np.arange(len(self.scan_plan.blocks))
        states: list[pa.Table] = []
        for found in self._sources():
            if isinstance(found, Vote):
                self.votes.append(found)
                continue
            wanted = remaining[self._answerable_blocks(found)[remaining]]
            if not len(wanted):
                nothing = "of no block that is left are all rows wanted" if len(remaining) else ""
                self.votes.append(self._vote(found, Reason.NOT_NEEDED, nothing))
                continue
            given = found.read_states(self.scan_plan.blocks, wanted, self.deadline - perf_counter())
            if self.strict and given.problem is not None and given.problem.reason in FAULTS:
                raise IndexFault(found.index, found.kind, given.problem.reason, given.problem.detail)
            fitted = self._project_states(found, given)
            if fitted is None:
                continue
            states.append(fitted)
            remaining = np.setdiff1d(remaining, given.blocks)
            self.votes.append(self._result_vote(found, given, len(self.scan_plan.blocks)))
        left = self.scan_plan.take(remaining)
        answered = len(self.scan_plan.blocks) - len(remaining)
        return AggregatePlan(
            self.request,
            merge_states(self.request, states),
            replace(left, explanation=self._explanation(left)),
            answered,
        )

    def _sources(self) -> Iterator[AggregateSource | Vote]:
        if (known := StatisticsSource.for_request(self.request)) is not None:
            yield known
        for definition in load_definitions(self.table.snapshot, self.engine.host, self.engine.context):
            if isinstance(definition, UnavailableIndex):
                if isinstance(self.engine.host.kinds.get(definition.kind), Answers):
                    yield Vote(
                        self._title,
                        definition.name,
                        definition.kind,
                        definition.refusal.reason,
                        definition.refusal.detail,
                    )
                continue
            kind = self.engine.host.kinds[definition.kind]
            if isinstance(kind, Answers):
                seconds = self.deadline - perf_counter()
                made = IndexSource.for_request(
                    self.request, self.scan_plan.predicate, definition, kind, self.engine.context, seconds
                )
                yield (
                    Vote(self._title, definition.name, kind.name, made.reason, made.detail)
                    if isinstance(made, Refusal)
                    else made
                )

    def _answerable_blocks(self, keeper: AggregateSource) -> PlanMask:
        """The blocks, all rows of which are live and wanted by what the keeper does not decide itself."""
        blocks = self.scan_plan.blocks
        if not keeper.decided_conjuncts:
            return self.scan_plan.always_matching_blocks & blocks.has_exact_statistics
        rest = without_conjuncts(self.scan_plan.predicate, keeper.decided_conjuncts)
        if rest is None:
            return blocks.has_exact_statistics
        seconds = max(self.deadline - perf_counter(), 0.001)
        judged = plan_scan(self.table, rest, self.engine, budget=seconds, strict=self.strict)
        return (
            np.isin(blocks.ordinals, judged.blocks.ordinals[judged.always_matching_blocks])
            & blocks.has_exact_statistics
        )

    def _project_states(self, keeper: AggregateSource, given: SourceResult) -> pa.Table | None:
        """As states of what is asked; None where only Spark can tell what to make of them."""
        if not isinstance(keeper, IndexSource):
            return given.states
        try:
            return keeper.project_states(given.states, self.engine.context, self.engine.functions)
        except OpaqueError as doubt:
            self.votes.append(self._vote(keeper, Reason.LEAF_UNSUPPORTED, str(doubt)))
            return None

    # --- the account ------------------------------------------------------------------------------------------

    @property
    def _title(self) -> str:
        return describe_aggregation(self.request)

    def _vote(self, keeper: AggregateSource, reason: Reason, detail: str, blocks: int = 0) -> Vote:
        return Vote(self._title, keeper.index, keeper.kind, reason, detail, blocks)

    def _result_vote(self, keeper: AggregateSource, given: SourceResult, total: int) -> Vote:
        gave = f"{len(given.blocks):,} of {total:,} blocks answered without their rows"
        problem = "" if given.problem is None else given.problem.detail
        if len(given.blocks):
            return self._vote(keeper, Reason.USED, "; ".join(filter(None, [gave, problem])), len(given.blocks))
        return self._vote(keeper, given.problem.reason if given.problem else Reason.USED_NO_GAIN, problem)

    def _explanation(self, left: ScanPlan[BlockFrame]) -> Explanation:
        was = self.scan_plan.explanation
        rows = int(np.where(left.zones, left.blocks.zone_rows, 0).sum())
        segments = np.unique(np.searchsorted(self.table.segments().block_offsets, left.blocks.ordinals, side="right"))
        nobody = Vote(self._title, "", "", Reason.NO_INDEX, "no index keeps such aggregates")
        return replace(
            was,
            segments=Totals(was.segments.total, len(segments)),
            blocks=Totals(was.blocks.total, len(left.blocks)),
            zones=Totals(was.zones.total, int(left.zones.sum())),
            rows=Totals(was.rows.total, rows),
            bytes=Totals(was.bytes.total, int(left.blocks.sizes.sum())),
            votes=(*was.votes, *(self.votes or [nobody])),
        )


def describe_aggregation(request: Aggregation) -> str:
    """What was asked, for people."""
    aggregates = ", ".join(map(_shown_aggregate, request.aggregates))
    groups = f" GROUP BY {', '.join(map(term_sql, request.groups))}" if request.groups else ""
    return aggregates + groups


def _shown_aggregate(each: Aggregate) -> str:
    size = f", {each.lg_k}" if each.lg_k not in (0, DEFAULT_LG_K) else ""
    return f"{each.function}({'*' if each.argument == COUNT_STAR_ARGUMENT else term_sql(each.argument)}{size})"


def _shown_part(part: Part) -> str:
    return f"{part.function}({term_sql(part.argument)})"
