"""Terms without a column, as the literals that they are.

A condition may be on a function of constants, ``length('') = 0``; everybody else expects a constant to be a literal.
What only Spark can evaluate, and what Spark raises on, stays a term, and is evaluated with the rows, or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.coercion import cast_literal
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.evaluate import evaluate_constant_term
from fuse_index.expressions.traversal import columns_of
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
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    Term,
)

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function


def fold_constants(
    predicate: Predicate, context: Context, functions: Mapping[str, Function] | None = None
) -> Predicate:
    """An equivalent predicate, each term without a column a literal where its value is known here.

    >>> condition = Compare("=", Call("length", (Literal("abc", pa.string()),), pa.int32()), Literal(3, pa.int32()))
    >>> fold_constants(condition, Context()) == Compare("=", Literal(3, pa.int32()), Literal(3, pa.int32()))
    True
    """

    def folded(term: Term) -> Term:
        return fold_term(term, context, functions)

    match predicate:
        case And(terms) | Or(terms):
            return type(predicate)(tuple(fold_constants(term, context, functions) for term in terms))
        case Not(inner):
            return Not(fold_constants(inner, context, functions))
        case Compare(operator, left, right):
            return Compare(operator, folded(left), folded(right))
        case StartsWith(term, text) | EndsWith(term, text) | Contains(term, text):
            return type(predicate)(folded(term), folded(text))
        case Like(term, pattern, escape):
            return Like(folded(term), folded(pattern), escape)
        case In(term, values):
            return In(folded(term), values)
        case IsNull(term):
            found = folded(term)
            return _truth(found.value is None) if isinstance(found, Literal) else IsNull(found)
        case Call():
            found = folded(predicate)
            assert isinstance(found, Literal | Call)
            return _truth(found.value) if isinstance(found, Literal) else found
        case opaque:
            return opaque


def fold_term(term: Term, context: Context, functions: Mapping[str, Function] | None = None) -> Term:
    """The term, or the literal that it is; parts of it likewise."""
    if isinstance(term, Column | Literal):
        return term
    if not any(columns_of(term)) and not pa.types.is_nested(term.type):
        try:
            if isinstance(term, Cast) and isinstance(inner := fold_term(term.term, context, functions), Literal):
                cast_literal(inner, term.type, term.mode, context)  # which knows what is said of constants alone
            return Literal(evaluate_constant_term(term, context, functions), term.type)
        except (OpaqueError, NotReproducible):
            return term
    if isinstance(term, Call):
        return replace(term, arguments=tuple(fold_term(argument, context, functions) for argument in term.arguments))
    if isinstance(term, Case):
        return Case(
            tuple(
                (fold_constants(condition, context, functions), fold_term(value, context, functions))
                for condition, value in term.branches
            ),
            fold_term(term.otherwise, context, functions),
        )
    return replace(term, term=fold_term(term.term, context, functions))


def _truth(value: bool | None) -> Compare:
    """The condition that is this on every row; None for NULL."""
    return Compare("=", Literal(value, pa.bool_()), Literal(True, pa.bool_()))
