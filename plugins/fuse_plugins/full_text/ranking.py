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
from fuse_plugins.full_text.stored_postings import StoredPostings
from fuse_plugins.full_text.syntax import BooleanQuery, Phrase, Query, Word

_Scores = npt.NDArray[np.float64]
_K1, _B = 1.2, 0.75


def _rounded_lengths() -> TokenNumbers:
    """List the 256 lengths that one byte can say: exact up to 40, then with three bits after the first."""
    table = list(range(40))
    length = 40
    while len(table) < 256:
        step = 1 << max(0, (len(table) - 40) // 8 + 1)
        table.append(length)
        length += step
    return np.array(table, np.int64)


@dataclass(frozen=True)
class TermStatistics:
    """Counts of some blocks that scores depend on."""

    rows: int = 0
    """All rows, those without any term too."""
    tokens: int = 0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    """The number of rows with each term of the query."""

    def idf(self, term: str) -> float:
        """The inverse document frequency of a term: how much rarer it is than a row."""
        frequency = self.frequencies.get(term, 0)
        return log(1 + (self.rows - frequency + 0.5) / (frequency + 0.5))

    @property
    def average_length(self) -> float:
        return self.tokens / self.rows if self.rows else 0.0


def gather_statistics(query: Query, stored: StoredPostings) -> TermStatistics:
    """Collect the statistics of one block for a query; reads dictionaries only."""
    frequencies = {term: stored.document_frequency(term) for term in set(query_terms(query))}
    return TermStatistics(stored.rows, stored.summary["tokens"], frequencies)


def merge_term_statistics(parts: Sequence[TermStatistics]) -> TermStatistics:
    """Add up the statistics of blocks."""
    frequencies: dict[str, int] = {}
    for part in parts:
        for term, count in part.frequencies.items():
            frequencies[term] = frequencies.get(term, 0) + count
    return TermStatistics(sum(part.rows for part in parts), sum(part.tokens for part in parts), frequencies)


def score_bound(query: Query, stored: StoredPostings, statistics: TermStatistics) -> float:
    """Bound the scores of a block's rows: each term that it has scores as if a text were nothing but that term.

    The result is -inf where no row can match.
    """
    weights = _term_weights(query, statistics)
    return sum((weight for term, weight in weights if term is None or stored.document_frequency(term)), 0.0) or -np.inf


def _term_weights(query: Query, statistics: TermStatistics) -> Iterator[tuple[str | None, float]]:
    """Yield the most that each part of a query adds to a score, and the term without which it adds nothing, if any."""
    match query:
        case Word(term):
            yield term, statistics.idf(term) * (1 + _K1)
        case Phrase(terms):
            yield terms[0][1], sum(statistics.idf(term) for _, term in terms) * (1 + _K1)
        case BooleanQuery(must, should, _):
            yield from (pair for part in (*must, *should) for pair in _term_weights(part, statistics))
            if not must and not should:
                yield None, 1.0
        case _:
            yield None, 1.0


def score_rows(query: Query, stored: StoredPostings, lengths: TokenNumbers, statistics: TermStatistics) -> _Scores:
    """Score each of the n rows of a block: float64 of shape (n,), -inf where a row does not match.

    ``lengths``: how many tokens each row has, int64 of shape (n,).
    """
    rounded = _ROUNDED_LENGTHS[np.searchsorted(_ROUNDED_LENGTHS, lengths, side="right") - 1]
    # A word counts less in a long text: this is what stands beside the count in the denominator.
    norms = np.asarray(_K1 * (1 - _B + _B * rounded / max(statistics.average_length, 1e-9)), np.float64)
    scores = _score(query, stored, norms, statistics)
    return np.where(evaluate_query(query, stored).always_matches, scores, -np.inf)


def _score(query: Query, stored: StoredPostings, norms: _Scores, statistics: TermStatistics) -> _Scores:
    scores = np.zeros(stored.rows)
    match query:
        case Word(term):
            if (hits := stored.hits(term)) is not None:
                scores[hits.rows] = statistics.idf(term) * _saturated(hits.counts, norms[hits.rows])
        case Phrase(terms):
            rows, counts = _phrase_counts(terms, stored)
            scores[rows] = sum(statistics.idf(term) for _, term in terms) * _saturated(counts, norms[rows])
        case BooleanQuery(must, should, _):
            for part in (*must, *should):
                scores += np.where(
                    evaluate_query(part, stored).always_matches, _score(part, stored, norms, statistics), 0.0
                )
            if not must and not should:
                scores += 1.0
        case _:
            scores[evaluate_query(query, stored).always_matches] = 1.0
    return scores


def _saturated(counts: TokenNumbers, norms: _Scores) -> _Scores:
    return np.asarray(counts * (1 + _K1) / (counts + norms))


def _phrase_counts(terms: tuple[tuple[int, str], ...], stored: StoredPostings) -> tuple[TokenNumbers, TokenNumbers]:
    """Find the rows that have the phrase, and how often: two int64 arrays of one shape."""
    starts: TokenNumbers | None = None
    for position, term in terms:
        hits = stored.hits(term)
        if hits is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if hits.positions is None:
            rows = np.flatnonzero(evaluate_query(Phrase(terms), stored).always_matches)
            return rows, np.ones(len(rows), np.int64)
        term_starts = phrase_starts(hits, position)
        starts = term_starts if starts is None else np.intersect1d(starts, term_starts)
    assert starts is not None
    return np.unique(starts >> POSITION_BITS, return_counts=True)


def top_rows(scores: _Scores, k: int, among: DocumentMask | None) -> tuple[TokenNumbers, _Scores]:
    """Return the k best rows that match, and their scores, best first; of equals, the first.

    ``scores``: float64 of shape (n,), -inf where a row does not match; ``among``: bool of shape (n,), the only rows to
    choose from. The results are int64 indices and float64, both of shape (min(k, matches),).
    """
    if among is not None:
        scores = np.where(among, scores, -np.inf)
    rows = np.flatnonzero(scores > -np.inf)
    if len(rows) > k:
        threshold = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
        rows = rows[scores[rows] >= threshold]
    rows = rows[np.lexsort((rows, -scores[rows]))][:k]
    return rows, scores[rows]


_ROUNDED_LENGTHS = _rounded_lengths()
