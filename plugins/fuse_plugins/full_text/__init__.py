"""Full text: which rows match words, phrases and prefixes, and which match best.

One inverted index for each block and column, read by range; tantivy's analysers say what a word is, and its scores what
is best. A vote names rows, so that a local scan decodes only where there are hits. From text to vote: ``analysis``
(texts to terms), ``inverted`` (terms to rows), ``layout`` (written as a payload), ``stored_postings`` (read again),
``syntax`` (a query), ``evaluate`` (the rows on which it is true) and ``ranking`` (which of them are best).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from fuse_plugins.full_text.layout import TEXT_SUMMARY_TYPE, write_postings
from fuse_plugins.full_text.match_function import MATCH_FUNCTION, MATCH_NAME, parse_match_call
from fuse_plugins.full_text.stored_postings import StoredPostings
from fuse_plugins.full_text.substrings import substring_query
from fuse_plugins.full_text.syntax import Query

_BYTES_PER_WORD = float(1 << 16)
"""Bytes to read of a block for a word, about."""
_MISSING_LIBRARY_MESSAGE = "full text needs tantivy: pip install tantivy"


@dataclass(frozen=True)
class FullTextOptions:
    """Options of a full-text index.

    ``tokenizer``: default, raw, whitespace, en_stem and other languages' stemmers, ngram(min,max). ``stop_words``:
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
    is_bound: bool = False
    """True if a row on which the query is true need not be one on which the leaf is."""


class FullText(IndexKind):
    """An inverted index of one or more columns of text: terms, with the rows and positions where they stand."""

    name = "full_text"
    Options = FullTextOptions
    searches = MATCH_NAME

    def accepts(self, inputs: Sequence[Input], options: FullTextOptions) -> Refusal | None:
        if find_spec("tantivy") is None:
            return Refusal(Reason.PLUGIN_MISSING, _MISSING_LIBRARY_MESSAGE)
        for index_input in inputs:
            if index_input.type != pa.string():
                return Refusal(Reason.TYPE_MISMATCH, f"full_text is on text, and this is {index_input.type}")
        return None

    def summary_type(self, inputs: Sequence[Input], options: FullTextOptions) -> pa.DataType:
        return pa.list_(TEXT_SUMMARY_TYPE)

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: FullTextOptions) -> Sidecar:
        """Invert each column of one block; its zones, int64 offsets of shape (n + 1,), play no part."""
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
    ) -> Probe[ColumnQuery] | Refusal:
        if (substring := substring_query(what, options.analyzer)) is not None:
            term, query = substring
            columns = [number for number, index_input in enumerate(inputs) if index_input.term == term]
            if columns:
                return Probe(ColumnQuery(columns[0], query, options.analyzer, is_bound=True), cost=_BYTES_PER_WORD)
        column_query = _column_query(what, inputs, options)
        if isinstance(column_query, Refusal):
            return column_query
        return Probe(column_query, cost=_BYTES_PER_WORD)

    def probe(self, probe: Probe[ColumnQuery], batch: BlockBatch) -> Ballot:
        column_query = probe.what
        summaries = _summary_values(batch)

        def match_unit(unit: int) -> MatchMasks | None:
            stored = _stored_postings(batch, summaries, unit, column_query.column)
            if stored is None:
                return None
            stored.wants_positions = stored.summary["positions"] and has_phrase(column_query.query)
            masks = evaluate_query(column_query.query, stored)
            return replace(masks, always_matches=np.zeros_like(masks.may_match)) if column_query.is_bound else masks

        return _ballot(batch, map_concurrently(match_unit, range(len(batch))))

    def inspect(self, batch: BlockBatch, options: FullTextOptions) -> Mapping[str, Any]:
        summaries = [summary for summary in _summary_values(batch) if summary]
        columns = [
            [summary[number] for summary in summaries] for number in range(len(summaries[0]) if summaries else 0)
        ]
        return {
            "tokenizer": options.tokenizer,
            "documents": [sum(summary["rows"] for summary in column) for column in columns],
            "tokens": [sum(summary["tokens"] for summary in column) for column in columns],
            "terms in a block": [max(summary["terms"] for summary in column) for column in columns],
            "top terms": [self._top_terms(batch, number) for number in range(len(columns))],
        }

    def _top_terms(self, batch: BlockBatch, column: int, limit: int = 10) -> str:
        """Show the terms in most rows of the first block that has an index."""
        summaries = _summary_values(batch)
        for unit in range(len(batch)):
            if (stored := _stored_postings(batch, summaries, unit, column)) is not None:
                return ", ".join(f"{term} ({count:,})" for term, count in stored.top_terms(limit))
        return ""

    # --- ranking --------------------------------------------------------------------------------------------------

    def compile_ranking(
        self, what: Call, inputs: Sequence[Input], options: FullTextOptions, context: Context
    ) -> Probe[ColumnQuery] | Refusal:
        column_query = _column_query(what, inputs, options)
        if isinstance(column_query, Refusal):
            return column_query
        if has_phrase(column_query.query) and not options.positions:
            return Refusal(Reason.LEAF_UNSUPPORTED, "a phrase is ranked by its positions, and this index keeps none")
        return Probe(column_query, cost=_BYTES_PER_WORD)

    def gather(self, probe: Probe[ColumnQuery], batch: BlockBatch) -> ranking.TermStatistics:
        column_query = probe.what
        summaries = _summary_values(batch)

        def gather_unit(unit: int) -> ranking.TermStatistics:
            stored = _stored_postings(batch, summaries, unit, column_query.column)
            return ranking.TermStatistics() if stored is None else ranking.gather_statistics(column_query.query, stored)

        return ranking.merge_term_statistics(map_concurrently(gather_unit, range(len(batch))))

    def merge_statistics(self, parts: Sequence[ranking.TermStatistics]) -> ranking.TermStatistics:
        return ranking.merge_term_statistics(parts)

    def bound(
        self, probe: Probe[ColumnQuery], statistics: ranking.TermStatistics, batch: BlockBatch
    ) -> npt.NDArray[np.float64]:
        """Bound the scores in each of n blocks: float64 of shape (n,), -inf where no row matches."""
        column_query = probe.what
        summaries = _summary_values(batch)

        def unit_bound(unit: int) -> float:
            stored = _stored_postings(batch, summaries, unit, column_query.column)
            return -np.inf if stored is None else ranking.score_bound(column_query.query, stored, statistics)

        return np.array(map_concurrently(unit_bound, range(len(batch))), np.float64)

    def top(
        self,
        probe: Probe[ColumnQuery],
        statistics: ranking.TermStatistics,
        batch: BlockBatch,
        unit: int,
        k: int,
        among: npt.NDArray[np.bool_] | None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return row numbers, int64 of shape (m,), and scores, float64 of shape (m,), of the m <= k best rows.

        ``among``: bool, one value per row of the block; only rows where it is true are ranked.
        """
        column_query = probe.what
        stored = _stored_postings(batch, _summary_values(batch), unit, column_query.column)
        if stored is None:
            return np.zeros(0, np.int64), np.zeros(0)
        stored.wants_counts, stored.wants_positions = True, has_phrase(column_query.query)
        return ranking.top_rows(
            ranking.score_rows(column_query.query, stored, stored.row_lengths(), statistics), k, among
        )

    def highlight(self, probe: Probe[ColumnQuery], text: str) -> Sequence[tuple[int, int]]:
        column_query = probe.what
        return highlight_spans(column_query.query, column_query.analyzer, text)


def _summary_values(batch: BlockBatch) -> list[Any]:
    """The summary of each unit, a list of columns; None where the unit is not indexed."""
    return [None] * len(batch) if batch.summaries is None else batch.summaries.to_pylist()


def _column_query(
    what: Leaf | Conjunction | Call, inputs: Sequence[Input], options: FullTextOptions
) -> ColumnQuery | Refusal:
    parsed = parse_match_call(what) if isinstance(what, Call) else None
    if parsed is None or not isinstance(what, Call):
        return Refusal(Reason.LEAF_UNSUPPORTED, "full_text answers match(), and with ngram() parts of texts")
    columns = [number for number, index_input in enumerate(inputs) if index_input.term == what.arguments[0]]
    if not columns:
        return Refusal(Reason.LEAF_UNSUPPORTED, "match() is on another term than this index")
    query, query_options = parsed
    if query_options.analyzer != options.analyzer:
        theirs, ours = (
            f"tokenizer={analyzer.tokenizer} stop_words={analyzer.stop_words!r}"
            for analyzer in (query_options.analyzer, options.analyzer)
        )
        return Refusal(Reason.LEAF_UNSUPPORTED, f"match() is with {theirs}, and this index with {ours}")
    return ColumnQuery(columns[0], query, query_options.analyzer)


def _stored_postings(batch: BlockBatch, summaries: Sequence[Any], unit: int, column: int) -> StoredPostings | None:
    payload = batch.payload(unit)
    if summaries[unit] is None or payload is None:
        return None
    return StoredPostings(payload, summaries[unit][column], int(batch.row_counts[unit]))


def _ballot(batch: BlockBatch, matches: Sequence[MatchMasks | None]) -> Ballot:
    """A vote for each zone; of zones that are neither empty nor full, one for each row."""
    bits = np.full(len(batch.zone_rows), SOME, np.uint8)
    rows: dict[int, npt.NDArray[np.uint8]] = {}
    for unit, match in enumerate(matches):
        if match is None:
            continue
        first = int(batch.zone_offsets[unit])
        ends = np.cumsum(batch.zone_rows[first : int(batch.zone_offsets[unit + 1])])
        for zone, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True)):
            may_match, always_matches = match.may_match[end - size : end], match.always_matches[end - size : end]
            if not may_match.any():
                bits[first + zone] = NONE
            elif always_matches.all():
                bits[first + zone] = ALL
            else:
                rows[first + zone] = may_match * np.uint8(ALL) | ~always_matches * np.uint8(NONE)
    return Ballot(bits, rows)


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [FullText]


@hookimpl
def fuse_index_functions() -> list[Function]:
    return [MATCH_FUNCTION]
