"""The account of a ranked search: who ranked, which blocks were opened, and which no index knew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuse_index.expressions.to_sql import term_sql
from fuse_index.indexes.engine import Engine
from fuse_index.pruning.account.uses import SearchUse
from fuse_index.pruning.explanation import Explanation, Vote, explain_plan
from fuse_index.query.ranking.rankings import compile_ranking
from fuse_index.query.ranking.search import RankedSearch, SearchRequest
from fuse_index.reasons import Reason
from fuse_storage import StoredTable


def explain_ranking(table: StoredTable, engine: Engine, request: SearchRequest) -> Explanation:
    """Do a search, but for reading the rows that it finds, and tell how. Raises as ``ranked_search``."""
    rankings = [compile_ranking(table, engine, query) for query in request.queries]
    search = RankedSearch(table, engine, rankings, request.where)
    search.best_rows(request.limit)
    opened = np.array(sorted(search.opened), np.int64)
    blocks = table.blocks().take(opened)
    segments = len(np.unique(np.searchsorted(table.segments().block_offsets, opened, side="right")))
    every_zone = np.ones(len(blocks.zone_rows), np.bool_)
    plan = search.plan
    removed = len(search.matching) - len(opened)
    votes = [
        Vote(
            f"{term_sql(query.column)}: {query.text}",
            ranking.definition.name,
            ranking.kind.name,
            Reason.USED if removed else Reason.USED_NO_GAIN,
            f"it ranks by {ranking.kind.searches}, {ranking.precision}",
            blocks_removed=removed,
        )
        for query, ranking in zip(request.queries, rankings, strict=True)
    ]
    use = SearchUse(request.queries[0].text if request.queries else "", len(opened), len(search.unindexed))
    if plan is None:
        return replace(explain_plan(table, segments, blocks, every_zone, {}, votes), search=use)
    told = plan.explanation
    counted = explain_plan(table, segments, blocks, every_zone, {}, [*votes, *told.votes])
    return replace(counted, predicate=request.where, seconds=told.seconds, stages=told.stages, search=use)
