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

from fuse_plugins.full_text.analysis import Numbers
from fuse_plugins.full_text.evaluate import SHIFT, _starts, judge, terms_of
from fuse_plugins.full_text.inverted import Mask
from fuse_plugins.full_text.layout import Stored
from fuse_plugins.full_text.syntax import Clauses, Phrase, Query, Word

Scores = npt.NDArray[np.float64]
K1, B = 1.2, 0.75


def _rounded() -> Numbers:
    """The lengths that one byte can say: exact up to 40, then with three bits after the first."""
    table = list(range(40))
    step = 40
    while len(table) < 256:
        block = 1 << max(0, (len(table) - 40) // 8 + 1)
        table.append(step)
        step += block
    return np.array(table, np.int64)


@dataclass(frozen=True)
class Statistics:
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
    def average(self) -> float:
        return self.tokens / self.rows if self.rows else 0.0


def gather(query: Query, stored: Stored) -> Statistics:
    frequencies = {term: stored.frequency(term) for term in set(terms_of(query))}
    return Statistics(stored.rows, stored.summary["tokens"], frequencies)


def merged(parts: Sequence[Statistics]) -> Statistics:
    found: dict[str, int] = {}
    for part in parts:
        for term, count in part.frequencies.items():
            found[term] = found.get(term, 0) + count
    return Statistics(sum(part.rows for part in parts), sum(part.tokens for part in parts), found)


def bound(query: Query, stored: Stored, statistics: Statistics) -> float:
    """No row of the block scores more: each term that the block has, as if nothing but it stood in a text."""
    return (
        sum((weight for term, weight in _weights(query, statistics) if term is None or stored.frequency(term)), 0.0)
        or -np.inf
    )


def _weights(query: Query, statistics: Statistics) -> Iterator[tuple[str | None, float]]:
    match query:
        case Word(term):
            yield term, statistics.idf(term) * (1 + K1)
        case Phrase(terms):
            yield terms[0][1], sum(statistics.idf(term) for _, term in terms) * (1 + K1)
        case Clauses(must, may, _):
            yield from (pair for part in (*must, *may) for pair in _weights(part, statistics))
            if not must and not may:
                yield None, 1.0
        case _:
            yield None, 1.0


def scores(query: Query, stored: Stored, lengths: Numbers, statistics: Statistics) -> Scores:
    """Of each row of a block; -inf where it does not match."""
    rounded = ROUNDED[np.searchsorted(ROUNDED, lengths, side="right") - 1]
    norms = np.asarray(K1 * (1 - B + B * rounded / max(statistics.average, 1e-9)), np.float64)
    found = _score(query, stored, norms, statistics)
    return np.where(judge(query, stored).does, found, -np.inf)


def _score(query: Query, stored: Stored, norms: Scores, statistics: Statistics) -> Scores:
    found = np.zeros(stored.rows)
    match query:
        case Word(term):
            if (hits := stored.hits(term)) is not None:
                found[hits.rows] = statistics.idf(term) * _saturated(hits.counts, norms[hits.rows])
        case Phrase(terms):
            rows, counts = _phrase_counts(terms, stored)
            found[rows] = sum(statistics.idf(term) for _, term in terms) * _saturated(counts, norms[rows])
        case Clauses(must, may, _):
            for part in (*must, *may):
                found += np.where(judge(part, stored).does, _score(part, stored, norms, statistics), 0.0)
            if not must and not may:
                found += 1.0
        case _:
            found[judge(query, stored).does] = 1.0
    return found


def _saturated(counts: Numbers, norms: Scores) -> Scores:
    return np.asarray(counts * (1 + K1) / (counts + norms))


def _phrase_counts(terms: tuple[tuple[int, str], ...], stored: Stored) -> tuple[Numbers, Numbers]:
    """The rows that have the phrase, and how often."""
    starts: Numbers | None = None
    for place, term in terms:
        hits = stored.hits(term)
        if hits is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if hits.positions is None:
            rows = np.flatnonzero(judge(Phrase(terms), stored).does)
            return rows, np.ones(len(rows), np.int64)
        here = _starts(hits, place)
        starts = here if starts is None else np.intersect1d(starts, here)
    assert starts is not None
    return np.unique(starts >> SHIFT, return_counts=True)


def best(scored: Scores, k: int, among: Mask | None) -> tuple[Numbers, Scores]:
    """The k best rows that match, best first; of equals, the first."""
    if among is not None:
        scored = np.where(among, scored, -np.inf)
    rows = np.flatnonzero(scored > -np.inf)
    if len(rows) > k:
        least = np.partition(scored[rows], len(rows) - k)[len(rows) - k]
        rows = rows[scored[rows] >= least]
    rows = rows[np.lexsort((rows, -scored[rows]))][:k]
    return rows, scored[rows]


ROUNDED = _rounded()
