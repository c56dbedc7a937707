"""From what indexes say of leaves to what a predicate may be: the engine's own part of voting.

Authors judge one leaf on the rows whose inputs are not NULL. Here the NULLs are added (``settle``), the leaves that
only need null counts are judged (``own_vote``), and the boolean tree is decided from the ballots on its leaves
(``decide``). Pure functions over vectors of units; nothing here reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import numpy as np
import numpy.typing as npt

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.ballot import FALSE, NULL, TRUE, UNKNOWN, Ballot
from fuse_index.predicate import And, Call, Compare, In, IsNull, Leaf, Literal, Not, Or, Predicate

_Ballots = Mapping[Leaf | Conjunction, Ballot]


@dataclass(frozen=True, slots=True)
class NullPresence:
    """What null counts tell of a leaf's inputs, per unit."""

    may_be_null: npt.NDArray[np.bool_]
    """Some input may be NULL on some row."""
    always_null: npt.NDArray[np.bool_]
    """Some input is NULL on every row."""

    @classmethod
    def unknown(cls, units: int) -> NullPresence:
        return cls(np.ones(units, np.bool_), np.zeros(units, np.bool_))

    def take(self, units: npt.NDArray[np.int64]) -> NullPresence:
        return NullPresence(self.may_be_null[units], self.always_null[units])


def add_null_outcomes(
    ballot: Ballot,
    leaf: Leaf | Conjunction,
    null_presence: NullPresence,
    answered: int = TRUE | FALSE,
    on_null: int = UNKNOWN,
) -> Ballot:
    """An author's ballot, made whole: the outcomes on rows with a NULL input are added.

    ``judged``: the outcomes that the author answers for; others are possible anyway. ``on_null``: the outcomes on a row
    with a NULL input. A unit without any outcome tells nothing.
    """

    def whole(bits: npt.NDArray[np.uint8], possible: npt.NDArray[np.bool_] | np.bool_) -> npt.NDArray[np.uint8]:
        bits = bits & np.uint8(UNKNOWN) | (bits == 0).view(np.uint8) * np.uint8(UNKNOWN)
        if isinstance(leaf, In) and has_null(leaf):
            bits = np.where(bits & FALSE, (bits & ~np.uint8(FALSE)) | NULL, bits).astype(np.uint8)
        extra = UNKNOWN & ~answered & NULL
        return np.asarray(bits | extra | np.where(possible, on_null, 0).astype(np.uint8), np.uint8)

    bits = whole(ballot.bits, null_presence.may_be_null)
    bits = np.where(null_presence.always_null, on_null, bits).astype(np.uint8)
    rows = {
        i: whole(rows, null_presence.may_be_null[i])
        for i, rows in ballot.rows.items()
        if not null_presence.always_null[i]
    }
    return Ballot(bits, rows)


def outcomes_on_null(leaf: Leaf | Conjunction, strict_functions: frozenset[str] = frozenset()) -> int:
    """What a leaf may be on a row where one of its inputs is NULL."""
    match leaf:
        case Conjunction():
            return FALSE | NULL  # another conjunct may be FALSE, which wins over NULL
        case _ if is_null_test(leaf):
            return TRUE
        case Compare(operator="<=>"):
            return FALSE
        case Call(name):
            return NULL if name in strict_functions else UNKNOWN
        case _:
            return NULL


def has_null(leaf: In) -> bool:
    return any(value.value is None for value in leaf.values)


def null_test_votes(null_counts: npt.NDArray[np.float64] | None, row_counts: npt.NDArray[np.int64]) -> Ballot:
    """IS NULL, from null counts (NaN: not known)."""
    if null_counts is None:
        return Ballot.constant(len(row_counts), TRUE | FALSE)
    some = ~(null_counts == 0)
    other = ~(null_counts == row_counts)
    return Ballot((some * TRUE + other * FALSE).astype(np.uint8))


def is_null_literal(term: object) -> bool:
    return isinstance(term, Literal) and term.value is None


def combine_votes(
    predicate: Predicate,
    ballots: _Ballots,
    conjunctions: Mapping[And, Sequence[Conjunction]],
    implied: Mapping[Leaf, Sequence[Leaf]],
) -> Ballot:
    """What the tree may be on each unit, given ballots on all its leaves.

    A Box is a second opinion on the And that it was made of; a leaf may be TRUE only where all it implies may be.
    """
    match predicate:
        case And(terms):
            ballot = reduce(and_, (combine_votes(term, ballots, conjunctions, implied) for term in terms))
            return reduce(Ballot.constrain_by, (ballots[box] for box in conjunctions.get(predicate, ())), ballot)
        case Or(terms):
            return reduce(or_, (combine_votes(term, ballots, conjunctions, implied) for term in terms))
        case Not(term):
            return ~combine_votes(term, ballots, conjunctions, implied)
        case leaf:
            consequences = (ballots[other] for other in implied.get(leaf, ()))
            return reduce(Ballot.constrain_by, consequences, ballots[leaf])


def and_groups(predicate: Predicate) -> list[And]:
    """Every AND group once."""
    match predicate:
        case And(terms) | Or(terms):
            inner = [group for term in terms for group in and_groups(term)]
            return list(dict.fromkeys([predicate, *inner] if isinstance(predicate, And) else inner))
        case Not(term):
            return and_groups(term)
        case _:
            return []


def best_case_outcomes(predicate: Predicate, positive: bool = True) -> dict[Leaf, int]:
    """Per leaf, the outcomes that would help most to rule a unit out: what an optimist expects of an index."""
    match predicate:
        case And(terms) | Or(terms):
            wished: dict[Leaf, int] = {}
            for term in terms:
                for leaf, outcome in best_case_outcomes(term, positive).items():
                    wished[leaf] = wished.get(leaf, outcome) & outcome
            return wished
        case Not(term):
            return best_case_outcomes(term, not positive)
        case leaf:
            return {leaf: FALSE if positive else TRUE}


def is_null_test(leaf: Leaf | Conjunction) -> bool:
    return isinstance(leaf, IsNull) or (
        isinstance(leaf, Compare) and leaf.operator == "<=>" and is_null_literal(leaf.right)
    )
