"""What one AND group says of its terms: joint knowledge of all its conjuncts.

Leaf by leaf, ``a > 10 AND a < 50`` cannot skip a block that holds {1, 100}, nor three ``<>`` a list of three values;
merged into one ``ValueSet`` they can. Knows no statistics and no index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuse_index.expressions.value_set import ValueSet
from fuse_index.predicate import And, Compare, In, Like, LongTuple, Not, Or, Predicate, StartsWith, Term


@dataclass(frozen=True, slots=True)
class Conjunction:
    """What the conjunction ``leaves`` says of each of its terms, as one ValueSet a term.

    On rows where no term is NULL the domains say exactly what the leaves say; where one is, the conjunction is not
    TRUE. ``leaves`` holds the conjuncts in order: leaves, or NOT and OR of leaves on one and the same term.
    """

    domains: tuple[tuple[Term, ValueSet], ...]
    leaves: tuple[Predicate, ...]

    def __hash__(self) -> int:
        """By the leaves alone, which give the domains."""
        return hash(self.leaves)

    @classmethod
    def of(cls, group: And) -> Conjunction | None:
        """The joint knowledge of all conjuncts that have a ValueSet; None if none has one."""
        domains: dict[Term, list[ValueSet]] = {}
        leaves = []
        for conjunct in _conjuncts(group):
            if (found := term_and_value_set(conjunct)) is not None:
                domains.setdefault(found[0], []).append(found[1])
                leaves.append(conjunct)
        joined = tuple((term, ValueSet.intersection_of(known)) for term, known in domains.items())
        return cls(joined, LongTuple(leaves)) if leaves else None

    def by_term(self) -> dict[Term, Conjunction]:
        """What is said of each term alone, as ``restrict`` gives it."""
        leaves: dict[Term | None, list[Predicate]] = {}
        for leaf in self.leaves:
            leaves.setdefault(first_term(leaf), []).append(leaf)
        return {term: Conjunction(((term, domain),), LongTuple(leaves[term])) for term, domain in self.domains}

    def restrict(self, terms: Sequence[Term]) -> Conjunction | None:
        """The conjunction of what is said of these terms alone; None if it says nothing of them."""
        leaves = tuple(leaf for leaf in self.leaves if first_term(leaf) in terms)
        return (
            Conjunction(tuple((term, domain) for term, domain in self.domains if term in terms), leaves)
            if leaves
            else None
        )

    def domain(self, term: Term) -> ValueSet:
        """All that is said of a term; everything if it does not name it."""
        return dict(self.domains).get(term, ValueSet.everything())


def first_term(predicate: Predicate) -> Term | None:
    """The term that a conjunct is on; of AND and OR, that of their first."""
    match predicate:
        case And(terms) | Or(terms):
            return first_term(terms[0])
        case Not(inner):
            return first_term(inner)
        case Compare(_, term, _) | In(term, _) | StartsWith(term, _) | Like(term, _, _):
            return term
        case _:
            return None


def term_and_value_set(predicate: Predicate) -> tuple[Term, ValueSet] | None:
    """The term and the values of a tree on one single term, that is NULL where the term is."""
    match predicate:
        case And(terms) | Or(terms):
            first = first_term(terms[0])
            if first is None or any(first_term(term) != first for term in terms):
                return None  # told before thousands of sets are made
            found = [term_and_value_set(term) for term in terms]
            known = [pair for pair in found if pair is not None]
            if len(known) < len(found) or len({term for term, _ in known}) != 1:
                return None
            domains = [domain for _, domain in known]
            join = ValueSet.union_of if isinstance(predicate, Or) else ValueSet.intersection_of
            return known[0][0], join(domains)
        case Not(inner):
            pair = term_and_value_set(inner)
            return None if pair is None else (pair[0], pair[1].complement())
        case Compare(operator="<=>"):
            return None  # FALSE, not NULL, where the term is NULL
        case leaf:
            term, known_domain = first_term(leaf), ValueSet.of(leaf)
            return None if term is None or known_domain is None else (term, known_domain)


def _conjuncts(predicate: Predicate, positive: bool = True) -> Iterator[Predicate]:
    """All that must be TRUE for the predicate to be: nested ANDs opened, NOT (a OR b) as NOT a, NOT b."""
    match predicate:
        case And(terms) if positive:
            for term in terms:
                yield from _conjuncts(term)
        case Or(terms) if not positive:
            for term in terms:
                yield from _conjuncts(term, positive=False)
        case Not(inner):
            yield from _conjuncts(inner, not positive)
        case _:
            yield predicate if positive else Not(predicate)
