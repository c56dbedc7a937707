"""Whether a condition can be evaluated here at all: said when it is read, and not when some block comes to be read.

Which blocks are skipped depends on indexes, and whether an answer or an error comes back must not. What only single
values tell, a letter whose case is not sure or a year beyond Python's, is still found where such a row is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.errors import InputError, OpaqueError
from fuse_index.expressions.calls import compared_approximation, is_approximate, may_raise_on_values
from fuse_index.expressions.evaluate import evaluate, evaluate_constant_term, evaluate_term
from fuse_index.expressions.kernels import casts_alike
from fuse_index.expressions.to_sql import predicate_sql, term_sql
from fuse_index.expressions.traversal import columns_of, leaf_terms, nodes, predicate_leaves
from fuse_index.predicate import Call, Cast, Column, Context, In, JsonPath, Like, Literal, Opaque, Predicate, Term
from fuse_storage import check_uncut

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function


_NULL_TEXT = Literal(None, pa.string())
_ROW = pa.table({"none": pa.nulls(1)})


def check_evaluable(predicate: Predicate | None, context: Context, functions: Mapping[str, Function]) -> None:
    """Raises OpaqueError, which names the part, for what only Spark can evaluate. Constants are folded already."""
    leaves = [] if predicate is None else predicate_leaves(predicate)
    for leaf in leaves:
        if isinstance(leaf, Opaque):
            why = f" ({leaf.hint})" if leaf.hint else ""
            raise OpaqueError(f"only Spark can evaluate {leaf.sql}{why}: ask Spark, by DataFrame.where")
        if isinstance(leaf, Like) and not isinstance(leaf.pattern, Literal):
            raise OpaqueError(f"only Spark can evaluate {predicate_sql(leaf)}: its pattern is no constant")
        if isinstance(leaf, Like):
            evaluate(replace(leaf, term=_NULL_TEXT), _ROW)
        for each in nodes(leaf):
            if isinstance(each, Call) and is_approximate(each) and each != compared_approximation(leaf):
                raise OpaqueError(
                    f"only Spark can evaluate {predicate_sql(leaf)}: the last digits of {each.name}() are not sure, so "
                    f"that it can only be compared with a constant here"
                )
    terms = (
        part
        for leaf in leaves
        for term in ([leaf] if isinstance(leaf, Call) else leaf_terms(leaf))
        for part in (term.arguments if isinstance(term, Call) and is_approximate(term) else [term])
        if not isinstance(part, Literal)
    )
    if computed := dict.fromkeys(term for term in terms if not isinstance(term, Column)):
        stubs = {
            name: replace(function, evaluate=partial(_nothing, function.returns))
            for name, function in functions.items()
        }
        for term in computed:
            _check_term(term, context, stubs)


def check_literals(predicate: Predicate) -> None:
    """Raises InputError for a constant that its type cannot hold whole, such as 1.5 of INT: it would be taken for 1."""
    for leaf in predicate_leaves(predicate):
        listed = leaf.values if isinstance(leaf, In) else ()  # of which there may be a million
        others = (each for each in nodes(leaf.term if isinstance(leaf, In) else leaf) if isinstance(each, Literal))
        by_type: dict[int, tuple[pa.DataType, list[Any]]] = {}
        for each in (*listed, *others):
            by_type.setdefault(id(each.type), (each.type, []))[1].append(each.value)
        try:
            for data_type, values in by_type.values():
                check_uncut(values, data_type)
        except pa.ArrowInvalid as problem:
            raise InputError(f"the condition has a constant that is none of its type: {problem}") from None


def may_raise(predicate: Predicate, context: Context) -> bool:
    """Whether Spark may raise on rows that are not true here: where a cast fails, a number overflows, nothing divides.

    Then only Spark can say it.
    """
    return any(_may_raise(each, context) for each in nodes(predicate))


def _may_raise(part: object, context: Context) -> bool:
    match part:
        case Cast(term, data_type, "ansi"):
            return not (data_type == pa.string() or casts_alike(term.type, data_type))
        case Call():
            return may_raise_on_values(part, context)
        case JsonPath():
            return part.function == "variant_get"
        case _:
            return False


def _check_term(term: Term, context: Context, functions: Mapping[str, Function]) -> None:
    """Evaluates the term on one row, of NULLs."""
    columns = [(column.path, column.type) for column in columns_of(term)]
    if columns:
        row = pa.nulls(1, _root_type(columns))
        evaluate_term(term, pa.table(row.flatten(), row.type.names), context, functions)
    else:  # or it had been folded
        evaluate_constant_term(term, context, functions)
        raise OpaqueError(f"only Spark can evaluate {term_sql(term)}")


def _root_type(columns: Sequence[tuple[tuple[str, ...], pa.DataType]]) -> pa.DataType:
    """The type of a struct in which these types stand at these paths."""
    if whole := [data_type for path, data_type in columns if not path]:
        return whole[0]
    names = dict.fromkeys(path[0] for path, _ in columns)
    below = {name: [(path[1:], data_type) for path, data_type in columns if path[0] == name] for name in names}
    return pa.struct([(name, _root_type(found)) for name, found in below.items()])


def _nothing(returns: pa.DataType, *arguments: Any) -> pa.Array:
    """What stands for every function of a plugin: none is called for this."""
    return pa.nulls(1, returns)
