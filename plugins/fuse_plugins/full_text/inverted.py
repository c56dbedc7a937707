"""Which rows have which terms: from tokens to sorted terms with their rows, and the reading side of it that queries
need.

``Postings`` are what ``judging`` and ``ranking`` see, whether of a batch in memory (``InvertedIndex``) or of an index
(``layout``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_plugins.full_text.analysis import TokenizedTexts, TokenNumbers

DocumentMask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Hits:
    """The rows of one term, ascending, and how often each has it; ``positions`` row after row, None if they are not
    kept.
    """

    rows: TokenNumbers
    counts: TokenNumbers
    positions: TokenNumbers | None


class Postings(Protocol):
    """The terms of ``rows`` rows."""

    @property
    def rows(self) -> int: ...

    def hits(self, term: str) -> Hits | None: ...

    def hits_between(self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None) -> list[Hits]:
        """Of all terms from ``low`` to before ``high`` (as bytes; None: to the end) that ``wanted`` picks from an array
        of them.
        """
        ...


@dataclass(frozen=True)
class InvertedIndex:
    """All terms, sorted by their bytes. ``starts[t]:starts[t + 1]`` are the (row, position) of term t, in order."""

    rows: int
    terms: pa.StringArray
    starts: TokenNumbers
    row: TokenNumbers
    position: TokenNumbers

    @classmethod
    def from_tokens(cls, tokens: TokenizedTexts, rows: int) -> InvertedIndex:
        used = np.bincount(tokens.term, minlength=len(tokens.terms))
        order = pc.sort_indices(tokens.terms).to_numpy().astype(np.int64)
        order = order[used[order] > 0]
        rank = np.zeros(len(tokens.terms), np.int64)
        rank[order] = np.arange(len(order))
        row, position = _sort_by_term(rank[tokens.term], tokens.row, tokens.position)
        starts = np.concatenate([[0], np.cumsum(used[order])]).astype(np.int64)
        return cls(rows, tokens.terms.take(pa.array(order)), starts, row, position)

    @cached_property
    def postings(self) -> tuple[TokenNumbers, TokenNumbers, TokenNumbers]:
        """Each (term, row) once: where it begins among the occurrences, how many there are, and for each term its
        first.
        """
        count = len(self.row)
        first = np.ones(count, np.bool_)
        first[1:] = self.row[1:] != self.row[:-1]
        first[self.starts[:-1]] = True
        at = np.flatnonzero(first)
        counts = np.diff(np.append(at, count))
        return at, counts, np.searchsorted(at, self.starts).astype(np.int64)

    def hits(self, term: str) -> Hits | None:
        number = pc.index(self.terms, pa.scalar(term)).as_py()
        return None if number < 0 else self._hits(number)

    def hits_between(self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None) -> list[Hits]:
        return [self._hits(number) for number in select_terms(self.terms, low, high, accept)]

    def _hits(self, number: int) -> Hits:
        at, counts, firsts = self.postings
        part = slice(firsts[number], firsts[number + 1])
        return Hits(self.row[at[part]], counts[part], self.position[self.starts[number] : self.starts[number + 1]])


def select_terms(
    terms: pa.Array, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None
) -> list[int]:
    """The numbers of the terms between two that are wanted."""
    raw = terms.cast(pa.binary())
    picked = pc.greater_equal(raw, pa.scalar(low))
    if high is not None:
        picked = pc.and_(picked, pc.less(raw, pa.scalar(high)))
    numbers = np.flatnonzero(picked.to_numpy(zero_copy_only=False))
    if accept is not None and len(numbers):
        numbers = numbers[accept(terms.take(pa.array(numbers))).to_numpy(zero_copy_only=False)]
    found: list[int] = numbers.tolist()
    return found


def _sort_by_term(term: TokenNumbers, row: TokenNumbers, position: TokenNumbers) -> tuple[TokenNumbers, TokenNumbers]:
    """Rows and positions, which ascend, put together by their terms.

    All three in one number are sorted by value, of which numpy is 8 times as fast as of finding the order and taking
    it.
    """
    high, middle, low = (int(numbers.max(initial=0)).bit_length() for numbers in (term, row, position))
    if high + middle + low > 63:
        order = np.argsort(term, kind="stable")
        return row[order], position[order]
    keys = term << (middle + low)
    keys |= row << low
    keys |= position
    keys.sort()
    return keys >> low & (1 << middle) - 1, keys & (1 << low) - 1
