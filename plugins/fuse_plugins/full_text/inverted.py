"""Inverted index: from the tokens of texts to sorted terms with the rows and positions of each.

``Postings`` are what ``evaluate`` and ``ranking`` see, whether of texts in memory (``InvertedIndex``) or of an index on
disk (``stored_postings``). An *occurrence* is one token; a *posting* is one term in one row, of one occurrence or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_plugins.full_text.analysis import OccurrenceNumbers, TokenizedTexts, TokenNumbers

_SLICE = 1 << 18
"""Occurrences that are worked on at a time."""
DocumentMask = npt.NDArray[np.bool_]
"""One bool per row."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The postings of one term, all int64."""

    rows: TokenNumbers
    """Its rows, ascending; shape (n,)."""
    counts: TokenNumbers
    """Occurrences in each of the rows; shape (n,)."""
    positions: TokenNumbers | None
    """Positions of the occurrences, row after row, shape (counts.sum(),); None if they are not kept."""


class Postings(Protocol):
    """The postings of all terms of ``rows`` rows."""

    @property
    def rows(self) -> int: ...

    def hits(self, term: str) -> Hits | None:
        """Look up one term; None if no row has it."""
        ...

    def hits_between(
        self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None
    ) -> Iterator[Hits]:
        """Look up all terms from ``low`` to before ``high`` (bytes; None: to the end) that are accepted, in any order.

        ``accept`` says which strings of an array to take, as booleans; None takes all.
        """
        ...


@dataclass(frozen=True)
class InvertedIndex:
    """The occurrences of t terms in some rows: n of them, by term, then row, then position.

    >>> from fuse_plugins.full_text.analysis import Analyzer
    >>> tokens = Analyzer().tokenize(pa.array(["late refund", "refund the refund"]))
    >>> index = InvertedIndex.from_tokens(tokens, rows=2)
    >>> index.terms.to_pylist(), index.starts.tolist()
    (['late', 'refund', 'the'], [0, 1, 4, 5])
    >>> index.row.tolist(), index.position.tolist()
    ([0, 0, 1, 1, 1], [0, 1, 0, 2, 1])
    """

    rows: int
    terms: pa.StringArray
    """Sorted by their bytes."""
    starts: TokenNumbers
    """Term i has the occurrences ``starts[i]:starts[i + 1]``; int64 of shape (t + 1,)."""
    row: OccurrenceNumbers
    """The row of each occurrence, int32 of shape (n,)."""
    position: OccurrenceNumbers
    """The position of each occurrence in its row, int32 of shape (n,)."""

    @classmethod
    def from_tokens(cls, tokens: TokenizedTexts, rows: int) -> InvertedIndex:
        occurrences = count_numbers(tokens.term, len(tokens.terms))
        order = pc.sort_indices(tokens.terms).to_numpy().astype(np.int64)
        order = order[occurrences[order] > 0]
        rank = np.zeros(len(tokens.terms), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        row, position = _sort_by_term(rank, tokens)
        starts = np.concatenate([[0], np.cumsum(occurrences[order])]).astype(np.int64)
        return cls(rows, tokens.terms.take(pa.array(order)), starts, row, position)

    @cached_property
    def postings(self) -> tuple[TokenNumbers, OccurrenceNumbers, TokenNumbers]:
        """Group occurrences into p postings: their first occurrences, their counts, and the first posting of each term.

        They are int64 of shape (p,), int32 of shape (p,) and int64 of shape (t + 1,).
        """
        count = len(self.row)
        is_first = np.ones(count, np.bool_)
        np.not_equal(self.row[1:], self.row[:-1], out=is_first[1:])
        is_first[self.starts[:-1]] = True
        first_occurrences = np.flatnonzero(is_first)
        counts = np.empty(len(first_occurrences), np.int32)
        np.subtract(first_occurrences[1:], first_occurrences[:-1], out=counts[:-1], casting="unsafe")
        counts[-1:] = count - first_occurrences[-1:]
        return first_occurrences, counts, np.searchsorted(first_occurrences, self.starts).astype(np.int64)

    def hits(self, term: str) -> Hits | None:
        number = pc.index(self.terms, pa.scalar(term)).as_py()
        return None if number < 0 else self._hits(number)

    def hits_between(
        self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None
    ) -> Iterator[Hits]:
        return map(self._hits, select_terms(self.terms, low, high, accept))

    def _hits(self, term_number: int) -> Hits:
        first_occurrences, counts, first_postings = self.postings
        postings = slice(first_postings[term_number], first_postings[term_number + 1])
        positions = self.position[self.starts[term_number] : self.starts[term_number + 1]].astype(np.int64)
        rows = self.row[first_occurrences[postings]].astype(np.int64)
        return Hits(rows, counts[postings].astype(np.int64), positions)


def select_terms(
    terms: pa.Array, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None
) -> list[int]:
    """Number the sorted terms from ``low`` to before ``high`` that are accepted; as ``Postings.hits_between``."""
    raw_terms = terms.cast(pa.binary())
    selected = pc.greater_equal(raw_terms, pa.scalar(low))
    if high is not None:
        selected = pc.and_(selected, pc.less(raw_terms, pa.scalar(high)))
    numbers = np.flatnonzero(selected.to_numpy(zero_copy_only=False))
    if accept is not None and len(numbers):
        numbers = numbers[accept(terms.take(pa.array(numbers))).to_numpy(zero_copy_only=False)]
    selected_numbers: list[int] = numbers.tolist()
    return selected_numbers


def count_numbers(numbers: OccurrenceNumbers, size: int) -> TokenNumbers:
    """How often each number from 0 to before ``size`` is among n of them, int32 of shape (n,): int64 of shape (size,).

    In slices, because ``bincount`` makes numbers of 8 bytes of all that it is given.
    """
    counts = np.zeros(size, np.int64)
    for piece in _slices(len(numbers)):
        counts += np.bincount(numbers[piece], minlength=size)
    return counts


def _sort_by_term(rank: OccurrenceNumbers, tokens: TokenizedTexts) -> tuple[OccurrenceNumbers, OccurrenceNumbers]:
    """Put the rows and positions of n tokens, which ascend, in the order of their terms; both int32 of shape (n,).

    ``rank``: the place of each of t terms in that order, int32 of shape (t,). All three are packed in one number and
    sorted by value: 8 times as fast as finding the order and taking it. Packing slice by slice takes no memory besides.
    """
    count = len(tokens.term)
    high, middle, low = (int(numbers.max(initial=0)).bit_length() for numbers in (rank, tokens.row, tokens.position))
    if high + middle + low > 63:
        order = np.argsort(rank[tokens.term], kind="stable")
        return tokens.row[order], tokens.position[order]
    keys = np.empty(count, np.int64)
    for piece in _slices(count):
        packed = keys[piece]
        packed[:] = rank[tokens.term[piece]]
        packed <<= middle
        packed |= tokens.row[piece]
        packed <<= low
        packed |= tokens.position[piece]
    keys.sort()
    row, position = np.empty(count, np.int32), np.empty(count, np.int32)
    for piece in _slices(count):
        packed = keys[piece]
        position[piece] = packed & (1 << low) - 1
        packed >>= low
        packed &= (1 << middle) - 1
        row[piece] = packed
    return row, position


def _slices(count: int) -> list[slice]:
    return [slice(start, start + _SLICE) for start in range(0, count, _SLICE)]
