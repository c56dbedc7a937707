"""Votes: which outcomes a predicate may have on the rows of a unit (a segment, a block or a zone).

Three sets over-approximate the truth: rows that may be TRUE, may be FALSE, may be NULL. Of each set one bit a unit is
kept, "possible" or "impossible", so a vote is three bits and the votes on many units are a vector of small integers.
Where an index knows single rows, the unit also has a vector of such votes, one a row, and the same tables combine them.

Votes on ``a > 5``, of three blocks with the values (1, 2), (9, NULL) and (3, 7):

>>> votes = Ballot(np.array([FALSE, TRUE | NULL, TRUE | FALSE], np.uint8))
>>> votes.may_match.tolist(), votes.always_matches.tolist()
([False, True, True], [False, False, False])

NOT is exact: it is TRUE on all of the first block, on none of the second (where a row is FALSE or NULL), and the third
must be read again. One bit a block, "may match", could not tell: its opposite would drop the third.

>>> (~votes).may_match.tolist(), (~votes).always_matches.tolist()
([True, False, True], [True, False, False])

AND of two rows is SQL's, and of two sets of outcomes it is every pair of them:

=======  =======  =======  =======
AND      TRUE     FALSE    NULL
=======  =======  =======  =======
TRUE     TRUE     FALSE    NULL
FALSE    FALSE    FALSE    FALSE
NULL     NULL     FALSE    NULL
=======  =======  =======  =======

>>> other = Ballot(np.array([UNKNOWN, FALSE, TRUE], np.uint8))
>>> (votes & other).bits.tolist() == [FALSE, FALSE, TRUE | FALSE]
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

TRUE, FALSE, NULL = 1, 2, 4
UNKNOWN = TRUE | FALSE | NULL

# What an index author says of the rows whose inputs are not NULL; the engine adds the NULLs.
NONE, ALL, SOME = FALSE, TRUE, TRUE | FALSE

_Bits = npt.NDArray[np.uint8]


def _and(a: int, b: int) -> int:
    true = a & b & TRUE
    false = (a | b) & FALSE
    null = (a & NULL and b & (TRUE | NULL)) or (b & NULL and a & (TRUE | NULL))
    return true | false | (NULL if null else 0)


def _not(a: int) -> int:
    return (FALSE if a & TRUE else 0) | (TRUE if a & FALSE else 0) | (a & NULL)


_NOT = np.array([_not(a) for a in range(8)], np.uint8)
_AND = np.array([[_and(a, b) for b in range(8)] for a in range(8)], np.uint8)
_OR = _NOT[_AND[np.ix_(_NOT, _NOT)]]


@dataclass(frozen=True, slots=True)
class Ballot:
    """Votes on n units.

    ``bits``: uint8, shape (n,); ``bits[i]`` holds the possible outcomes on unit i, as TRUE | FALSE | NULL. ``rows[i]``,
    where known: uint8, shape (rows of unit i,), the same for each row; then ``bits[i]`` is the union of ``rows[i]``.
    """

    bits: _Bits
    rows: Mapping[int, _Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.bits)

    @classmethod
    def unknown(cls, units: int) -> Self:
        """Nothing is known of any unit."""
        return cls(np.full(units, UNKNOWN, np.uint8))

    @classmethod
    def constant(cls, units: int, outcomes: int) -> Self:
        """Make a ballot on which the same outcomes are possible on each unit."""
        return cls(np.full(units, outcomes, np.uint8))

    def __invert__(self) -> Ballot:
        """NOT: what may be TRUE may be FALSE, and the reverse; NULL stays."""
        return Ballot(_NOT[self.bits], {i: _NOT[rows] for i, rows in self.rows.items()})

    def __and__(self, other: Ballot) -> Ballot:
        return _combine(_and_all, self, other)

    def __or__(self, other: Ballot) -> Ballot:
        return _combine(_or_all, self, other)

    def intersect(self, other: Ballot) -> Ballot:
        """Two opinions on the same leaf: only what both hold possible. Zero bits mean that one of them is wrong."""
        return _combine(np.bitwise_and, self, other)

    def constrain_by(self, other: Ballot) -> Ballot:
        """Votes on a predicate that is TRUE only where ``other`` is: what cannot be TRUE there cannot be TRUE here.

        Where nothing would be left, one of the two is wrong, and nothing is known.
        """
        bits = np.where(other.may_match, self.bits, self.bits & ~np.uint8(TRUE))
        bits[bits == 0] = UNKNOWN
        rows = {}
        for unit in self.rows.keys() | other.rows.keys():
            possible = other.rows.get(unit, other.bits[unit]) & TRUE
            row = np.where(
                possible, self.rows.get(unit, self.bits[unit]), self.rows.get(unit, self.bits[unit]) & ~np.uint8(TRUE)
            )
            rows[unit] = np.where(row == 0, np.uint8(UNKNOWN), row).astype(np.uint8)
            bits[unit] = np.bitwise_or.reduce(rows[unit], initial=0)
        return Ballot(bits, rows)

    def take(self, units: npt.NDArray[np.int64]) -> Ballot:
        """The votes on these units, in this order. ``units``: int64, shape (k,)."""
        return Ballot(
            self.bits[units], {i: self.rows[u] for i, u in enumerate(units) if u in self.rows} if self.rows else {}
        )

    def cut(self, owners: npt.NDArray[np.int64], row_counts: npt.NDArray[np.int64]) -> Ballot:
        """The votes on the parts of some units: on blocks of segments, on zones of blocks.

        ``owners``: int64, shape (k,), ascending, the unit that each part belongs to; ``row_counts``: int64, shape (k,),
        the rows of each part. The parts of a unit stand in the order of its rows and hold all of them. A part gets the
        votes on the rows that are its own, and its own vote is their union. Raises ValueError where a unit has more or
        fewer votes on rows than its parts have rows.

        >>> ballot = Ballot(np.array([NONE, SOME], np.uint8), {1: np.array([NONE, NONE, ALL], np.uint8)})
        >>> parts = ballot.cut(np.array([0, 1, 1]), np.array([5, 2, 1]))
        >>> parts.bits.tolist() == [NONE, NONE, ALL], {part: len(votes) for part, votes in parts.rows.items()}
        (True, {1: 2, 2: 1})
        """
        bits, rows = self.bits[owners], {}
        for unit, votes in self.rows.items():
            first, end = np.searchsorted(owners, [unit, unit + 1]).tolist()
            if first == end:  # no part of this unit is asked for
                continue
            offsets = np.cumsum(row_counts[first:end])
            if offsets[-1] != len(votes):
                raise ValueError(f"{len(votes)} votes on rows of unit {unit}, whose parts have {offsets[-1]} rows")
            for part, own in enumerate(np.split(votes, offsets[:-1]), first):
                rows[part] = own
                bits[part] = np.bitwise_or.reduce(own, initial=0)
        return Ballot(bits, rows)

    def matching_rows(self, unit: int, row_count: int) -> int:
        """How many of a unit's ``row_count`` rows may be TRUE."""
        if not self.bits[unit] & TRUE:
            return 0
        return int(np.count_nonzero(self.rows[unit] & TRUE)) if unit in self.rows else row_count

    @property
    def may_match(self) -> npt.NDArray[np.bool_]:
        """Units on which some row may be TRUE, the only ones to read: bool, shape (n,)."""
        may_match: npt.NDArray[np.bool_] = (self.bits & TRUE) != 0
        return may_match

    @property
    def always_matches(self) -> npt.NDArray[np.bool_]:
        """Units on which every row is TRUE, which need no residual filter: bool, shape (n,)."""
        always: npt.NDArray[np.bool_] = self.bits == TRUE
        return always


def _and_all(a: _Bits, b: _Bits) -> _Bits:
    return _AND[a, b]


def _or_all(a: _Bits, b: _Bits) -> _Bits:
    return _OR[a, b]


def _combine(outcomes: Callable[[_Bits, _Bits], _Bits], a: Ballot, b: Ballot) -> Ballot:
    bits = outcomes(a.bits, b.bits)
    if not a.rows and not b.rows:
        return Ballot(bits)
    rows = {}
    for unit in a.rows.keys() | b.rows.keys():
        rows[unit] = outcomes(a.rows.get(unit, a.bits[unit]), b.rows.get(unit, b.bits[unit]))
        bits[unit] = np.bitwise_or.reduce(rows[unit], initial=0)
    return Ballot(bits, rows)
