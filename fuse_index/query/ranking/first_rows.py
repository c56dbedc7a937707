"""An order by a function of a plugin, answered by the zones that hold its first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fuse_index.errors import FuseIndexError, IndexFault, OpaqueError
from fuse_index.expressions.evaluable import check_evaluable, may_raise
from fuse_index.expressions.traversal import conjuncts
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Call, Column, IsNull, Literal, Not
from fuse_index.pruning.explanation import Totals, Vote
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.ranking.rankings import CompiledRanking, RankedQuery, ask_to_rank, ranking_indexes
from fuse_index.query.ranking.rows import ScoredRow
from fuse_index.query.ranking.search import RankedSearch
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame

MAX_SECONDS = 10.0
"""How long the first rows of an order are looked for, while a query waits to be planned."""


@dataclass(frozen=True, slots=True)
class RankedOrder:
    """``ORDER BY call LIMIT limit``. ``alone``: whether nothing else decides between equal rows."""

    call: Call
    limit: int
    descending: bool
    nulls_first: bool
    alone: bool
    text: str


def keep_first_rows(plan: ScanPlan[BlockFrame], order: RankedOrder, engine: Engine) -> ScanPlan[BlockFrame]:
    """The plan without the zones that hold none of the first rows, if an index ranks by the call; else as it is.

    Either way its explanation says so.
    """
    best = "greatest" if order.descending else "least"
    found = ranking_indexes(plan.table, engine, order.call, best)
    if not found or not len(plan.blocks):
        return plan
    function = engine.functions.get(order.call.name)
    match order.call.arguments:
        case (column, Literal() as query, *rest) if function is not None and function.null_on_null:
            recall = _recall(rest if function.recall == 2 else ())
            asked = RankedQuery(column, query, None, recall)
        case _:
            return _explained(plan, order, found[0].name, found[0].kind, "only a column and a constant are ranked")
    if (obstacle := _obstacle(plan, order, column, engine)) is not None:
        return _explained(plan, order, found[0].name, found[0].kind, obstacle)
    refusals = []
    for definition in found:
        match ask_to_rank(engine, definition, asked):
            case CompiledRanking() as ranking:
                return _narrowed(plan, order, engine, ranking)
            case refusal:
                refusals.append(refusal.detail)
    return _explained(plan, order, found[0].name, found[0].kind, "; ".join(refusals))


def _recall(rest: Sequence[object]) -> float:
    match rest:
        case [Literal(float() | int() as recall)] if 0 < recall <= 1:
            return float(recall)
    return 1.0


def _obstacle(plan: ScanPlan[BlockFrame], order: RankedOrder, column: object, engine: Engine) -> str | None:
    """Why the first rows are not those that rank best, or not those that are found here; None if they are."""
    if not order.alone:
        return "a second column may decide between equal rows"
    try:
        if plan.predicate is not None:
            check_evaluable(plan.predicate, engine.context, engine.functions)
    except OpaqueError as refusal:
        return str(refusal)
    if plan.predicate is not None and may_raise(plan.predicate, engine.context):
        return "Spark may raise on a row, where the condition is not true here"
    if order.nulls_first and not _never_null(plan, column):
        return "NULL comes first: say NULLS LAST, or that the column IS NOT NULL"
    return None


def _never_null(plan: ScanPlan[BlockFrame], column: object) -> bool:
    if not isinstance(column, Column):
        return False
    if Not(IsNull(column)) in conjuncts(plan.predicate):
        return True
    field = plan.table.snapshot.schema.find(column.path)
    return len(column.path) == 1 and not field.nullable


def _narrowed(
    plan: ScanPlan[BlockFrame], order: RankedOrder, engine: Engine, ranking: CompiledRanking
) -> ScanPlan[BlockFrame]:
    index, kind = ranking.definition.name, ranking.definition.kind
    try:
        rows = RankedSearch(plan.table, engine, [ranking], plan.predicate, plan=plan).best_rows(
            order.limit, MAX_SECONDS
        )
    except TimeoutError as late:
        return _explained(plan, order, index, kind, str(late), Reason.TIMEOUT)
    except IndexFault as fault:
        return _explained(plan, order, index, kind, fault.detail, Reason(fault.reason))
    except FuseIndexError as failure:  # a condition that only Spark evaluates
        return _explained(plan, order, index, kind, str(failure))
    if len(rows) < order.limit:
        return _explained(plan, order, index, kind, "fewer rows than the limit are ranked, and others come after them")
    fewer = _with_rows(plan, rows)
    told = plan.explanation
    vote = _vote(order.text, ranking, len(plan.blocks) - len(fewer.blocks), int(plan.zones.sum() - fewer.zones.sum()))
    explanation = replace(
        told,
        blocks=Totals(told.blocks.total, len(fewer.blocks)),
        zones=Totals(told.zones.total, int(fewer.zones.sum())),
        rows=Totals(told.rows.total, int(fewer.blocks.zone_rows[fewer.zones].sum())),
        bytes=Totals(told.bytes.total, int(fewer.blocks.sizes.sum())),
        votes=(*told.votes, vote),
    )
    return replace(fewer, explanation=explanation)


def _with_rows(plan: ScanPlan[BlockFrame], rows: Sequence[ScoredRow]) -> ScanPlan[BlockFrame]:
    """The plan of the zones that these rows are in."""
    place = {int(ordinal): number for number, ordinal in enumerate(plan.blocks.ordinals)}
    zones = np.zeros(len(plan.zones), np.bool_)
    for scored in rows:
        first, end = plan.blocks.zone_offsets[place[scored.block]], plan.blocks.zone_offsets[place[scored.block] + 1]
        ends = np.cumsum(plan.blocks.zone_rows[first:end])
        zones[first + int(np.searchsorted(ends, scored.row, side="right"))] = True
    kept = np.flatnonzero(np.logical_or.reduceat(zones, plan.blocks.zone_offsets[:-1]))
    return replace(plan, zones=plan.zones & zones).take(kept)


def _vote(text: str, ranking: CompiledRanking, blocks: int, zones: int = 0) -> Vote:
    reason = Reason.USED if blocks or zones else Reason.USED_NO_GAIN
    return Vote(text, ranking.definition.name, ranking.definition.kind, reason, ranking.precision, blocks, zones)


def _explained(
    plan: ScanPlan[BlockFrame],
    order: RankedOrder,
    index: str,
    kind: str,
    why: str,
    reason: Reason = Reason.LEAF_UNSUPPORTED,
) -> ScanPlan[BlockFrame]:
    votes = (*plan.explanation.votes, Vote(order.text, index, kind, reason, why))
    return replace(plan, explanation=replace(plan.explanation, votes=votes))
