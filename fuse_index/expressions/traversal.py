"""Which terms and which columns a condition looks at. Pure functions of its structure."""

from __future__ import annotations

from collections.abc import Iterator

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.predicate import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Leaf,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Term,
)


def predicate_terms(predicate: Predicate | None) -> list[Term]:
    """The terms that its leaves are on, constants left out."""
    return [term for leaf in (predicate_leaves(predicate) if predicate else ()) for term in leaf_terms(leaf)]


def leaf_terms(leaf: Leaf | Conjunction) -> list[Term]:
    """The terms that a leaf is on, constants left out."""
    match leaf:
        case Conjunction(domains):
            return [term for term, _ in domains]
        case Compare(_, left, right):
            terms: list[Term] = [left, right]
        case StartsWith(term, other) | EndsWith(term, other) | Contains(term, other) | Like(term, other):
            terms = [term, other]
        case In(term, _) | IsNull(term):
            terms = [term]
        case Call(_, arguments):
            terms = list(arguments)
        case Opaque():
            terms = []
    return [term for term in terms if not isinstance(term, Literal)]


def columns_of(term: Term) -> Iterator[Column]:
    match term:
        case Column():
            yield term
        case Cast(inner) | JsonPath(inner):
            yield from columns_of(inner)
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case Literal():
            return


def predicate_leaves(predicate: Predicate) -> list[Leaf]:
    """Every leaf once, in order of appearance."""
    match predicate:
        case And(terms) | Or(terms):
            return list(dict.fromkeys(leaf for term in terms for leaf in predicate_leaves(term)))
        case Not(term):
            return predicate_leaves(term)
        case leaf:
            return [leaf]
