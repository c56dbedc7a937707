"""Whether a condition can be evaluated here at all: said when it is read, and not when some block comes to be read.

Which blocks are skipped depends on indexes, and whether an answer or an error comes back must not. What only single
values tell, a letter whose case is not sure or a year beyond Python's, is still found where such a row is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate, evaluate_constant_term
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves
from fuse_index.predicate import Column, Compare, Context, In, IsNull, Leaf, Opaque, Predicate, Term

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function


def check_evaluable(predicate: Predicate | None, context: Context, functions: Mapping[str, Function]) -> None:
    """Raises OpaqueError, which names the part, for what only Spark can evaluate. Constants are folded already."""
    stubs = {name: replace(function, evaluate=_nothing) for name, function in functions.items()}
    for leaf in [] if predicate is None else predicate_leaves(predicate):
        if isinstance(leaf, Opaque):
            raise OpaqueError(f"only Spark can evaluate {leaf.sql}: ask Spark, by DataFrame.where")
        terms = leaf_terms(leaf)
        if not isinstance(leaf, Compare | In | IsNull) or not all(isinstance(term, Column) for term in terms):
            _check_leaf(leaf, terms, context, stubs)


def _check_leaf(leaf: Leaf, terms: list[Term], context: Context, functions: Mapping[str, Function]) -> None:
    """Evaluates the leaf on one row, of NULLs."""
    columns = [(column.path, column.type) for term in terms for column in columns_of(term)]
    row = pa.nulls(1, _root_type([*columns, (("none",), pa.null())]))
    shorter = replace(leaf, values=leaf.values[:1]) if isinstance(leaf, In) else leaf
    evaluate(shorter, pa.table(row.flatten(), row.type.names), context, functions)
    for term in terms:
        if not any(columns_of(term)):  # or it had been folded
            evaluate_constant_term(term, context, functions)
            raise OpaqueError(f"only Spark can evaluate {term_sql(term)}")


def _root_type(columns: Sequence[tuple[tuple[str, ...], pa.DataType]]) -> pa.DataType:
    """The type of a struct in which these types stand at these paths."""
    if whole := [data_type for path, data_type in columns if not path]:
        return whole[0]
    names = dict.fromkeys(path[0] for path, _ in columns)
    below = {name: [(path[1:], data_type) for path, data_type in columns if path[0] == name] for name in names}
    return pa.struct([(name, _root_type(found)) for name, found in below.items()])


def _nothing(*arguments: Any) -> pa.Array:
    """What stands for every function of a plugin: none is called for this."""
    return pa.nulls(1, pa.bool_())
