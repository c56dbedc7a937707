"""Predicates as indexes like them: the column on the left, and on the right a literal of exactly its type.

Every step is an equivalence in three-valued logic. A cast of a column that loses nothing, or only rounds, is taken off
by asking which values of the column's own type fall on which side; what no such rewriting reaches keeps its cast, which
the oracle can evaluate and most indexes cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from fuse_index.expressions import coercion, types
from fuse_index.expressions.cast_inversion import OrderedType, implied_bounds, is_lossless_cast, ordered_type_of
from fuse_index.expressions.errors import AnalysisError, NotReproducible
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.value_set import sort_key
from fuse_index.predicate import (
    And,
    Cast,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_index.reasons import Reason

_MIRRORED: dict[Operator, Operator] = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_MAX_REWRITTEN_IN_VALUES = 100
"""Up to so many values of an IN list are rewritten to ranges one by one."""

_MIN_LISTED_EQUALITIES = 17
"""From so many comparisons of one term on they are a list; what people write stays as they wrote it."""


def normalize(predicate: Predicate, context: Context) -> Predicate:
    """An equivalent predicate; what compares terms of two types that Spark does not compare is Opaque."""
    match predicate:
        case And(terms):
            return _joined(And, (normalize(term, context) for term in terms))
        case Or(terms):
            return _joined(Or, (normalize(term, context) for term in terms))
        case Not(Not(inner)):
            return normalize(inner, context)
        case Not(inner):
            return Not(normalize(inner, context))
        case Compare():
            return _compare(predicate, context)
        case In():
            return _in(predicate, context)
        case IsNull(Cast(inner, data_type, _)) if is_lossless_cast(inner.type, data_type, context):
            return normalize(IsNull(inner), context)
        case (
            Like(term, Literal(None, data_type))
            | StartsWith(term, Literal(None, data_type))
            | EndsWith(term, Literal(None, data_type))
            | Contains(term, Literal(None, data_type))
        ):
            return Compare(
                "=", term, Literal(None, data_type)
            )  # NULL on every row, said in the one way that everybody knows
        case leaf:
            return leaf


def _joined(connective: type[And] | type[Or], terms: Iterable[Predicate]) -> Predicate:
    """Nested ones opened, each term once."""
    flat = [
        part
        for term in terms
        for part in (term.terms if isinstance(term, And | Or) and isinstance(term, connective) else (term,))
    ]
    distinct = tuple(dict.fromkeys(flat))
    if len(distinct) >= _MIN_LISTED_EQUALITIES:
        distinct = _equalities_listed(distinct, connective)
    return distinct[0] if len(distinct) == 1 else connective(distinct)


def _equalities_listed(terms: Sequence[Predicate], connective: type[And] | type[Or]) -> tuple[Predicate, ...]:
    """Join parts of one term: ``a = 1 OR a = 2 …`` is ``a IN (1, 2, …)``, and ``a <> 1 AND a <> 2 …`` is NOT IN.

    A list is one leaf to everybody, where thousands of comparisons are thousands; short chains stay as they are.
    """
    listed: dict[Term, list[Literal]] = {}
    for part in terms:
        if (found := _listed_values(part, connective)) is not None:
            listed.setdefault(found[0], []).extend(found[1])
    long = {term: values for term, values in listed.items() if len(values) >= _MIN_LISTED_EQUALITIES}
    lists = [_distinct(In(term, tuple(values))) for term, values in long.items()]
    if not lists:
        return tuple(terms)
    rest = [part for part in terms if (found := _listed_values(part, connective)) is None or found[0] not in long]
    return (*(lists if connective is Or else map(Not, lists)), *rest)


def _listed_values(part: Predicate, connective: type[And] | type[Or]) -> tuple[Term, Sequence[Literal]] | None:
    """The term, and the values that it equals in one of these parts of an OR, or does not in one of an AND."""
    if connective is And and isinstance(part, Not) and isinstance(part.term, In):
        return part.term.term, part.term.values
    if connective is Or and isinstance(part, In):
        return part.term, part.values
    if isinstance(part, Compare) and part.operator == ("=" if connective is Or else "<>"):
        value, data_type = part.right, part.left.type
        if isinstance(value, Literal) and value.value is not None and value.type == data_type:
            return None if isinstance(part.left, Literal) or types.is_compound(data_type) else (part.left, (value,))
    return None


def _compare(leaf: Compare, context: Context) -> Predicate:
    if isinstance(leaf.left, Literal) and not isinstance(leaf.right, Literal):
        leaf = Compare(_MIRRORED[leaf.operator], leaf.right, leaf.left)
    if leaf.left.type != leaf.right.type:
        try:
            leaf = Compare(leaf.operator, *coercion.coerce_comparison(leaf.operator, leaf.left, leaf.right, context))
        except (AnalysisError, NotReproducible):
            return _mismatch(leaf)
    if isinstance(leaf.right, Literal) and (literal := _canonical_literal(leaf.right)) is not leaf.right:
        leaf = replace(leaf, right=literal)
    if isinstance(leaf.left, Cast) and isinstance(leaf.right, Literal) and leaf.right.value is not None:
        try:
            return _uncast(leaf, leaf.left.term, leaf.right, context)
        except NotReproducible:
            return leaf
    return leaf


def _canonical_literal(literal: Literal) -> Literal:
    """One spelling for equal floats: one NaN, no -0.0, and no more digits than a float has."""
    if not isinstance(literal.value, float):
        return literal
    return Literal(
        math.nan if math.isnan(literal.value) else pa.scalar(literal.value, literal.type).as_py() + 0.0, literal.type
    )


def _uncast(leaf: Compare, inner: Term, literal: Literal, context: Context) -> Predicate:
    if isinstance(inner, Literal):
        return leaf
    scale = ordered_type_of(inner.type, literal.type, context)
    if scale is not None:
        value = scale.exact_inverse(literal.value)
        if value is not None:
            return _compare(Compare(leaf.operator, inner, value), context)
        return normalize(_ranges(leaf.operator, inner, scale, literal.value), context)
    bounds = implied_bounds(leaf.operator, inner, literal.value, literal.type)
    return And((leaf, *bounds)) if bounds else leaf


def _ranges(operator: Operator, inner: Term, scale: OrderedType, value: object) -> Predicate:
    """The comparison, said by positions in the order of the column's type.

    From ``first`` on nothing is below the value, from ``after`` on all is above it.
    """
    first, after = scale.bracket(value)
    match operator:
        case "<":
            return _below(inner, scale, first)
        case "<=":
            return _below(inner, scale, after)
        case ">":
            return _from(inner, scale, after)
        case ">=":
            return _from(inner, scale, first)
        case "<>":
            return Not(_within(inner, scale, first, after))
        case "=":
            return _within(inner, scale, first, after)
        case "<=>":
            return And((Not(IsNull(inner)), _within(inner, scale, first, after)))


# Also beyond the last place there may be values: a column may hold days and instants that Python cannot


def _below(inner: Term, scale: OrderedType, end: int) -> Predicate:
    return (
        Compare("<", inner, scale.literal_at(end))
        if end <= scale.highest
        else Compare("<=", inner, scale.literal_at(scale.highest))
    )


def _from(inner: Term, scale: OrderedType, start: int) -> Predicate:
    return (
        Compare(">=", inner, scale.literal_at(start))
        if start <= scale.highest
        else Compare(">", inner, scale.literal_at(scale.highest))
    )


def _within(inner: Term, scale: OrderedType, first: int, end: int) -> Predicate:
    if first >= end:
        return _never(inner, scale)
    if end == first + 1:
        return Compare("=", inner, scale.literal_at(first))
    return And((Compare(">=", inner, scale.literal_at(first)), Compare("<=", inner, scale.literal_at(end - 1))))


def _never(inner: Term, scale: OrderedType) -> Predicate:
    """FALSE, but NULL where the term is."""
    some = scale.literal_at(max(0, scale.lowest))
    return And((Compare("<", inner, some), Compare(">", inner, some)))


def _in(leaf: In, context: Context) -> Predicate:
    try:
        if leaf.types != [leaf.term.type]:
            leaf = In(*coercion.coerce_in_list(leaf.term, leaf.values, context))
    except (AnalysisError, NotReproducible):
        return _mismatch(leaf)
    leaf = _distinct(leaf)
    if not isinstance(leaf.term, Cast) or isinstance(leaf.term.term, Literal) or not leaf.values:
        return leaf
    try:
        return _in_uncast(leaf, leaf.term.term, context)
    except NotReproducible:
        return leaf


def _distinct(leaf: In) -> In:
    """Remove repeated values of an IN list. Returns the same object if there are none."""
    if pa.types.is_floating(leaf.term.type) or pa.types.is_timestamp(leaf.term.type):
        distinct = {sort_key(value.value): _canonical_literal(value) for value in leaf.values}
        return replace(leaf, values=tuple(distinct.values()))
    if len(set(leaf.plain_values)) == len(leaf.values):
        return leaf
    return replace(leaf, values=tuple(dict(zip(leaf.plain_values, leaf.values, strict=True)).values()))


def _in_uncast(leaf: In, inner: Term, context: Context) -> Predicate:
    data_type = leaf.term.type
    known = [value for value in leaf.values if value.value is not None]
    scale = ordered_type_of(inner.type, data_type, context)
    if scale is None:
        if not known:
            return leaf
        values = sorted((value.value for value in known), key=sort_key)
        bounds = [
            *implied_bounds(">=", inner, values[0], data_type),
            *implied_bounds("<=", inner, values[-1], data_type),
        ]
        return And((leaf, *bounds)) if bounds and len(known) == len(leaf.values) else leaf
    found = [(value, scale.exact_inverse(value.value)) for value in known]
    nulls = [Literal(None, inner.type)] if len(known) < len(leaf.values) else []
    exact = [made for _, made in found if made is not None]
    if scale.lossless or len(exact) == len(found):
        if not exact and not nulls:
            return _never(inner, scale)
        return normalize(In(inner, (*exact, *nulls)), context)
    if len(leaf.values) > _MAX_REWRITTEN_IN_VALUES:
        return leaf
    return normalize(Or(tuple(Compare("=", leaf.term, value) for value in leaf.values)), context)


def _mismatch(leaf: Compare | In) -> Opaque:
    return Opaque(predicate_sql(leaf, whole=False), Reason.TYPE_MISMATCH)
