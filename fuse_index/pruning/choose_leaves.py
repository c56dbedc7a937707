"""The leaves that indexes are asked about, of a predicate with very many.

Each leaf costs some calls of plugins at each level, so a condition of thousands would cost more to plan than a scan.
Those that say the same of one column are asked about together; of the others, those of an AND help each for itself,
those of an OR only all together. Whoever is not asked about is unknown: slower, and never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fuse_index.expressions.conjunction import Conjunction, first_term, term_and_value_set
from fuse_index.expressions.traversal import and_groups, predicate_leaves
from fuse_index.expressions.value_set import ValueSet
from fuse_index.predicate import And, Leaf, Not, Or, Predicate, Term

MAX_ASKED_LEAVES = 256
"""Leaves that indexes are asked about one by one."""


@dataclass
class LeafChoice:
    """What is asked about: ``leaves``, what each AND of ``groups`` says of a term, and each OR of ``together``.

    ``predicate``: the same one, in which the terms of a long OR stand by what they are on.
    """

    predicate: Predicate
    leaves: list[Leaf] = field(default_factory=list)
    groups: list[And] = field(default_factory=list)
    together: dict[Or, Conjunction] = field(default_factory=dict)
    is_whole: bool = True

    @classmethod
    def of(cls, predicate: Predicate) -> LeafChoice:
        """All leaves if they are not too many."""
        if leaf_count(predicate) <= MAX_ASKED_LEAVES:
            return cls(predicate, predicate_leaves(predicate), and_groups(predicate))
        choice = cls(predicate, is_whole=False)
        choice.predicate = choice._take(predicate)
        choice.leaves = list(dict.fromkeys(choice.leaves))
        return choice

    def _take(self, predicate: Predicate) -> Predicate:
        """Choose from a part that must be TRUE for the whole to be. Returns it, with what is asked together grouped."""
        if self._fits(predicate):
            self.leaves += predicate_leaves(predicate)
            self.groups += and_groups(predicate)
            return predicate
        match predicate:
            case And(terms):
                taken = And(tuple(self._take(term) for term in terms))
                self.groups.append(taken)
                return taken
            case Or(terms):
                alone, together = _by_term(terms)
                rest = Or(tuple(alone))
                if not self._fits(rest):
                    return predicate
                self.together |= together
                return Or((*together, *(self._take(term) for term in alone)))
            case _:
                return predicate

    def _fits(self, predicate: Predicate) -> bool:
        return len(self.leaves) + leaf_count(predicate) <= MAX_ASKED_LEAVES


def leaf_count(predicate: Predicate) -> int:
    """How many leaves a predicate has; one that comes twice, twice."""
    match predicate:
        case And(terms) | Or(terms):
            return sum(1 if not isinstance(term, And | Or | Not) else leaf_count(term) for term in terms)
        case Not(term):
            return leaf_count(term)
        case _:
            return 1


def _by_term(terms: Sequence[Predicate]) -> tuple[list[Predicate], dict[Or, Conjunction]]:
    """Divide the terms of an OR: those that say something of one and the same term are groups, the others alone."""
    by_term: dict[Term | None, list[Predicate]] = {}
    for part in terms:
        by_term.setdefault(first_term(part), []).append(part)
    alone: list[Predicate] = []
    together: dict[Or, Conjunction] = {}
    for term, parts in by_term.items():
        found = [term_and_value_set(part) for part in parts] if term is not None and len(parts) > 1 else []
        said = [part for part, known in zip(parts, found, strict=False) if known is not None]
        if term is None or len(said) < 2:
            alone += parts
            continue
        alone += [part for part, known in zip(parts, found, strict=True) if known is None]
        group, domain = Or(tuple(said)), ValueSet.union_of([known[1] for known in found if known is not None])
        together[group] = Conjunction(((term, domain),), (group,))
    return alone, together
