"""From votes on leaves to a vote on the whole predicate.

In: the boolean tree, and for each of its leaves a ballot on the units of one level, NULLs included (``nulls``). Out:
the ballot of the tree. Pure functions over vectors of units; nothing here reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.ballot import FALSE, TRUE, Ballot
from fuse_index.predicate import And, Leaf, Not, Or, Predicate

_Ballots = Mapping[Leaf | Conjunction, Ballot]


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
