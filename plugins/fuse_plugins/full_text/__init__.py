"""Full text: which rows match words, phrases and prefixes, and which match best.

One inverted index for each block and column, read by range; tantivy's analysers say what a word is, and its scores what
is best. A vote names rows, so that a local scan decodes only where there are hits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    BlockBatch,
    Conjunction,
    Function,
    IndexKind,
    Input,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
    map_concurrently,
)
from fuse_index.predicate import Call, Context, Leaf
from fuse_plugins.full_text import ranking
from fuse_plugins.full_text.analysis import Analyzer
from fuse_plugins.full_text.evaluate import MatchMasks, evaluate_query, has_phrase
from fuse_plugins.full_text.highlighting import highlight_spans
from fuse_plugins.full_text.inverted import InvertedIndex
from fuse_plugins.full_text.layout import TEXT_SUMMARY_TYPE, StoredPostings, write_postings
from fuse_plugins.full_text.match_function import MATCH_FUNCTION, MATCH_NAME, parse_match_call
from fuse_plugins.full_text.syntax import Query

BYTES_PER_WORD = float(1 << 16)
"""Bytes to read of a block for a word, about."""
MISSING_LIBRARY_MESSAGE = "full text needs tantivy: pip install 'fuse-index[fulltext]'"


@dataclass(frozen=True)
class FullTextOptions:
    """``tokenizer``: default, raw, whitespace, en_stem and other languages' stemmers, ngram(min,max). ``stop_words``:
    words separated by commas, or a language. ``positions``: needed for phrases; they make the index about half as large
    again.
    """

    tokenizer: str = "default"
    stop_words: str = ""
    positions: bool = True

    def __post_init__(self) -> None:
        Analyzer(self.tokenizer, self.stop_words)

    @property
    def analyzer(self) -> Analyzer:
        return Analyzer(self.tokenizer, self.stop_words)


@dataclass(frozen=True)
class ColumnQuery:
    """A query on one of the columns of an index."""

    column: int
    query: Query
    analyzer: Analyzer


class FullText(IndexKind):
    """Terms of one or more columns of text, with the rows and the places where they stand."""

    name = "full_text"
    Options = FullTextOptions
    searches = MATCH_NAME

    def accepts(self, inputs: Sequence[Input], options: FullTextOptions) -> Refusal | None:
        if find_spec("tantivy") is None:
            return Refusal(Reason.PLUGIN_MISSING, MISSING_LIBRARY_MESSAGE)
        for given in inputs:
            if given.type != pa.string():
                return Refusal(Reason.TYPE_MISMATCH, f"full_text is on text, and this is {given.type}")
        return None

    def summary_type(self, inputs: Sequence[Input], options: FullTextOptions) -> pa.DataType:
        return pa.list_(TEXT_SUMMARY_TYPE)

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: FullTextOptions) -> Sidecar:
        summaries: list[Mapping[str, Any]] = []
        payload: list[bytes] = []
        for column in rows.columns:
            tokens = options.analyzer.tokenize(
                column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            )
            positions = options.positions and not options.analyzer.is_ngram
            summary, data = write_postings(
                InvertedIndex.from_tokens(tokens, len(column)), positions, sum(map(len, payload))
            )
            summaries.append(summary)
            payload.append(data)
        return Sidecar(summaries, b"".join(payload))

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: FullTextOptions, context: Context
    ) -> Probe | Refusal:
        asked = _column_query(what, inputs, options)
        if isinstance(asked, Refusal):
            return asked
        return Probe(asked, cost=BYTES_PER_WORD)

    def probe(self, probe: Probe, batch: BlockBatch) -> Ballot:
        asked: ColumnQuery = probe.what
        summaries = batch.summaries.to_pylist() if batch.summaries is not None else [None] * len(batch)

        def truth(unit: int) -> MatchMasks | None:
            stored = _stored_postings(batch, summaries, unit, asked.column)
            if stored is None:
                return None
            stored.wants_positions = stored.summary["positions"] and has_phrase(asked.query)
            return evaluate_query(asked.query, stored)

        return _ballot(batch, map_concurrently(truth, range(len(batch))))

    def inspect(self, batch: BlockBatch, options: FullTextOptions) -> Mapping[str, Any]:
        summaries = [one for one in (batch.summaries.to_pylist() if batch.summaries is not None else []) if one]
        columns = [[one[number] for one in summaries] for number in range(len(summaries[0]) if summaries else 0)]
        return {
            "tokenizer": options.tokenizer,
            "documents": [sum(one["rows"] for one in column) for column in columns],
            "tokens": [sum(one["tokens"] for one in column) for column in columns],
            "terms in a block": [max(one["terms"] for one in column) for column in columns],
            "top terms": [self._top(batch, number) for number in range(len(columns))],
        }

    def _top(self, batch: BlockBatch, column: int, most: int = 10) -> str:
        """Of the first block that has an index: the terms in most rows."""
        summaries = batch.summaries.to_pylist() if batch.summaries is not None else []
        for unit in range(len(summaries)):
            if (stored := _stored_postings(batch, summaries, unit, column)) is not None:
                return ", ".join(f"{term} ({count:,})" for term, count in stored.top_terms(most))
        return ""

    # --- ranking --------------------------------------------------------------------------------------------------

    def compile_ranking(
        self, what: Call, inputs: Sequence[Input], options: FullTextOptions, context: Context
    ) -> Probe | Refusal:
        asked = _column_query(what, inputs, options)
        if isinstance(asked, Refusal):
            return asked
        if has_phrase(asked.query) and not options.positions:
            return Refusal(Reason.LEAF_UNSUPPORTED, "a phrase is ranked by its positions, and this index keeps none")
        return Probe(asked, cost=BYTES_PER_WORD)

    def gather(self, probe: Probe, batch: BlockBatch) -> ranking.TermStatistics:
        asked: ColumnQuery = probe.what
        summaries = batch.summaries.to_pylist() if batch.summaries is not None else [None] * len(batch)

        def counted(unit: int) -> ranking.TermStatistics:
            stored = _stored_postings(batch, summaries, unit, asked.column)
            return ranking.TermStatistics() if stored is None else ranking.gather_statistics(asked.query, stored)

        return ranking.merge_term_statistics(map_concurrently(counted, range(len(batch))))

    def merge_statistics(self, parts: Sequence[ranking.TermStatistics]) -> ranking.TermStatistics:
        return ranking.merge_term_statistics(parts)

    def bound(self, probe: Probe, statistics: ranking.TermStatistics, batch: BlockBatch) -> npt.NDArray[np.float64]:
        asked: ColumnQuery = probe.what
        summaries = batch.summaries.to_pylist() if batch.summaries is not None else [None] * len(batch)

        def best(unit: int) -> float:
            stored = _stored_postings(batch, summaries, unit, asked.column)
            return -np.inf if stored is None else ranking.score_bound(asked.query, stored, statistics)

        return np.array(map_concurrently(best, range(len(batch))), np.float64)

    def top(
        self,
        probe: Probe,
        statistics: ranking.TermStatistics,
        batch: BlockBatch,
        unit: int,
        k: int,
        among: npt.NDArray[np.bool_] | None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        asked: ColumnQuery = probe.what
        stored = _stored_postings(
            batch,
            batch.summaries.to_pylist() if batch.summaries is not None else [None] * len(batch),
            unit,
            asked.column,
        )
        if stored is None:
            return np.zeros(0, np.int64), np.zeros(0)
        stored.wants_counts, stored.wants_positions = True, has_phrase(asked.query)
        return ranking.top_rows(ranking.score_rows(asked.query, stored, stored.row_lengths(), statistics), k, among)

    def highlight(self, probe: Probe, text: str) -> Sequence[tuple[int, int]]:
        asked: ColumnQuery = probe.what
        return highlight_spans(asked.query, asked.analyzer, text)


def _column_query(
    what: Leaf | Conjunction | Call, inputs: Sequence[Input], options: FullTextOptions
) -> ColumnQuery | Refusal:
    found = parse_match_call(what) if isinstance(what, Call) else None
    if found is None or not isinstance(what, Call):
        return Refusal(Reason.LEAF_UNSUPPORTED, "full_text answers match()")
    columns = [number for number, given in enumerate(inputs) if given.term == what.arguments[0]]
    if not columns:
        return Refusal(Reason.LEAF_UNSUPPORTED, "match() is on another term than this index")
    query, chosen = found
    if chosen.analyzer != options.analyzer:
        theirs, ours = (
            f"tokenizer={one.tokenizer} stop_words={one.stop_words!r}" for one in (chosen.analyzer, options.analyzer)
        )
        return Refusal(Reason.LEAF_UNSUPPORTED, f"match() is with {theirs}, and this index with {ours}")
    return ColumnQuery(columns[0], query, chosen.analyzer)


def _stored_postings(batch: BlockBatch, summaries: Sequence[Any], unit: int, column: int) -> StoredPostings | None:
    payload = batch.payload(unit)
    if summaries[unit] is None or payload is None:
        return None
    return StoredPostings(payload, summaries[unit][column], int(batch.row_counts[unit]))


def _ballot(batch: BlockBatch, truths: Sequence[MatchMasks | None]) -> Ballot:
    """A vote for each zone; of zones that are neither empty nor full, one for each row."""
    bits = np.full(len(batch.zone_rows), SOME, np.uint8)
    rows: dict[int, npt.NDArray[np.uint8]] = {}
    for unit, truth in enumerate(truths):
        if truth is None:
            continue
        first = int(batch.zone_offsets[unit])
        ends = np.cumsum(batch.zone_rows[first : int(batch.zone_offsets[unit + 1])])
        for zone, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True)):
            may, does = truth.may_match[end - size : end], truth.always_matches[end - size : end]
            if not may.any():
                bits[first + zone] = NONE
            elif does.all():
                bits[first + zone] = ALL
            else:
                rows[first + zone] = may * np.uint8(ALL) | ~does * np.uint8(NONE)
    return Ballot(bits, rows)


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [FullText]


@hookimpl
def fuse_index_functions() -> list[Function]:
    return [MATCH_FUNCTION]
