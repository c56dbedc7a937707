"""From votes on leaves to a vote on the whole predicate.

In: the boolean tree, and for each of its leaves a ballot on the units of one level, NULLs included (``nulls``). Out:
the ballot of the tree, kept up to date as votes come in. Pure functions over vectors of units; nothing here reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, invert, or_

import numpy as np

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.ballot import FALSE, TRUE, Ballot
from fuse_index.predicate import And, Leaf, Not, Or, Predicate

Subject = Leaf | Conjunction
"""What indexes are asked about."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the tree. ``children``: none of a leaf, one of NOT, two of AND and OR, which are associative.

    ``leaf``: None of a leaf that nobody is asked about. ``constraints``: the node may be TRUE only where these may be.
    """

    operation: Callable[..., Ballot] | None
    children: tuple[int, ...]
    leaf: Leaf | None
    constraints: Sequence[Subject]


@dataclass
class VoteTree:
    """The boolean tree of a predicate, for ballots on the leaves in ``asked``: the others may be anything.

    ``conjunctions``: second opinions on an AND or OR. ``implied``: what a leaf is TRUE only with. Long ANDs and ORs are
    halved and halved again, and what nobody is asked about is one leaf, so a vote on one leaf of n costs log n steps.
    """

    asked: Mapping[Subject, object]
    conjunctions: Mapping[And | Or, Sequence[Conjunction]]
    implied: Mapping[Leaf, Sequence[Leaf]]
    nodes: list[_Node] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    places: dict[Subject, list[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        asked: Mapping[Subject, object],
        conjunctions: Mapping[And | Or, Sequence[Conjunction]],
        implied: Mapping[Leaf, Sequence[Leaf]],
    ) -> VoteTree:
        """The tree of a predicate; its last node is the root."""
        tree = cls(asked, conjunctions, implied)
        if tree._add(predicate) is None:
            tree._append(None, (), None, ())
        return tree

    def _add(self, predicate: Predicate) -> int | None:
        """The number of the node; None, and no node, where nobody is asked about anything in it."""
        match predicate:
            case And(terms):
                return self._add_children(and_, terms, self.conjunctions.get(predicate, ()))
            case Or(terms):
                return self._add_children(or_, terms, self.conjunctions.get(predicate, ()))
            case Not(term):
                child = self._add(term)
                return None if child is None else self._append(invert, (child,), None, ())
            case leaf if leaf in self.asked:
                return self._append(None, (), leaf, self.implied.get(leaf, ()))
            case _:
                return None

    def _add_children(
        self, operation: Callable[..., Ballot], terms: Sequence[Predicate], constraints: Sequence[Subject]
    ) -> int | None:
        """The node of an AND or OR of these terms, in which one leaf stands for all that nobody is asked about."""
        nodes = [self._add(term) for term in terms]
        children = [node for node in nodes if node is not None]
        if not children and not constraints:
            return None
        if len(children) < len(nodes):
            children.append(self._append(None, (), None, ()))
        return self._add_halves(operation, children, constraints)

    def _add_halves(self, operation: Callable[..., Ballot], children: list[int], constraints: Sequence[Subject]) -> int:
        while len(children) > 2:
            pairs = [tuple(children[start : start + 2]) for start in range(0, len(children), 2)]
            children = [pair[0] if len(pair) == 1 else self._append(operation, pair, None, ()) for pair in pairs]
        return self._append(operation, tuple(children), None, constraints)

    def _append(
        self,
        operation: Callable[..., Ballot] | None,
        children: tuple[int, ...],
        leaf: Leaf | None,
        constraints: Sequence[Subject],
    ) -> int:
        number = len(self.nodes)
        self.nodes.append(_Node(operation, children, leaf, constraints))
        self.parents.append(-1)
        for child in children:
            self.parents[child] = number
        for subject in ([] if leaf is None else [leaf]) + list(constraints):
            self.places.setdefault(subject, []).append(number)
        return number


class VoteCount:
    """The ballots of all nodes of a tree on the units of one level. ``votes``: those of its leaves, as they came."""

    def __init__(self, tree: VoteTree, votes: dict[Subject, Ballot], units: int) -> None:
        self.tree, self.votes, self._unknown = tree, votes, Ballot.unknown(units)
        self._ballots: list[Ballot] = []
        for number in range(len(tree.nodes)):
            self._ballots.append(self._count(number))

    @property
    def ballot(self) -> Ballot:
        """What the predicate may be on each unit."""
        return self._ballots[-1]

    def update(self, subject: Subject, vote: Ballot) -> None:
        """Put another ballot in the place of that on a leaf, wherever it counts."""
        self.votes[subject] = vote
        for place in self.tree.places.get(subject, ()):
            number = place
            while number >= 0:
                before, after = self._ballots[number], self._count(number)
                if not before.rows and not after.rows and np.array_equal(before.bits, after.bits):
                    break  # nothing above it changes either
                self._ballots[number] = after
                number = self.tree.parents[number]

    def _count(self, number: int) -> Ballot:
        node = self.tree.nodes[number]
        if node.operation is None:
            ballot = self._unknown if node.leaf is None else self.votes[node.leaf]
        elif len(node.children) == 1 and node.operation is not invert:
            ballot = self._ballots[node.children[0]]
        else:
            ballot = node.operation(*(self._ballots[child] for child in node.children))
        return reduce(Ballot.constrain_by, (self.votes[subject] for subject in node.constraints), ballot)


def combine_votes(predicate: Predicate, ballots: Mapping[Subject, Ballot], units: int) -> Ballot:
    """What a predicate may be on each of so many units, given ballots on some of its leaves."""
    return VoteCount(VoteTree.of(predicate, ballots, {}, {}), dict(ballots), units).ballot


def best_case_outcomes(predicate: Predicate) -> dict[Leaf, int]:
    """Per leaf, the outcomes that would help most to rule a unit out: what an optimist expects of an index."""
    wished: dict[Leaf, int] = {}
    for leaf, outcome in _wishes(predicate, FALSE, TRUE):
        wished[leaf] = wished.get(leaf, outcome) & outcome
    return wished


def _wishes(predicate: Predicate, wish: int, opposite: int) -> Iterator[tuple[Leaf, int]]:
    match predicate:
        case And(terms) | Or(terms):
            for term in terms:
                yield from _wishes(term, wish, opposite)
        case Not(term):
            yield from _wishes(term, opposite, wish)
        case leaf:
            yield leaf, wish
