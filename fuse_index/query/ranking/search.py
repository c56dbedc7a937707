"""Ranked search: the best rows of a snapshot, from indexes that rank.

Scores depend on statistics of all blocks, whatever ``where`` leaves of them, so that a row scores the same in every
search of a snapshot. Blocks are read in the order of the best that they can hold, until no other can hold better. A
block that an index does not know, or whose index is damaged, is never left out: its rows are scored, or indexed in
memory for the occasion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import DefinitionError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.indexes.block_batch import BlockBatch, FrameBatch, ZoneMap
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import Highlights, Scores
from fuse_index.indexes.sandbox import PluginFailure, map_concurrently, sandboxed_call
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_index.pruning.readable import has_summary_or_payload, readable_blocks
from fuse_index.query.checked_answers import best_of, checked_bound, checked_scores, checked_top, total_bounds
from fuse_index.query.ranking.memory_block import MemoryBlock, index_in_memory
from fuse_index.query.ranking.rankings import RANKING_TIMEOUT_SECONDS, CompiledRanking, RankedQuery, compile_ranking
from fuse_index.query.ranking.rows import ScoredRow, insert_signs, read_scored_rows
from fuse_storage import BlockFrame, StoredTable, cache_of, live_among, unpack_mask

_logger = logging.getLogger("fuse_index.search")

_T = TypeVar("_T")
_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]
_Scores = npt.NDArray[np.float64]

SCORE_COLUMN, HIGHLIGHT_COLUMN = "_score", "_highlight"


@dataclass(frozen=True)
class SearchRequest:
    """A search: what is searched for, where, and the columns of the answer."""

    queries: Sequence[RankedQuery]
    """One for each top-level column; the scores that a row has in several are added."""
    limit: int
    where: Predicate | None
    """A condition on the rows; it changes no score."""
    names: Sequence[str]
    """Columns of the answer, without those that the search adds."""
    highlight: tuple[str, str] | None = None
    """Signs before and after what matches in the first column."""


def ranked_search(table: StoredTable, engine: Engine, request: SearchRequest) -> pa.Table:
    """Find the best rows, best first, with ``_score`` and, where signs are given, ``_highlight``.

    Raises DefinitionError where no index ranks such a query, and StorageError.
    """
    rankings = [compile_ranking(table, engine, query) for query in request.queries]
    search = RankedSearch(table, engine, rankings, request.where)
    best_rows = search.best_rows(request.limit)
    if search.built:
        named = " and ".join(ranking.definition.name for ranking in rankings)
        _logger.warning(
            "search of %s: %s has nothing that can be read of %d blocks, which were indexed in memory: refresh it",
            table.store.url,
            named,
            len(search.built),
        )
    highlighted_names = [request.queries[0].column.path[0]] if request.highlight else []  # type: ignore[union-attr]
    rows = read_scored_rows(table, best_rows, list(dict.fromkeys([*request.names, *highlighted_names])))
    texts = rows.column(highlighted_names[0]).to_pylist() if highlighted_names else []
    scores = pa.array([best.score for best in best_rows], pa.float64())
    rows = rows.select(list(request.names)).append_column(SCORE_COLUMN, scores)
    if not request.highlight:
        return rows
    kind, probe, signs = rankings[0].kind, rankings[0].probe, request.highlight
    if not isinstance(kind, Highlights):
        raise DefinitionError(f"index kind {kind.name!r} does not highlight: leave highlight= out")
    highlighted = rankings[0].call(
        lambda: [insert_signs(text, kind.highlight(probe, text or ""), signs) for text in texts]
    )
    return rows.append_column(HIGHLIGHT_COLUMN, pa.array(highlighted, pa.string()))


@dataclass
class RankedSearch:
    """One search: ``batches`` are what each ranking (by number) knows of each block.

    ``matching``: blocks that may hold a row, ``opened``: those of them whose best rows were looked up, ``unindexed``:
    those whose rows were scored or indexed in memory, of which ``built`` were not in memory yet. ``plan``: what is read
    for ``where``.
    """

    table: StoredTable
    engine: Engine
    rankings: Sequence[CompiledRanking]
    where: Predicate | None
    batches: dict[tuple[int, int], BlockBatch] = field(default_factory=dict)
    matching: set[int] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    unindexed: set[int] = field(default_factory=set)
    built: set[int] = field(default_factory=set)
    plan: ScanPlan[BlockFrame] | None = None

    def best_rows(self, limit: int, seconds: float = np.inf) -> list[ScoredRow]:
        """Find the best rows, best first; of equals, the first in the table. Raises TimeoutError after so long."""
        start = monotonic()
        blocks = self.table.blocks()
        if not len(blocks) or not limit or not self.rankings:
            return []
        for number in range(len(self.rankings)):
            self._open_sidecars(number, blocks)
        statistics = [self._gather_statistics(number, blocks) for number in range(len(self.rankings))]
        bounds = total_bounds([self._score_bounds(number, known, blocks) for number, known in enumerate(statistics)])
        if self.where is not None and self.plan is None:
            self.plan = plan_scan(self.table, self.where, self.engine)
        if self.plan is not None:
            bounds[~self.plan.block_mask] = -np.inf
        self.matching = set(np.flatnonzero(bounds > -np.inf).tolist())
        best: list[ScoredRow] = []
        for block in np.argsort(-bounds, kind="stable").tolist():
            if bounds[block] == -np.inf or (len(best) == limit and best[-1].score > bounds[block]):
                break
            if monotonic() - start > seconds:
                raise TimeoutError(f"the best rows were not found within {seconds:g} s")
            self.opened.add(block)
            rows, scores = self._top_of_block(block, statistics, limit, self._matching_rows(blocks, block))
            best += [ScoredRow(block, row, score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
            best = sorted(best, key=lambda scored: (-scored.score, scored.block, scored.row))[:limit]
        return best

    def _open_sidecars(self, number: int, blocks: BlockFrame) -> None:
        """Put a ranking's sidecars into ``batches``, for the blocks that have one."""
        ranking = self.rankings[number]
        sidecars = blocks.sidecars(ranking.definition.key)
        if sidecars is None:
            return
        usable = readable_blocks(sidecars, ranking.kind) & has_summary_or_payload(sidecars)
        fields = (None,) * len(ranking.definition.inputs)
        zones = ZoneMap.of(blocks)
        for block in np.flatnonzero(usable).tolist():
            self.batches[number, block] = FrameBatch.from_sidecars(blocks, fields, zones, sidecars, np.array([block]))

    def _map_blocks(self, number: int, blocks: BlockFrame, work: Callable[[BlockBatch], _T], unindexed: _T) -> list[_T]:
        """Call ``work`` with a ranking's batch of each block; where that fails, with one made of the block's rows.

        Of a kind that scores rows nothing is made, and the answer is ``unindexed``.
        """
        ranking = self.rankings[number]

        def attempt(block: int) -> _T:
            if (number, block) in self.batches:
                result = sandboxed_call(lambda: work(self.batches[number, block]), RANKING_TIMEOUT_SECONDS)
                if not isinstance(result, PluginFailure):
                    return result
            if isinstance(ranking.kind, Scores):
                self.batches.pop((number, block), None)
                return unindexed
            batch = self._index_in_memory(number, blocks, block)
            return ranking.call(lambda: work(batch))

        return map_concurrently(attempt, range(len(blocks)))

    def _index_in_memory(self, number: int, blocks: BlockFrame, block: int) -> BlockBatch:
        definition = self.rankings[number].definition

        def build() -> MemoryBlock:
            self.built.add(block)
            return index_in_memory(self.table, blocks, block, definition, self.engine.host)

        self.unindexed.add(block)
        key = ("indexed in memory", self.table.store.url, blocks.ids[block], definition.key)
        indexed = cache_of(self.table.store).get_or_load(key, build, lambda batch: batch.nbytes)
        self.batches[number, block] = indexed
        return indexed

    def _gather_statistics(self, number: int, blocks: BlockFrame) -> Any:
        """Merge what a ranking's scores depend on, over all blocks."""
        ranking = self.rankings[number]
        nothing = object()
        parts = self._map_blocks(number, blocks, lambda batch: ranking.kind.gather(ranking.probe, batch), nothing)
        known = [part for part in parts if part is not nothing]
        return ranking.call(lambda: ranking.kind.merge_statistics(known))

    def _score_bounds(self, number: int, statistics: Any, blocks: BlockFrame) -> _Scores:
        """Bound what a ranking adds to scores in each of n blocks: float64 of shape (n,), -inf where no row matches."""
        kind, probe = self.rankings[number].kind, self.rankings[number].probe
        bounds = self._map_blocks(
            number, blocks, lambda batch: checked_bound(kind.bound(probe, statistics, batch)), np.inf
        )
        return np.array(bounds, np.float64)

    def _top_of_block(
        self, block: int, statistics: Sequence[Any], limit: int, among: _Mask | None
    ) -> tuple[_Numbers, _Scores]:
        """Return the best rows of one block and their scores, over all rankings: two arrays of shape (m,), m <= limit.

        ``among``: bool, one value per row of the block; only rows where it is true count.
        """
        if len(self.rankings) == 1:
            return self._top_of_ranking(0, block, statistics[0], limit, among)
        row_count = int(self.table.blocks().row_counts[block])
        totals = np.full(row_count, -np.inf)
        for number, known in enumerate(statistics):
            rows, scores = self._top_of_ranking(number, block, known, row_count, among)
            totals[rows] = np.where(np.isinf(totals[rows]), scores, totals[rows] + scores)
        rows = np.argsort(-totals, kind="stable")[:limit]
        rows = rows[totals[rows] > -np.inf]
        return rows, totals[rows]

    def _top_of_ranking(
        self, number: int, block: int, statistics: Any, limit: int, among: _Mask | None
    ) -> tuple[_Numbers, _Scores]:
        """Return the best rows of one block and their scores, as one ranking has them."""
        ranking = self.rankings[number]

        def top() -> tuple[_Numbers, _Scores]:
            batch = self.batches[number, block]
            answer = ranking.kind.top(ranking.probe, statistics, batch, 0, limit, among)
            return checked_top(answer, int(batch.row_counts[0]), limit, among)

        if (number, block) in self.batches:
            result = sandboxed_call(top, RANKING_TIMEOUT_SECONDS)
            if not isinstance(result, PluginFailure):
                return result
        if isinstance(ranking.kind, Scores):
            return self._top_of_rows(ranking, block, limit, among)
        self._index_in_memory(number, self.table.blocks(), block)  # its postings are damaged, which nothing has told
        return ranking.call(top)

    def _top_of_rows(
        self, ranking: CompiledRanking, block: int, limit: int, among: _Mask | None
    ) -> tuple[_Numbers, _Scores]:
        """Return the best rows of a block that is not indexed, by the scores of its rows."""
        self.unindexed.add(block)
        rows = self.table.read_block(self.table.blocks(), block, ranking.builder.columns)
        values = ranking.builder.input_values(rows)
        scores = ranking.call(lambda: checked_scores(ranking.kind.score(ranking.probe, values), values.num_rows))
        return best_of(scores, limit, among)

    def _matching_rows(self, blocks: BlockFrame, block: int) -> _Mask | None:
        """Say of each row of a block whether it counts and ``where`` is TRUE on it: bool of shape (rows,).

        None: all are wanted.
        """
        if self.where is None:
            return live_among(blocks, block)
        names = column_names(predicate_terms(self.where))
        # A condition may name no column, and then any will do to count rows.
        rows = self.table.read_block(blocks, block, names or self.table.snapshot.schema.names[:1])
        matches = evaluate(self.where, rows, self.engine.context, self.engine.functions)
        return live_among(blocks, block, unpack_mask(matches))
