"""BM25 as tantivy computes it: k1 = 1.2, b = 0.75, lengths of texts rounded to one byte.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). Statistics may be merged over
blocks: then a word is as rare as it is in all of them. Prefixes, fuzzy words and ranges score 1, as tantivy has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
import numpy.typing as npt

from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.evaluate import POSITION_BITS, evaluate_query, phrase_starts, query_terms
from fuse_plugins.full_text.inverted import DocumentMask
from fuse_plugins.full_text.layout import StoredPostings
from fuse_plugins.full_text.syntax import BooleanQuery, Phrase, Query, Word

_Scores = npt.NDArray[np.float64]
K1, B = 1.2, 0.75


def _rounded_lengths() -> TokenNumbers:
    """The lengths that one byte can say: exact up to 40, then with three bits after the first."""
    table = list(range(40))
    step = 40
    while len(table) < 256:
        block = 1 << max(0, (len(table) - 40) // 8 + 1)
        table.append(step)
        step += block
    return np.array(table, np.int64)


@dataclass(frozen=True)
class TermStatistics:
    """Of blocks: their rows (those without any term too), their tokens, and in how many rows each term of the query
    is.
    """

    rows: int = 0
    tokens: int = 0
    frequencies: Mapping[str, int] = field(default_factory=dict)

    def idf(self, term: str) -> float:
        n = self.frequencies.get(term, 0)
        return log(1 + (self.rows - n + 0.5) / (n + 0.5))

    @property
    def average_length(self) -> float:
        return self.tokens / self.rows if self.rows else 0.0


def gather_statistics(query: Query, stored: StoredPostings) -> TermStatistics:
    frequencies = {term: stored.document_frequency(term) for term in set(query_terms(query))}
    return TermStatistics(stored.rows, stored.summary["tokens"], frequencies)


def merge_term_statistics(parts: Sequence[TermStatistics]) -> TermStatistics:
    found: dict[str, int] = {}
    for part in parts:
        for term, count in part.frequencies.items():
            found[term] = found.get(term, 0) + count
    return TermStatistics(sum(part.rows for part in parts), sum(part.tokens for part in parts), found)


def score_bound(query: Query, stored: StoredPostings, statistics: TermStatistics) -> float:
    """No row of the block scores more: each term that the block has, as if nothing but it stood in a text."""
    return (
        sum(
            (weight for term, weight in _weights(query, statistics) if term is None or stored.document_frequency(term)),
            0.0,
        )
        or -np.inf
    )


def _weights(query: Query, statistics: TermStatistics) -> Iterator[tuple[str | None, float]]:
    match query:
        case Word(term):
            yield term, statistics.idf(term) * (1 + K1)
        case Phrase(terms):
            yield terms[0][1], sum(statistics.idf(term) for _, term in terms) * (1 + K1)
        case BooleanQuery(must, may, _):
            yield from (pair for part in (*must, *may) for pair in _weights(part, statistics))
            if not must and not may:
                yield None, 1.0
        case _:
            yield None, 1.0


def score_rows(query: Query, stored: StoredPostings, lengths: TokenNumbers, statistics: TermStatistics) -> _Scores:
    """Of each row of a block; -inf where it does not match."""
    rounded = ROUNDED_LENGTHS[np.searchsorted(ROUNDED_LENGTHS, lengths, side="right") - 1]
    norms = np.asarray(K1 * (1 - B + B * rounded / max(statistics.average_length, 1e-9)), np.float64)
    found = _score(query, stored, norms, statistics)
    return np.where(evaluate_query(query, stored).always_matches, found, -np.inf)


def _score(query: Query, stored: StoredPostings, norms: _Scores, statistics: TermStatistics) -> _Scores:
    found = np.zeros(stored.rows)
    match query:
        case Word(term):
            if (hits := stored.hits(term)) is not None:
                found[hits.rows] = statistics.idf(term) * _saturated(hits.counts, norms[hits.rows])
        case Phrase(terms):
            rows, counts = _phrase_counts(terms, stored)
            found[rows] = sum(statistics.idf(term) for _, term in terms) * _saturated(counts, norms[rows])
        case BooleanQuery(must, may, _):
            for part in (*must, *may):
                found += np.where(
                    evaluate_query(part, stored).always_matches, _score(part, stored, norms, statistics), 0.0
                )
            if not must and not may:
                found += 1.0
        case _:
            found[evaluate_query(query, stored).always_matches] = 1.0
    return found


def _saturated(counts: TokenNumbers, norms: _Scores) -> _Scores:
    return np.asarray(counts * (1 + K1) / (counts + norms))


def _phrase_counts(terms: tuple[tuple[int, str], ...], stored: StoredPostings) -> tuple[TokenNumbers, TokenNumbers]:
    """The rows that have the phrase, and how often."""
    starts: TokenNumbers | None = None
    for place, term in terms:
        hits = stored.hits(term)
        if hits is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if hits.positions is None:
            rows = np.flatnonzero(evaluate_query(Phrase(terms), stored).always_matches)
            return rows, np.ones(len(rows), np.int64)
        here = phrase_starts(hits, place)
        starts = here if starts is None else np.intersect1d(starts, here)
    assert starts is not None
    return np.unique(starts >> POSITION_BITS, return_counts=True)


def top_rows(scored: _Scores, k: int, among: DocumentMask | None) -> tuple[TokenNumbers, _Scores]:
    """The k best rows that match, best first; of equals, the first."""
    if among is not None:
        scored = np.where(among, scored, -np.inf)
    rows = np.flatnonzero(scored > -np.inf)
    if len(rows) > k:
        least = np.partition(scored[rows], len(rows) - k)[len(rows) - k]
        rows = rows[scored[rows] >= least]
    rows = rows[np.lexsort((rows, -scored[rows]))][:k]
    return rows, scored[rows]


ROUNDED_LENGTHS = _rounded_lengths()
