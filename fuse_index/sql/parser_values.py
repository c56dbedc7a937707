"""What is computed of terms in the Spark SQL that people type: arithmetic, CASE, and the functions that are a CASE.

Only where a text may have it: in what a column is set to, and in aggregates. Conditions around terms have none of it.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
from sqlglot import exp

from fuse_index.expressions import coercion
from fuse_index.expressions.arithmetic import arithmetic_call, negation
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.predicate import Case, IsNull, Literal, Not, Opaque, Predicate, Term
from fuse_index.sql.parser_terms import ARITHMETIC_NODES, SqlNode, SqlTermReader, has_unknown_parts

_MAX_LEVELS = 100
"""Operators within each other, chains of them included: each costs some of Python's 1,000 calls."""


class SqlValueReader(SqlTermReader):
    """Reads terms, and with ``arithmetic`` what is computed of them."""

    def predicate(self, node: SqlNode) -> Predicate:
        """The condition that a node is, as ``SqlReader`` reads it."""
        raise NotImplementedError

    def term(self, node: SqlNode) -> Term:
        if not self.arithmetic or has_unknown_parts(node):
            return super().term(node)
        match node:
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.DPipe():
                return self._arithmetic(node)
            case exp.Neg() if not isinstance(node.this, exp.Literal):
                return negation(self.term(node.this))
            case exp.Case():
                return self._case(node)
            case exp.Anonymous():
                name, arguments = self.call(node)
                return self._conditional(name, arguments) or super().term(node)
            case _:
                return super().term(node)

    def check_levels(self, node: SqlNode) -> None:
        """Raise AnalysisError for operators that are nested too deep."""
        deepest, waiting = 0, [(node, 1)]
        while waiting:
            each, level = waiting.pop()
            deepest = max(deepest, level)
            waiting += [(part, level + 1) for part in each.iter_expressions()]
        if deepest > _MAX_LEVELS:
            raise AnalysisError(
                f"it is nested {deepest:,} levels deep, and {_MAX_LEVELS} are the bound: write it flatter"
            )

    def _arithmetic(self, node: SqlNode) -> Term:
        left, right = self.term(node.this), self.term(node.expression)
        if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
            left, right = self._as_declared(left, node.this), self._as_declared(right, node.expression)
        return arithmetic_call(ARITHMETIC_NODES[type(node)], left, right, self.context)

    def _as_declared(self, term: Term, node: SqlNode) -> Term:
        """Beside a decimal, an integer constant as wide as its type, unless it is written as a number."""
        while isinstance(node, exp.Paren | exp.Neg):
            node = node.this
        if isinstance(node, exp.Literal) or not isinstance(term, Literal) or term.type not in coercion.INTEGER_TYPES:
            return term
        return coercion.coerce_term(term, coercion.as_decimal(term.type), self.context)

    def _case(self, node: exp.Case) -> Term:
        """Also ``CASE value WHEN other``, which compares."""
        conditions = [
            exp.EQ(this=node.this, expression=when.this) if node.this else when.this for when in node.args["ifs"]
        ]
        values = [self.term(when.args["true"]) for when in node.args["ifs"]]
        default = node.args.get("default")
        otherwise = Literal(None, pa.null()) if default is None else self.term(default)
        return self._of_one_type([self._condition(condition) for condition in conditions], [*values, otherwise])

    def _conditional(self, name: str, arguments: list[SqlNode]) -> Term | None:
        """A function that is a CASE; None for any other."""
        match name, arguments:
            case "if", [condition, value, other]:
                return self._of_one_type([self._condition(condition)], [self.term(value), self.term(other)])
            case (("coalesce" | "nvl" | "ifnull"), [_, _, *_]):
                terms = [self.term(argument) for argument in arguments]
                return self._of_one_type([Not(IsNull(term)) for term in terms[:-1]], terms)
            case "nullif", [value, other]:
                equal = self._condition(exp.EQ(this=value, expression=other))
                return self._of_one_type([equal], [Literal(None, pa.null()), self.term(value)])
        return None

    def _condition(self, node: SqlNode) -> Predicate:
        condition = self.predicate(node)
        if unknown := [leaf for leaf in predicate_leaves(condition) if isinstance(leaf, Opaque)]:
            raise UnsupportedExpression(unknown[0].sql)
        return condition

    def _of_one_type(self, conditions: list[Predicate], values: list[Term]) -> Case:
        """The last value is that of ELSE. Raises AnalysisError, NotReproducible."""
        types = {value.type for value in values} - {pa.null()}
        if not types or (pa.string() in types and len(types) > 1):
            raise UnsupportedExpression("CASE of text beside values of other types, or of nothing but NULL")
        data_type = reduce(lambda a, b: coercion.common_type(a, b, self.context), (value.type for value in values))
        *decided, otherwise = [coercion.coerce_term(value, data_type, self.context) for value in values]
        return Case(tuple(zip(conditions, decided, strict=True)), otherwise)
