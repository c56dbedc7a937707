"""Which blocks and zones may hold one of the first rows of an order: ``ORDER BY column LIMIT n``, or just ``LIMIT n``.

Statistics promise rows: a zone all of whose rows match has one row with its greatest value, if that bound is exact, and
as many as are not NULL with at least its least. The n-th greatest of what is promised is a threshold, and whatever has
only smaller values can be left out. Rows that equal it are kept, since a second column may decide between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions.errors import UnsupportedExpression
from fuse_index.expressions.traversal import column_names
from fuse_index.predicate import Column, Context
from fuse_index.pruning.explanation import Explanation, Totals, Vote
from fuse_index.pruning.planner import MAX_BLOCKS_WITH_ZONE_STATISTICS, ScanPlan
from fuse_index.query.ranking.first_rows import RankedOrder
from fuse_index.reasons import Reason
from fuse_index.sql.catalyst import decode_catalyst_term, decode_value_mark
from fuse_storage import BlockFrame, ColumnStatistics, Schema

_Mask = npt.NDArray[np.bool_]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first ``limit`` rows by one column, or by none where ``column_id`` is None. Other columns may decide ties.

    ``among``: blocks, by their ordinals, that alone can promise rows: of others some may not count for who asks, as
    those that a source has deleted. None: all.
    """

    limit: int
    text: str
    column_id: int | None = None
    descending: bool = False
    nulls_first: bool = False
    among: Sequence[int] | None = None


def decode_top_rows(top: Mapping[str, Any], schema: Schema, context: Context) -> TopRows | RankedOrder | None:
    """The order of a request, as ``OrderedLimit.java`` writes it; None if it is by no column and no plugin's call."""
    if top["by"] is None:
        return TopRows(top["limit"], f"LIMIT {top['limit']}")
    descending, nulls_first = top["descending"], top["nulls_first"]
    words = f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'} LIMIT {top['limit']}"
    try:
        if (call := decode_value_mark(top["by"], schema, context)) is not None:
            text = f"ORDER BY {call.name}({'.'.join(column_names(call.arguments))}, …) {words}"
            return RankedOrder(call, top["limit"], descending, nulls_first, top.get("alone", False), text)
        term = decode_catalyst_term(top["by"], schema, context)
    except UnsupportedExpression:
        return None
    if not isinstance(term, Column):
        return None
    text = f"ORDER BY {'.'.join(term.path)} {words}"
    return TopRows(top["limit"], text, schema.find(term.path).id, descending, nulls_first, top.get("among"))


def keep_top_rows(plan: ScanPlan[BlockFrame], top: TopRows) -> ScanPlan[BlockFrame]:
    """The plan without the blocks and zones that cannot hold one of the first rows, and an explanation of that."""
    certain = _certain_zones(plan, top)
    whole = np.logical_and.reduceat(certain, plan.blocks.zone_offsets[:-1]) if len(certain) else certain
    statistics = None if top.column_id is None else plan.blocks.statistics(top.column_id)
    exact = plan.blocks.has_exact_statistics
    kept_blocks = _kept(top, statistics, whole, exact, plan.blocks.row_counts)
    fewer = plan if kept_blocks.all() else plan.take(np.flatnonzero(kept_blocks))
    if 0 < len(fewer.blocks) <= MAX_BLOCKS_WITH_ZONE_STATISTICS:
        frame = fewer.blocks.zones()
        of_zones = None if top.column_id is None else frame.statistics(top.column_id)
        exact = np.repeat(fewer.blocks.has_exact_statistics, fewer.blocks.zone_counts)
        kept_zones = _kept(top, of_zones, _certain_zones(fewer, top), exact, fewer.blocks.zone_rows)
        fewer = replace(fewer, zones=fewer.zones & kept_zones)
        left = np.flatnonzero(np.logical_or.reduceat(fewer.zones, fewer.blocks.zone_offsets[:-1]))
        fewer = fewer if len(left) == len(fewer.blocks) else fewer.take(left)
    return replace(fewer, explanation=_explain(plan, fewer, top))


def _certain_zones(plan: ScanPlan[BlockFrame], top: TopRows) -> _Mask:
    """Zones all of whose rows match and can be promised: bool, one per zone of the plan's blocks."""
    certain = plan.zones & plan.always_matching_zones
    if top.among is not None:
        certain &= np.repeat(np.isin(plan.blocks.ordinals, top.among), plan.blocks.zone_counts)
    for zone, rows in plan.row_masks.items():
        certain[zone] &= bool(rows.all())
    return certain


def _kept(top: TopRows, statistics: ColumnStatistics | None, certain: _Mask, exact: _Mask, rows: _Counts) -> _Mask:
    """Which units may hold one of the first rows: bool, shape (units,).

    ``certain``: bool, units all of whose rows match; ``exact``: bool, units whose bounds are values of theirs, unless
    they are cut; ``rows``: int64, how many each has.
    """
    if top.limit == 0:
        return np.zeros(len(rows), np.bool_)
    if top.column_id is None:
        return _kept_in_any_order(top.limit, certain, rows)
    if statistics is None:
        return np.ones(len(rows), np.bool_)
    best, worst, uncut = _bounds(statistics, top.descending)
    nulls = pc.fill_null(statistics.null_count, -1).to_numpy()
    values = np.where(certain & (nulls >= 0), rows - nulls, 0)
    # By rank: a higher one comes sooner. -1 is unknown, or a unit of NULLs alone.
    with_best, with_worst = certain & exact & uncut & (best >= 0), (worst >= 0) & (values > 1)
    promised = np.concatenate([best[with_best], worst[with_worst]])
    counts = np.concatenate([np.ones(int(with_best.sum()), np.int64), values[with_worst] - 1])
    order = np.argsort(-promised, kind="stable")
    reached = np.flatnonzero(np.cumsum(counts[order]) >= top.limit)
    if not len(reached):
        return np.ones(len(rows), np.bool_)
    threshold = promised[order][reached[0]]
    only_nulls = nulls == rows
    may_have_nulls = nulls != 0
    return np.where(only_nulls, top.nulls_first, (best < 0) | (best >= threshold) | (top.nulls_first & may_have_nulls))


def _kept_in_any_order(limit: int, certain: _Mask, rows: _Counts) -> _Mask:
    """The fewest of the units that are certain, if their rows are enough; else all."""
    chosen = np.flatnonzero(certain)
    reached = np.flatnonzero(np.cumsum(rows[chosen]) >= limit)
    kept = np.ones(len(rows), np.bool_)
    if len(reached):
        kept[:] = False
        kept[chosen[: reached[0] + 1]] = True
    return kept


def _bounds(statistics: ColumnStatistics, descending: bool) -> tuple[_Counts, _Counts, _Mask]:
    """Ranks of the first and of the last value of each unit, int64, greater for what comes sooner; -1 unknown.

    And whether the first is the value of a row: bool.
    """
    units = len(statistics)
    encoded = pa.concat_arrays([statistics.min, statistics.max]).dictionary_encode()
    places = pc.sort_indices(encoded.dictionary).to_numpy()  # NaN last, as in Spark's order
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    if not descending:
        ranks = len(places) - 1 - ranks
    codes = pc.fill_null(encoded.indices, -1).to_numpy()
    found = np.where(codes >= 0, ranks[codes] if len(ranks) else -1, -1)
    low, high = found[:units], found[units:]
    first_cut = statistics.max_cut if descending else statistics.min_cut
    exact = ~np.asarray(pc.fill_null(first_cut, True), np.bool_)
    return (high, low, exact) if descending else (low, high, exact)


def _explain(plan: ScanPlan[BlockFrame], fewer: ScanPlan[BlockFrame], top: TopRows) -> Explanation:
    explained = plan.explanation
    blocks, zones = len(plan.blocks) - len(fewer.blocks), int(plan.zones.sum()) - int(fewer.zones.sum())
    reason = Reason.USED if zones else Reason.USED_NO_GAIN
    vote = Vote(top.text, "statistics", "", reason, "", blocks, zones)
    return replace(
        explained,
        blocks=Totals(explained.blocks.total, len(fewer.blocks)),
        zones=Totals(explained.zones.total, int(fewer.zones.sum())),
        rows=Totals(explained.rows.total, int(fewer.blocks.zone_rows[fewer.zones].sum())),
        bytes=Totals(explained.bytes.total, int(fewer.blocks.sizes.sum())),
        votes=(*explained.votes, vote),
    )
