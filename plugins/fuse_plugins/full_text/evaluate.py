"""On which rows a query is true: masks of rows, from postings. Where positions are not kept, bounds of what is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.inverted import DocumentMask, Hits, Postings
from fuse_plugins.full_text.syntax import BooleanQuery, Fuzzy, Phrase, Prefix, Query, TermRange, Word


@dataclass(frozen=True, slots=True)
class MatchMasks:
    """Rows that may match, and rows that do; the same where all is known."""

    may_match: DocumentMask
    always_matches: DocumentMask

    @classmethod
    def exact(cls, mask: DocumentMask) -> MatchMasks:
        return cls(mask, mask)

    def __and__(self, other: MatchMasks) -> MatchMasks:
        return MatchMasks(self.may_match & other.may_match, self.always_matches & other.always_matches)

    def __or__(self, other: MatchMasks) -> MatchMasks:
        return MatchMasks(self.may_match | other.may_match, self.always_matches | other.always_matches)

    def __invert__(self) -> MatchMasks:
        return MatchMasks(~self.always_matches, ~self.may_match)


def evaluate_query(query: Query, postings: Postings) -> MatchMasks:
    """The rows on which a query is true, of rows that are not NULL."""
    match query:
        case BooleanQuery(must, may, never):
            wanted = [evaluate_query(part, postings) for part in must]
            if not must and may:
                wanted = [reduce(MatchMasks.__or__, (evaluate_query(part, postings) for part in may))]
            wanted += [~evaluate_query(part, postings) for part in never]
            return reduce(MatchMasks.__and__, wanted, MatchMasks.exact(np.ones(postings.rows, np.bool_)))
        case Phrase(terms):
            return _phrase(terms, postings)
        case Word(term):
            found = postings.hits(term)
            return MatchMasks.exact(_row_mask([] if found is None else [found], postings.rows))
        case _:
            return MatchMasks.exact(_row_mask(expand_query(query, postings), postings.rows))


def expand_query(query: Prefix | Fuzzy | TermRange, postings: Postings) -> list[Hits]:
    """Of each term that a prefix, a fuzzy word or a range stands for."""
    match query:
        case Prefix(start):
            low = start.encode()
            return postings.hits_between(low, next_prefix(low), None)
        case TermRange(start, end, with_start, with_end):
            low = b"" if start is None else start.encode() + (b"" if with_start else b"\0")
            high = None if end is None else end.encode() + (b"\0" if with_end else b"")
            return postings.hits_between(low, high, None)
        case Fuzzy(term, distance):
            return postings.hits_between(b"", None, within_distance(term, distance))


def next_prefix(start: bytes) -> bytes | None:
    """The least bytes that are greater than all that begin so; None if there are none."""
    cut = start.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None


def _row_mask(found: list[Hits], rows: int) -> DocumentMask:
    mask = np.zeros(rows, np.bool_)
    for hits in found:
        mask[hits.rows] = True
    return mask


def _phrase(terms: tuple[tuple[int, str], ...], postings: Postings) -> MatchMasks:
    found = []
    for _, term in terms:
        hits = postings.hits(term)
        if hits is None:
            return MatchMasks.exact(np.zeros(postings.rows, np.bool_))
        found.append(hits)
    all_of_them = reduce(np.logical_and, (_row_mask([hits], postings.rows) for hits in found))
    if any(hits.positions is None for hits in found):
        return MatchMasks(all_of_them, np.zeros(postings.rows, np.bool_))
    starts = reduce(np.intersect1d, (phrase_starts(hits, place) for hits, (place, _) in zip(found, terms, strict=True)))
    mask = np.zeros(postings.rows, np.bool_)
    mask[starts >> POSITION_BITS] = True
    return MatchMasks.exact(mask)


POSITION_BITS = 32
"""A row and a position in one number."""


def phrase_starts(hits: Hits, place: int) -> TokenNumbers:
    """Where the phrase would begin, for each occurrence of one of its terms."""
    assert hits.positions is not None
    began = hits.positions - place
    return ((np.repeat(hits.rows, hits.counts) << POSITION_BITS) + began)[began >= 0]


def within_distance(term: str, distance: int) -> Callable[[pa.Array], pa.Array]:
    """Picks the terms at most so many letters away, two neighbours that changed places counting as one."""
    letters = len(term)

    def wanted(terms: pa.Array) -> pa.Array:
        lengths = pc.utf8_length(terms)
        close = pc.and_(pc.greater_equal(lengths, letters - distance), pc.less_equal(lengths, letters + distance))
        mask = close.to_numpy(zero_copy_only=False).copy()
        numbers = np.flatnonzero(mask)
        for number, other in zip(numbers, terms.take(pa.array(numbers)).to_pylist(), strict=True):
            mask[number] = _is_within(term, other, distance)
        return pa.array(mask)

    return wanted


def _is_within(a: str, b: str, distance: int) -> bool:
    """Whether b is so near, by the table of Damerau and Levenshtein (each pair of neighbours swapped at most once)."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > distance:
            return False
    return row[-1] <= distance


def query_terms(query: Query) -> Iterator[str]:
    """Every single term that a query looks up."""
    match query:
        case Word(term):
            yield term
        case Phrase(terms):
            yield from (term for _, term in terms)
        case BooleanQuery(must, may, never):
            for part in (*must, *may, *never):
                yield from query_terms(part)


def has_phrase(query: Query) -> bool:
    match query:
        case Phrase():
            return True
        case BooleanQuery(must, may, never):
            return any(map(has_phrase, (*must, *may, *never)))
        case _:
            return False


def required_texts(query: Query) -> list[str] | None:
    """Texts of which a row that matches has at least one, letters of either case taken for equal; None if nobody can
    tell.
    """
    match query:
        case Word(term) | Prefix(term):
            return [term]
        case Phrase(terms):
            return [max((term for _, term in terms), key=len)]
        case BooleanQuery(must, may, _):
            for part in must:
                if (found := required_texts(part)) is not None:
                    return found
            if must or not may:
                return None
            each = [required_texts(part) for part in may]
            return (
                None
                if any(found is None for found in each)
                else [text for found in each if found is not None for text in found]
            )
        case _:
            return None
