"""Evaluation of queries on postings: masks of the rows on which a query is true.

Where positions are not kept, the masks are bounds of what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import prefix_end
from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.inverted import DocumentMask, Hits, Postings
from fuse_plugins.full_text.syntax import BooleanQuery, Fuzzy, Phrase, Prefix, Query, TermRange, Word


@dataclass(frozen=True, slots=True)
class MatchMasks:
    """Rows that may match, and rows that do; the same where all is known. Both bool, one value per row."""

    may_match: DocumentMask
    always_matches: DocumentMask

    @classmethod
    def exact(cls, mask: DocumentMask) -> MatchMasks:
        """Make masks of one bool per row that is known exactly."""
        return cls(mask, mask)

    def __and__(self, other: MatchMasks) -> MatchMasks:
        return MatchMasks(self.may_match & other.may_match, self.always_matches & other.always_matches)

    def __or__(self, other: MatchMasks) -> MatchMasks:
        return MatchMasks(self.may_match | other.may_match, self.always_matches | other.always_matches)

    def __invert__(self) -> MatchMasks:
        return MatchMasks(~self.always_matches, ~self.may_match)


def evaluate_query(query: Query, postings: Postings) -> MatchMasks:
    """Find the rows on which a query is true, of rows that are not NULL."""
    match query:
        case BooleanQuery(must, should, must_not):
            required = [evaluate_query(part, postings) for part in must]
            if not must and should:
                required = [reduce(MatchMasks.__or__, (evaluate_query(part, postings) for part in should))]
            required += [~evaluate_query(part, postings) for part in must_not]
            return reduce(MatchMasks.__and__, required, MatchMasks.exact(np.ones(postings.rows, np.bool_)))
        case Phrase(terms):
            return _phrase(terms, postings)
        case Word(term):
            hits = postings.hits(term)
            return MatchMasks.exact(_row_mask([] if hits is None else [hits], postings.rows))
        case _:
            return MatchMasks.exact(_row_mask(expand_query(query, postings), postings.rows))


def expand_query(query: Prefix | Fuzzy | TermRange, postings: Postings) -> Iterator[Hits]:
    """Look up each term that a prefix, a fuzzy word or a range stands for."""
    match query:
        case Prefix(start):
            low = start.encode()
            return postings.hits_between(low, prefix_end(low), None)
        case TermRange(start, end, with_start, with_end):
            low = b"" if start is None else start.encode() + (b"" if with_start else b"\0")
            high = None if end is None else end.encode() + (b"\0" if with_end else b"")
            return postings.hits_between(low, high, None)
        case Fuzzy(term, distance):
            return postings.hits_between(b"", None, within_distance(term, distance))


def _row_mask(hits_of_terms: Iterable[Hits], rows: int) -> DocumentMask:
    mask = np.zeros(rows, np.bool_)
    for hits in hits_of_terms:
        mask[hits.rows] = True
    return mask


def _phrase(terms: tuple[tuple[int, str], ...], postings: Postings) -> MatchMasks:
    hits_of_terms = []
    for _, term in terms:
        hits = postings.hits(term)
        if hits is None:
            return MatchMasks.exact(np.zeros(postings.rows, np.bool_))
        hits_of_terms.append(hits)
    all_terms = reduce(np.logical_and, (_row_mask([hits], postings.rows) for hits in hits_of_terms))
    if any(hits.positions is None for hits in hits_of_terms):
        return MatchMasks(all_terms, np.zeros(postings.rows, np.bool_))
    starts = reduce(
        np.intersect1d, (phrase_starts(hits, place) for hits, (place, _) in zip(hits_of_terms, terms, strict=True))
    )
    mask = np.zeros(postings.rows, np.bool_)
    mask[starts >> POSITION_BITS] = True
    return MatchMasks.exact(mask)


POSITION_BITS = 32
"""Bits of the position, where a row and a position are one number."""


def phrase_starts(hits: Hits, place: int) -> TokenNumbers:
    """Compute where the phrase would begin, for each of n occurrences of one of its terms, ``place`` tokens into it.

    Returns ``row << POSITION_BITS | position``, int64 of shape (m,), m <= n: without those before the text begins.
    """
    assert hits.positions is not None
    starts = hits.positions - place
    return ((np.repeat(hits.rows, hits.counts) << POSITION_BITS) + starts)[starts >= 0]


def within_distance(term: str, distance: int) -> Callable[[pa.Array], pa.Array]:
    """Return a function that says which strings of an array are at most so many letters away, as booleans.

    Two neighbours that changed places count as one letter.
    """
    letters = len(term)

    def accept(terms: pa.Array) -> pa.Array:
        lengths = pc.utf8_length(terms)
        close_lengths = pc.and_(
            pc.greater_equal(lengths, letters - distance), pc.less_equal(lengths, letters + distance)
        )
        mask = close_lengths.to_numpy(zero_copy_only=False).copy()
        candidates = np.flatnonzero(mask)
        for candidate, text in zip(candidates, terms.take(pa.array(candidates)).to_pylist(), strict=True):
            mask[candidate] = _is_within(term, text, distance)
        return pa.array(mask)

    return accept


def _is_within(a: str, b: str, distance: int) -> bool:
    """Return whether b is so near, by the table of Damerau and Levenshtein (neighbours are swapped at most once)."""
    previous_row: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        previous_row, row_before_previous, row = row, previous_row, [i]
        for j, other_letter in enumerate(b, 1):
            cost = min(previous_row[j] + 1, row[j - 1] + 1, previous_row[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other_letter:
                cost = min(cost, row_before_previous[j - 2] + 1)
            row.append(cost)
        if min(row) > distance:
            return False
    return row[-1] <= distance


def query_terms(query: Query) -> Iterator[str]:
    """Yield every single term that a query looks up."""
    match query:
        case Word(term):
            yield term
        case Phrase(terms):
            yield from (term for _, term in terms)
        case BooleanQuery(must, should, must_not):
            for part in (*must, *should, *must_not):
                yield from query_terms(part)


def has_phrase(query: Query) -> bool:
    match query:
        case Phrase():
            return True
        case BooleanQuery(must, should, must_not):
            return any(map(has_phrase, (*must, *should, *must_not)))
        case _:
            return False


def required_texts(query: Query) -> list[str] | None:
    """List texts of which a row that matches has at least one; None if nobody can tell.

    Letters of either case are equal here.
    """
    match query:
        case Word(term) | Prefix(term):
            return [term]
        case Phrase(terms):
            return [max((term for _, term in terms), key=len)]
        case BooleanQuery(must, should, _):
            for part in must:
                if (texts := required_texts(part)) is not None:
                    return texts
            if must or not should:
                return None
            alternatives = [required_texts(part) for part in should]
            return (
                None
                if any(texts is None for texts in alternatives)
                else [text for texts in alternatives if texts is not None for text in texts]
            )
        case _:
            return None
