"""One form for terms that mean the same, so that what an index keeps is found however a query writes it.

Every step keeps each value, bit by bit, and NULL. Operands of ``+`` and ``*`` are sorted; sums are never regrouped,
since doubles would round, and decimals overflow, in other places. A cast that loses nothing cannot fail, and so has no
mode. Conditions are normalised, and what is said with NOT is said without.

>>> from fuse_index.predicate import Column
>>> price, discount = Column(("price",), pa.float64()), Column(("discount",), pa.float64())
>>> def times(left, right):
...     return Call("*", (left, right), pa.float64())
>>> canonical_term(times(price, discount), Context()) == canonical_term(times(discount, price), Context())
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from fuse_index.expressions.cast_inversion import is_lossless_cast
from fuse_index.expressions.constant_folding import fold_constants, fold_term
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.normalize import normalize
from fuse_index.predicate import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)

_COMMUTATIVE = frozenset("+*")
_MIRRORED: Mapping[Operator, Operator] = {
    "=": "=",
    "<=>": "<=>",
    "<>": "<>",
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
}
_OPPOSITE: Mapping[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""Comparisons that are true where another is false, in three-valued logic, by Spark's order with NaN in its place."""


def canonical_term(term: Term, context: Context) -> Term:
    """The term in the one form of all that are known to mean the same, constants folded."""
    return _term(fold_term(term, context), context)


def _term(term: Term, context: Context) -> Term:
    match term:
        case Column() | Literal():
            return term
        case Cast(inner, data_type, mode):
            found = _term(inner, context)
            return Cast(found, data_type, "legacy" if is_lossless_cast(found.type, data_type, context) else mode)
        case JsonPath(inner):
            return replace(term, term=_term(inner, context))
        case Call(name, arguments):
            found_arguments = tuple(_term(argument, context) for argument in arguments)
            in_order = sorted(found_arguments, key=repr) if name in _COMMUTATIVE else found_arguments
            return replace(term, arguments=tuple(in_order))
        case Case():
            return _case(term, context)


def _case(case: Case, context: Context) -> Term:
    """Without branches that no row takes, or that come after one that every row takes."""
    branches: list[tuple[Predicate, Term]] = []
    otherwise = _term(case.otherwise, context)
    for condition, value in case.branches:
        found = _predicate(normalize(fold_constants(condition, context), context), context)
        truth = _constant_truth(found)
        if truth is None:
            branches.append((found, _term(value, context)))
        elif truth:
            otherwise = _term(value, context)
            break
    return Case(tuple(branches), otherwise) if branches else otherwise


def _constant_truth(predicate: Predicate) -> bool | None:
    """Whether it is TRUE, where it compares constants; None where it depends on the row."""
    match predicate:
        case Compare("=", Literal(left, left_type), Literal(right, right_type)) if (
            left_type == right_type == pa.bool_()
        ):
            return left is not None and left == right
    return None


def _predicate(predicate: Predicate, context: Context) -> Predicate:
    match predicate:
        case And(terms) | Or(terms):
            return type(predicate)(tuple(sorted((_predicate(term, context) for term in terms), key=repr)))
        case Not(inner):
            return _negated(_predicate(inner, context), context)
        case Compare(operator, left, right):
            return _compare(operator, _term(left, context), _term(right, context))
        case In(term, (value,)):
            return _compare("=", _term(term, context), value)
        case In(term, values):
            return In(_term(term, context), tuple(sorted(values, key=repr)))
        case IsNull(term):
            return IsNull(_term(term, context))
        case Like(term, Literal(str(pattern)), escape) if escape not in pattern:
            return _like(replace(predicate, term=_term(term, context)), LikePattern.parse(pattern, escape))
        case Like() | StartsWith() | EndsWith() | Contains():
            return replace(predicate, term=_term(predicate.term, context))
        case leaf:
            return leaf


def _compare(operator: Operator, left: Term, right: Term) -> Predicate:
    if isinstance(right, Literal) and right.value is False and operator in ("=", "<>"):
        return Compare(_OPPOSITE[operator], left, Literal(True, right.type))
    if not isinstance(right, Literal) and repr(right) < repr(left):
        return Compare(_MIRRORED[operator], right, left)
    return Compare(operator, left, right)


def _negated(predicate: Predicate, context: Context) -> Predicate:
    """NOT of a predicate that is in its form already."""
    match predicate:
        case Compare(operator, left, right) if operator != "<=>":
            return _compare(_OPPOSITE[operator], left, right)
        case And(terms) | Or(terms):
            dual = Or if isinstance(predicate, And) else And
            return dual(tuple(sorted((_negated(term, context) for term in terms), key=repr)))
        case Not(inner):
            return inner
        case other:
            return Not(other)


def _like(like: Like, pattern: LikePattern) -> Predicate:
    """Simplify LIKE as Spark's optimizer does: a text with ``%`` at one end, or at both, needs no pattern."""
    match pattern.shape:
        case (text,) if text:
            return Compare("=", like.term, Literal(pattern.texts[0], pa.string()))
        case (text, False) if text:
            return StartsWith(like.term, Literal(pattern.texts[0], pa.string()))
        case (False, text) if text:
            return EndsWith(like.term, Literal(pattern.texts[1], pa.string()))
        case (False, text, False) if text:
            return Contains(like.term, Literal(pattern.texts[1], pa.string()))
        case _:
            return like
