"""Parts of predicates and terms: leaves, AND groups, columns, and the same with some terms in the place of others.

Pure functions of structure. Knows no values, no votes and no indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.predicate import (
    And,
    Call,
    Case,
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
    """Every column, or field of one, that a term is made of; one that comes twice, twice."""
    match term:
        case Column():
            yield term
        case Cast(inner) | JsonPath(inner):
            yield from columns_of(inner)
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case Case(branches, otherwise):
            for part in terms_of_case(branches, otherwise):
                yield from columns_of(part)
        case Literal():
            return


def terms_of_case(branches: Iterable[tuple[Predicate, Term]], otherwise: Term) -> Iterator[Term]:
    """Every term of a CASE: those that its conditions are on, and its values."""
    for condition, value in branches:
        yield from predicate_terms(condition)
        yield value
    yield otherwise


def column_names(terms: Iterable[Term]) -> list[str]:
    """List the top-level columns that terms are made of, each once."""
    return list(dict.fromkeys(column.path[0] for term in terms for column in columns_of(term)))


def predicate_leaves(predicate: Predicate) -> list[Leaf]:
    """Every leaf once, in order of appearance."""
    match predicate:
        case And(terms) | Or(terms):
            return list(dict.fromkeys(leaf for term in terms for leaf in predicate_leaves(term)))
        case Not(term):
            return predicate_leaves(term)
        case leaf:
            return [leaf]


def compares_columns_only(predicate: Predicate) -> bool:
    """Whether every leaf compares columns and literals of one type with each other: on no row can that raise."""
    match predicate:
        case And(terms) | Or(terms):
            return all(map(compares_columns_only, terms))
        case Not(term):
            return compares_columns_only(term)
        case Compare(_, left, right):
            return (
                isinstance(left, Column | Literal) and isinstance(right, Column | Literal) and left.type == right.type
            )
        case In(term, _) | IsNull(term):
            return isinstance(term, Column | Literal)
        case _:
            return False


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


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The parts of the topmost AND; the predicate itself if it is none; () of None, which every row fulfils."""
    if predicate is None:
        return ()
    return predicate.terms if isinstance(predicate, And) else (predicate,)


def conjoin(parts: Sequence[Predicate]) -> Predicate | None:
    """The predicate that ``conjuncts`` gives these parts of; None of none."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def without_conjuncts(predicate: Predicate | None, decided: Sequence[Predicate]) -> Predicate | None:
    """The conjunction without these parts."""
    return conjoin([part for part in conjuncts(predicate) if part not in decided])


def references(node: Any, term: Term) -> bool:
    """The predicate or term has this term in it."""
    return bool(substitute(node, {term: Literal(None, pa.null())}) != node)


def nodes(node: Any) -> Iterator[Any]:
    """A predicate or term, and all predicates and terms within it."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        if not isinstance(node, Column | Literal):
            for field in fields(node):
                yield from nodes(getattr(node, field.name))


def called_functions(node: Any) -> frozenset[str]:
    """The names of all functions that predicates and terms call."""
    return frozenset(each.name for each in nodes(node) if isinstance(each, Call))


def substitute(node: Any, replacements: Mapping[Term, Term]) -> Any:
    """The predicate or term with some terms in the place of others."""
    if isinstance(node, tuple):
        return tuple(substitute(part, replacements) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    if (replacement := replacements.get(node)) is not None:  # type: ignore[call-overload]
        return replacement
    if isinstance(node, Column | Literal):
        return node
    return replace(node, **{field.name: substitute(getattr(node, field.name), replacements) for field in fields(node)})
