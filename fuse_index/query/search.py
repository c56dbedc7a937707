"""Ranked search: the best rows of a snapshot, from indexes that rank.

Scores depend on statistics of all blocks, whatever ``where`` leaves of them, so that a row scores the same in every
search of a snapshot. Blocks are read in the order of the best that they can hold, until no other can hold better. A
block that an index does not know, or whose index is damaged, is indexed in memory for the occasion: it is never left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import DefinitionError, IndexFault
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves
from fuse_index.indexes.block_batch import FrameBatch, ZoneMap
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition, load_definitions
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import (
    BlockBatch,
    ColumnStatistics,
    Highlights,
    Payload,
    PayloadValue,
    Probe,
    Ranks,
    Refusal,
)
from fuse_index.indexes.sandbox import PluginFailure, map_concurrently, sandboxed_call
from fuse_index.predicate import Call, Column, Literal, Predicate, Term
from fuse_index.pruning.planner import plan_scan
from fuse_index.pruning.probe import has_summary_or_payload
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, StoredTable

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]
_Scores = npt.NDArray[np.float64]

RANKING_TIMEOUT_SECONDS = 60.0
"""How long a kind may take for one block."""
SCORE_COLUMN, HIGHLIGHT_COLUMN = "_score", "_highlight"


@dataclass(frozen=True)
class CompiledRanking:
    """One index that ranks what is searched for."""

    definition: IndexDefinition
    kind: Any
    probe: Probe


def ranked_search(
    table: StoredTable,
    engine: Engine,
    columns: Sequence[Column],
    query: str,
    options: str | None,
    limit: int,
    where: Predicate | None,
    names: Sequence[str],
    highlight: tuple[str, str] | None,
) -> pa.Table:
    """The ``limit`` best rows, best first, with ``_score``; of several columns the scores are added. Raises
    DefinitionError.
    """
    rankings = [_compile_ranking(table, engine, column, query, options) for column in columns]
    found = _RankedSearch(table, engine, rankings, where).best(limit)
    rows = _read_rows(table, found, list(dict.fromkeys([*names, *([columns[0].path[0]] if highlight else [])])))
    texts = rows.column(columns[0].path[0]).to_pylist() if highlight else []
    rows = rows.select(list(names)).append_column(
        SCORE_COLUMN, pa.array([score for _, _, score in found], pa.float64())
    )
    if not highlight:
        return rows
    kind, probe = rankings[0].kind, rankings[0].probe
    if not isinstance(kind, Highlights):
        raise DefinitionError(f"index kind {kind.name!r} does not highlight: leave highlight= out")
    marked = [_insert_marks(text, kind.highlight(probe, text or ""), highlight) for text in texts]
    return rows.append_column(HIGHLIGHT_COLUMN, pa.array(marked, pa.string()))


def _compile_ranking(
    table: StoredTable, engine: Engine, column: Column, query: str, options: str | None
) -> CompiledRanking:
    """The first index on the column that ranks such a query."""
    refused = []
    for definition in load_definitions(table.snapshot, engine.host, engine.context):
        if not isinstance(definition, IndexDefinition):
            refused.append(f"index {definition.name!r}: {definition.refusal.detail or definition.refusal.reason}")
            continue
        kind = engine.host.kinds[definition.kind]
        if not isinstance(kind, Ranks) or column not in [given.term for given in definition.inputs]:
            continue
        arguments: tuple[Term, ...] = (
            column,
            *(Literal(text, pa.string()) for text in (query, options) if text is not None),
        )
        what = Call(kind.searches, arguments)
        compile_ranking = partial(kind.compile_ranking, what, definition.inputs, definition.options, engine.context)
        answer = sandboxed_call(compile_ranking, RANKING_TIMEOUT_SECONDS)
        match answer:
            case Probe():
                return CompiledRanking(definition, kind, answer)
            case Refusal(_, detail) | PluginFailure(_, detail):
                refused.append(f"index {definition.name!r}: {detail}")
    why = "; ".join(refused) or "there is no index on it that ranks: create one, such as full_text"
    raise DefinitionError(f"column {'.'.join(column.path)!r} cannot be searched: {why}")


def _read_rows(table: StoredTable, found: Sequence[tuple[int, int, float]], names: list[str]) -> pa.Table:
    """These columns of rows, which are given as (block, row), in their order."""
    blocks = table.blocks()
    parts, places = [], []
    for block in dict.fromkeys(block for block, _, _ in found):
        wanted = np.zeros(int(blocks.row_counts[block]), np.bool_)
        wanted[[row for other, row, _ in found if other == block]] = True
        parts.append(table.read_block(blocks, block, names, None, wanted))
        places += [(block, int(row)) for row in np.flatnonzero(wanted)]
    if not parts:
        whole = table.snapshot.schema.arrow
        return pa.schema([whole.field(name) for name in names]).empty_table()
    number = {place: at for at, place in enumerate(places)}
    return pa.concat_tables(parts).take(pa.array([number[block, row] for block, row, _ in found]))


def _insert_marks(text: str | None, spans: Sequence[tuple[int, int]], signs: tuple[str, str]) -> str | None:
    if text is None:
        return None
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], signs[0], text[start:end], signs[1]]
        last = end
    return "".join([*parts, text[last:]])


@dataclass
class _RankedSearch:
    table: StoredTable
    engine: Engine
    rankings: Sequence[CompiledRanking]
    where: Predicate | None
    batches: dict[tuple[int, int], BlockBatch] = field(default_factory=dict)

    def best(self, limit: int) -> list[tuple[int, int, float]]:
        """(block, row, score) of the best rows, best first; of equals, the first in the table."""
        blocks = self.table.blocks()
        if not len(blocks) or not limit:
            return []
        for number in range(len(self.rankings)):
            self._open_sidecars(number, blocks)
        statistics = [self._gather_statistics(number, blocks) for number in range(len(self.rankings))]
        kept = np.ones(len(blocks), np.bool_) if self.where is None else self._planned_blocks()
        bounds = sum(np.maximum(self._bounds(n, s, blocks), 0) for n, s in enumerate(statistics)) + np.where(
            kept, 0.0, -np.inf
        )
        found: list[tuple[int, int, float]] = []
        for block in np.argsort(-bounds, kind="stable").tolist():
            if bounds[block] <= 0 or (len(found) == limit and found[-1][2] > bounds[block]):
                break
            rows, scores = self._top(block, statistics, limit, self._matching_rows(blocks, block))
            found += [(block, row, score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
            found = sorted(found, key=lambda one: (-one[2], one[0], one[1]))[:limit]
        return found

    def _planned_blocks(self) -> _Mask:
        return plan_scan(self.table, self.where, self.engine).block_mask

    def _open_sidecars(self, number: int, blocks: BlockFrame) -> None:
        """What the index knows of each block, where it knows anything."""
        ranking = self.rankings[number]
        sidecars = blocks.sidecars(ranking.definition.key)
        if sidecars is None:
            return
        usable = (
            sidecars.indexed & np.isin(sidecars.versions, list(ranking.kind.reads)) & has_summary_or_payload(sidecars)
        )
        fields = (None,) * len(ranking.definition.inputs)
        zones = ZoneMap.of(blocks)
        for block in np.flatnonzero(usable).tolist():
            self.batches[number, block] = FrameBatch.from_sidecars(blocks, fields, zones, sidecars, np.array([block]))

    def _map_blocks(self, number: int, blocks: BlockFrame, work: Any) -> list[Any]:
        """``work`` on what is known of each block; of a block whose index fails, on one made of its rows."""

        def attempt(block: int) -> Any:
            if (number, block) in self.batches:
                answer = sandboxed_call(lambda: work(self.batches[number, block]), RANKING_TIMEOUT_SECONDS)
                if not isinstance(answer, PluginFailure):
                    return answer
            self.batches[number, block] = self._index_in_memory(number, blocks, block)
            return work(self.batches[number, block])

        return map_concurrently(attempt, range(len(blocks)))

    def _gather_statistics(self, number: int, blocks: BlockFrame) -> Any:
        kind, probe = self.rankings[number].kind, self.rankings[number].probe
        return kind.merge_statistics(self._map_blocks(number, blocks, lambda view: kind.gather(probe, view)))

    def _bounds(self, number: int, statistics: Any, blocks: BlockFrame) -> _Scores:
        kind, probe = self.rankings[number].kind, self.rankings[number].probe
        return np.array(
            self._map_blocks(number, blocks, lambda view: float(kind.bound(probe, statistics, view)[0])), np.float64
        )

    def _top(self, block: int, statistics: Sequence[Any], limit: int, among: _Mask | None) -> tuple[_Numbers, _Scores]:
        if len(self.rankings) == 1:
            return self._ranked(0, block, statistics[0], limit, among)
        size = int(self.batches[0, block].row_counts[0])
        total = np.full(size, -np.inf)
        for number, known in enumerate(statistics):
            rows, scores = self._ranked(number, block, known, size, among)
            total[rows] = np.where(np.isinf(total[rows]), scores, total[rows] + scores)
        rows = np.argsort(-total, kind="stable")[:limit]
        rows = rows[total[rows] > -np.inf]
        return rows, total[rows]

    def _ranked(
        self, number: int, block: int, statistics: Any, limit: int, among: _Mask | None
    ) -> tuple[_Numbers, _Scores]:
        ranking = self.rankings[number]

        def work() -> tuple[_Numbers, _Scores]:
            found: tuple[_Numbers, _Scores] = ranking.kind.top(
                ranking.probe, statistics, self.batches[number, block], 0, limit, among
            )
            return found

        answer = sandboxed_call(work, RANKING_TIMEOUT_SECONDS)
        if isinstance(answer, PluginFailure):  # its postings are damaged, which no dictionary has told
            self.batches[number, block] = self._index_in_memory(number, self.table.blocks(), block)
            return work()
        return answer

    def _index_in_memory(self, number: int, blocks: BlockFrame, block: int) -> BlockBatch:
        ranking = self.rankings[number]
        builder = IndexBuilder.for_definition(ranking.definition, self.engine.host, strict=True)
        zones = blocks.zone_rows[blocks.zone_offsets[block] : blocks.zone_offsets[block + 1]]
        offsets = np.append(0, np.cumsum(zones)).astype(np.int64)
        sidecar = builder.build(self.table.read_block(blocks, block, builder.columns), offsets)
        pack = None if sidecar is None else builder.pack([sidecar])
        if pack is None:
            raise IndexFault(
                ranking.definition.name,
                ranking.kind.name,
                Reason.PLUGIN_ERROR,
                "a block cannot be indexed to be searched",
            )
        summaries = pa.array(pack.summaries, builder.summary_type)
        span = pack.spans[0] or (0, 0)
        return _MemoryBlock(summaries, pack.data[span[0] : span[0] + span[1]], zones.astype(np.int64))

    def _matching_rows(self, blocks: BlockFrame, block: int) -> _Mask | None:
        """The rows of a block on which ``where`` is true."""
        if self.where is None:
            return None
        terms = (term for leaf in predicate_leaves(self.where) for term in leaf_terms(leaf))
        names = list(dict.fromkeys(column.path[0] for term in terms for column in columns_of(term)))
        rows = self.table.read_block(
            blocks, block, names or self.table.snapshot.schema.names[:1]
        )  # a condition may name no column
        mask: _Mask = (
            evaluate(self.where, rows, self.engine.context, self.engine.functions)
            .fill_null(False)
            .to_numpy(zero_copy_only=False)
        )
        return mask


@dataclass(frozen=True)
class _MemoryBlock:
    """One block, indexed in memory: a ``BlockBatch``."""

    summaries: pa.Array
    data: bytes
    zone_rows: _Numbers

    def __len__(self) -> int:
        return 1

    @property
    def row_counts(self) -> _Numbers:
        return np.array([self.zone_rows.sum()], np.int64)

    @property
    def zone_offsets(self) -> _Numbers:
        return np.array([0, len(self.zone_rows)], np.int64)

    def statistics(self, number: int) -> ColumnStatistics | None:
        return None

    def payload(self, unit: int) -> Payload | None:
        return _MemoryPayload(self.data, len(self.data))

    def packs(self) -> Sequence[tuple[Payload, _Numbers]]:
        return [(_MemoryPayload(self.data, len(self.data)), np.zeros(1, np.int64))]


@dataclass
class _MemoryPayload:
    """A payload that was never written."""

    data: bytes
    size: int
    decoded_values: dict[Any, Any] = field(default_factory=dict)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.data[start : start + length] for start, length in ranges]

    def decoded(
        self, span: tuple[int, int], decode: Callable[[bytes], PayloadValue], size: Callable[[PayloadValue], int]
    ) -> PayloadValue:
        found: PayloadValue = (
            self.decoded_values[span, decode] if (span, decode) in self.decoded_values else decode(self.read([span])[0])
        )
        self.decoded_values[span, decode] = found
        return found
