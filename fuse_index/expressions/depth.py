"""How deep a condition is nested, and the bound on it: all that reads conditions goes down their trees, level by level.

Chains of ANDs, and of ORs, are one level however long they are. Knows no SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from fuse_index.errors import WhereError
from fuse_index.predicate import And, Column, Compare, Literal, Not, Or, Predicate

MAX_DEPTH = 24
"""Levels of a condition; a parser takes up to 30 calls of Python's 1,000 for each, and its caller some hundred."""


def check_condition_depth(depth: int) -> None:
    """Raise WhereError for a condition that is nested deeper than the bound."""
    if depth > MAX_DEPTH:
        raise WhereError(
            f"the condition is nested {depth:,} levels deep, and {MAX_DEPTH} are the bound: parentheses, NOT and "
            f"functions in each other count, chains of AND or OR do not; write it flatter"
        )


def open_chains(predicate: Predicate) -> Predicate:
    """The predicate with ANDs in ANDs, and ORs in ORs, as one. Raises WhereError for one that is nested too deep."""
    deepest, waiting = 0, [(predicate, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        chain = type(node) if isinstance(node, And | Or) else None
        waiting += [(part, depth + (type(part) is not chain)) for part in _parts(node)]
    check_condition_depth(deepest)
    return _opened(predicate)


def _parts(node: Any) -> Sequence[Any]:
    """The predicates and terms that a node is directly made of, but for the values of a list."""
    match node:
        case And(terms) | Or(terms):
            return terms
        case Compare(_, left, right):
            return (left, right)
        case Column() | Literal():
            return ()
    held = [(field.name, getattr(node, field.name)) for field in fields(node)]
    own = [part for _, part in held if is_dataclass(part)]
    return [*own, *(argument for name, part in held if name == "arguments" for argument in part)]


def _opened(predicate: Predicate) -> Predicate:
    match predicate:
        case And() | Or():
            terms = tuple(_opened(term) for term in _chain(predicate))
            return predicate if terms == predicate.terms else type(predicate)(terms)
        case Not(inner):
            return Not(_opened(inner))
        case leaf:
            return leaf


def _chain(predicate: And | Or) -> Sequence[Predicate]:
    terms: list[Predicate] = []
    waiting: list[Predicate] = [predicate]
    while waiting:
        each = waiting.pop()
        if isinstance(each, And | Or) and type(each) is type(predicate):
            waiting.extend(reversed(each.terms))
        else:
            terms.append(each)
    return terms
